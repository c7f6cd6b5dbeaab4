package page

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// setHeader makes a header that of an HTML page. The options are of the handler; nil for the site means that the page
// replaces no response.
func setHeader(t *testing.T, o Options, header http.Header, site *SiteHeader) {
	t.Helper()
	m := newMaker(t, o)
	pg := m.Make(ask("GET", "/x"), nil)
	rep := m.Represent(&pg, "text/html")
	rep.SetHeader(header, site)
	rep.Free()
}

// TestFieldsOfAnotherBodyGo has one field for each rule. What says nothing about a body stays.
func TestFieldsOfAnotherBodyGo(t *testing.T) {
	header := http.Header{"Set-Cookie": {"a=1"}, "Www-Authenticate": {"Basic"}}
	for _, field := range []string{
		"Content-Encoding", "Content-Digest", "Etag", "Last-Modified", "Expires", "Age", "Trailer", "Transfer-Encoding",
		"CDN-Cache-Control", "X-Accel-Redirect", "X-Accel-Expires", "X-Sendfile", "Grpc-Status", "Refresh",
		http.TrailerPrefix + "X-Sum",
	} {
		header.Set(field, "theirs")
	}
	setHeader(t, Options{}, header, nil)
	want := []string{
		"Cache-Control", "Content-Length", "Content-Security-Policy", "Content-Type", "Set-Cookie", "Vary",
		"Www-Authenticate", "X-Content-Type-Options",
	}
	if fields := slices.Sorted(maps.Keys(header)); !slices.Equal(fields, want) {
		t.Errorf("got the fields\n%q\nwant\n%q", fields, want)
	}
	if header.Get("Cache-Control") != "no-store" || header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("got %v", header)
	}
}

// TestSiteFieldsAreRestored replaces a response that has set, changed and removed fields of the site.
func TestSiteFieldsAreRestored(t *testing.T) {
	before := http.Header{
		"Content-Language":        {"de"},
		"Content-Security-Policy": {"default-src 'self'", "frame-ancestors 'none'"},
		"Server":                  {"Caddy"},
	}
	header := http.Header{
		"Content-Language":                    {"en"},
		"Content-Security-Policy":             {"default-src *"},
		"Content-Security-Policy-Report-Only": {"default-src *"},
		"Link":                                {"</style.css>; rel=preload"},
		"Server":                              {"theirs"},
	}
	var site SiteHeader
	site.Read(before)
	before["Server"][0] = "changed in place"
	setHeader(t, Options{}, header, &site)
	for field, want := range map[string]string{
		"Content-Language":                    "de",
		"Content-Security-Policy":             "default-src 'self', frame-ancestors 'none'",
		"Content-Security-Policy-Report-Only": "",
		"Link":                                "",
		"Server":                              "Caddy",
	} {
		if got := strings.Join(header[field], "|"); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}

	// A site that hides the server removes the field from every response.
	header.Del("Server")
	setHeader(t, Options{}, header, &site)
	if header["Server"] != nil {
		t.Errorf("got Server %q, which the response has not", header["Server"])
	}
}

// TestOnlyTheBuiltInPageHasAPolicy has a site with a Content-Security-Policy, which overrides the page's, and one with
// a template.
func TestOnlyTheBuiltInPageHasAPolicy(t *testing.T) {
	const field = "Content-Security-Policy"
	header := http.Header{field: {"default-src 'self'"}}
	setHeader(t, Options{}, header, nil)
	if got := header.Get(field); got != "default-src 'self'" {
		t.Errorf("got the policy %q", got)
	}
	header.Del(field)
	setHeader(t, Options{}, header, nil)
	if got := header.Get(field); !strings.HasPrefix(got, "default-src 'none'; style-src 'sha256-") {
		t.Errorf("got the policy %q", got)
	}
	header.Del(field)
	template := tempFile(t, "<h1>ours</h1>")
	setHeader(t, Options{Templates: rows{"html": {template}}}, header, nil)
	if got := header.Get(field); got != "" {
		t.Errorf("with a template, got the policy %q", got)
	}
}

// TestVaryHasAcceptWhereSeveralFormatsAreOnOffer does not test how a field is added to others, as package accept does.
func TestVaryHasAcceptWhereSeveralFormatsAreOnOffer(t *testing.T) {
	header := make(http.Header)
	setHeader(t, Options{Formats: []string{"html"}}, header, nil)
	if got := header.Get("Vary"); got != "" {
		t.Errorf("with one format, got %q", got)
	}
	header.Set("Vary", "Origin")
	setHeader(t, Options{}, header, nil)
	if got := header.Get("Vary"); got != "Origin, Accept" {
		t.Errorf("got %q", got)
	}
}

// TestHeaderValuesAreNotShared changes a page's values in place, as Caddy's header handler does, and asks for another
// page.
func TestHeaderValuesAreNotShared(t *testing.T) {
	first := make(http.Header)
	setHeader(t, Options{}, first, nil)
	want := first.Clone()
	for field, values := range first {
		values[0] = "changed"
		if cap(values) > len(values) {
			t.Errorf("appending to %s may change another field", field)
		}
	}
	second := make(http.Header)
	setHeader(t, Options{}, second, nil)
	if !reflect.DeepEqual(second, want) {
		t.Errorf("got %v, want %v as before", second, want)
	}
}
