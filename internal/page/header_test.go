package page

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// headerOf returns the header of a page in place of a response that had the fields of theirs. The site had those of
// site before that response; nil: the page takes the place of none.
func headerOf(t *testing.T, o Options, site, theirs http.Header) http.Header {
	t.Helper()
	m := newMaker(t, o)
	pg := m.Make(&Asked{Method: "GET", Target: "/x", Scheme: "https", Authority: "a.test"}, placeholders(nil))
	rep := m.Represent(&pg, "text/html")
	defer rep.Free()
	header := theirs.Clone()
	if site == nil {
		rep.SetHeader(header, nil)
		return header
	}
	var before SiteHeader
	before.Read(site)
	for _, values := range site {
		values[0] = "changed in place"
	}
	rep.SetHeader(header, &before)
	return header
}

// TestFieldsOfAnotherBodyGo has one field for each rule. What says nothing about a body stays.
func TestFieldsOfAnotherBodyGo(t *testing.T) {
	theirs := http.Header{}
	for _, field := range []string{
		"Content-Encoding", "Content-Digest", "Etag", "Last-Modified", "Expires", "Age", "Trailer", "Transfer-Encoding",
		"CDN-Cache-Control", "X-Accel-Redirect", "X-Accel-Expires", "X-Sendfile", "Grpc-Status", "Refresh",
		http.TrailerPrefix + "X-Sum",
	} {
		theirs.Set(field, "theirs")
	}
	theirs.Set("Set-Cookie", "a=1")
	theirs.Set("Www-Authenticate", "Basic")
	got := headerOf(t, Options{}, nil, theirs)
	want := []string{
		"Cache-Control", "Content-Length", "Content-Security-Policy", "Content-Type", "Set-Cookie", "Vary",
		"Www-Authenticate", "X-Content-Type-Options",
	}
	if fields := slices.Sorted(maps.Keys(got)); !slices.Equal(fields, want) {
		t.Errorf("got the fields\n%q\nwant\n%q", fields, want)
	}
	if got.Get("Cache-Control") != "no-store" || got.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("got %v", got)
	}
}

// TestSiteFieldsAreRestored replaces a response that has set, changed and removed fields of the site.
func TestSiteFieldsAreRestored(t *testing.T) {
	site := http.Header{
		"Content-Language":        {"de"},
		"Content-Security-Policy": {"default-src 'self'", "frame-ancestors 'none'"},
		"Server":                  {"Caddy"},
	}
	theirs := http.Header{
		"Content-Language":                    {"en"},
		"Content-Security-Policy":             {"default-src *"},
		"Content-Security-Policy-Report-Only": {"default-src *"},
		"Link":                                {"</style.css>; rel=preload"},
		"Server":                              {"theirs"},
	}
	got := headerOf(t, Options{}, site, theirs)
	for field, want := range map[string]string{
		"Content-Language":                    "de",
		"Content-Security-Policy":             "default-src 'self', frame-ancestors 'none'",
		"Content-Security-Policy-Report-Only": "",
		"Link":                                "",
		"Server":                              "Caddy",
	} {
		if got.Get(field) != want || len(got[field]) > 1 {
			t.Errorf("%s: got %q, want %q", field, got[field], want)
		}
	}

	// a site that hides the server removes the field from every response
	delete(theirs, "Server")
	if got := headerOf(t, Options{}, http.Header{"Server": {"Caddy"}}, theirs); got["Server"] != nil {
		t.Errorf("got Server %q, which the response has not", got["Server"])
	}
}

// TestSitePolicyOverridesThePages has a site with a Content-Security-Policy, and one without.
func TestSitePolicyOverridesThePages(t *testing.T) {
	site := http.Header{"Content-Security-Policy": {"default-src 'self'"}}
	if got := headerOf(t, Options{}, nil, site); got.Get("Content-Security-Policy") != "default-src 'self'" {
		t.Errorf("got the policy %q", got["Content-Security-Policy"])
	}
	got := headerOf(t, Options{}, nil, http.Header{}).Get("Content-Security-Policy")
	if !strings.HasPrefix(got, "default-src 'none'; style-src 'sha256-") {
		t.Errorf("got the policy %q", got)
	}
}

// TestVaryHasAcceptWhereSeveralFormatsAreOnOffer does not test how a field is added to others, as package accept does.
func TestVaryHasAcceptWhereSeveralFormatsAreOnOffer(t *testing.T) {
	got := headerOf(t, Options{}, nil, http.Header{"Vary": {"Origin"}})
	if !slices.Equal(got["Vary"], []string{"Origin, Accept"}) {
		t.Errorf("got %q", got["Vary"])
	}
	if got := headerOf(t, Options{Formats: []string{"html"}}, nil, http.Header{}); got["Vary"] != nil {
		t.Errorf("with one format, got %q", got["Vary"])
	}
}

// TestHeaderValuesAreNotShared changes a page's values in place, as Caddy's header handler does, and asks for another
// page.
func TestHeaderValuesAreNotShared(t *testing.T) {
	first := headerOf(t, Options{}, nil, http.Header{})
	want := first.Clone()
	for field, values := range first {
		values[0] = "changed"
		if cap(values) > len(values) {
			t.Errorf("appending to %s may change another field", field)
		}
	}
	if got := headerOf(t, Options{}, nil, http.Header{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v as before", got, want)
	}
}
