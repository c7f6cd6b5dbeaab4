package integration

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// recipe is a Caddyfile, and what its reader wants of it.
type recipe struct {
	of     string            // the folder of an example, or a document and the heading above the Caddyfile
	down   []string          // the ports of upstreams that do not run
	static []string          // the ports of upstreams that are static servers with a 404.html
	files  map[string]string // what the recipe's folders have, by their paths, beyond what all of them have

	visits []visit
	logged []logged // after the visits

	// finds are addresses that look like those of [soughtEverywhere], and that have a 200 for a reason.
	finds []string
}

// visit is a request, and what has to come of it.
type visit struct {
	method  string // GET, if it is empty
	address string // host, port and path
	client  http.Header

	// recorded begins the text of a recording. The upstream replays it to the client that it was recorded with, or to
	// another one. It has the path and the method.
	recorded string

	accept string
	fields []string // of its header, as in "Name: value"
	want   answer
}

// answer is what a response has to be.
type answer struct {
	isPage    bool // the built-in page in text
	status    int
	mediaType string
	has       []string // each is a part of the header's lines, or of the content
	lacks     []string // none of these is
}

// page is the built-in page in text.
func page(has ...string) answer {
	return answer{isPage: true, status: http.StatusNotFound, mediaType: "text/plain", has: has}
}

func missing(mediaType string, has ...string) answer {
	return answers(http.StatusNotFound, mediaType, has...)
}

func found(mediaType string, has ...string) answer {
	return answers(http.StatusOK, mediaType, has...)
}

func answers(status int, mediaType string, has ...string) answer {
	return answer{status: status, mediaType: mediaType, has: has}
}

// theirs is a recorded 404, as it was.
var theirs = missing("", "Content-Location: /recorded")

func (a answer) without(lacks ...string) answer {
	a.lacks = lacks
	return a
}

// logged are the values of a field in the access log of a host.
type logged struct {
	host   string
	field  string
	values []string
}

// clients are what they send.
var (
	browser = http.Header{
		"Accept":         {"text/html,application/xhtml+xml,*/*;q=0.8"},
		"Sec-Fetch-Mode": {"navigate"},
		"Sec-Fetch-Dest": {"document"},
	}
	script = http.Header{
		"Accept":         {"*/*"},
		"Sec-Fetch-Mode": {"cors"},
		"Sec-Fetch-Dest": {"empty"},
	}
	turbo = http.Header{
		"Accept":         {"text/html, application/xhtml+xml"},
		"Sec-Fetch-Mode": {"cors"},
		"Sec-Fetch-Dest": {"empty"},
	}
)

// TestRecipes runs each example, and each Caddyfile in the documents, with stand-ins for what it proxies to and with
// files in the folders that it serves. A stand-in says its port in the field From, which stays on a page, and does what
// the end of the path says.
func TestRecipes(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Chdir("..") // where the paths in the examples begin
	caddyfiles := caddyfiles(t)
	for _, r := range recipes {
		t.Run(r.of, func(t *testing.T) {
			caddyfile, ok := caddyfiles[r.of]
			if !ok {
				t.Fatal("there is no such recipe")
			}
			s := stage(t, caddyfile, &r)
			for _, v := range r.visits {
				s.visit(t, &v)
			}
			s.checkLogs(t)
			for _, v := range r.visits {
				s.visitAgain(t, &v)
			}
			for _, v := range r.visits {
				s.visitAsOthers(t, &v)
			}
			s.seekEverywhere(t)
		})
		delete(caddyfiles, r.of)
	}
	for of := range caddyfiles {
		t.Errorf("no recipe asks anything of %q", of)
	}
}

// caddyfiles returns the Caddyfiles of the examples, by their folders, and those in the documents, by their headings.
func caddyfiles(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, file := range glob(t, "examples/*/Caddyfile") {
		name := filepath.Base(filepath.Dir(file))
		found[name] = readFile(t, file)
	}
	headingOrCode := regexp.MustCompile("(?ms)^#+ (.*?)\n|^ *```(.*?)\n(.*?)^ *```$")
	for _, file := range documents(t) {
		content := readFile(t, file)
		under := ""
		for _, match := range headingOrCode.FindAllStringSubmatch(content, -1) {
			heading, language, code := match[1], match[2], match[3]
			if heading != "" {
				under = file + ": " + heading
			}
			if language == "caddyfile" {
				name := under
				for n := 2; found[name] != ""; n++ {
					name = fmt.Sprintf("%s, %d", under, n)
				}
				found[name] = code
			}
		}
	}
	return found
}

// visit sends the request, and compares the response with what is wanted.
func (s *staged) visit(t *testing.T, v *visit) {
	t.Helper()
	want := v.want
	method, address := v.target()
	res := s.ask(t, method, address, v.header())
	if want.isPage {
		text := "HTTP ERROR 404 No endpoint " + method + " /missing.html.\nURI: http://" + address + "\n"
		want.has = append([]string{text}, want.has...)
	}
	mediaType, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	isWanted := res.StatusCode == want.status && (want.mediaType == "" || mediaType == want.mediaType)
	got := linesOf(res)
	for _, part := range want.has {
		isWanted = isWanted && strings.Contains(got, part)
	}
	for _, part := range want.lacks {
		isWanted = isWanted && !strings.Contains(got, part)
	}
	if !isWanted {
		t.Errorf("%s %s %v: got the status %d and\n%.900s\nwant %+v", method, address, v.header(), res.StatusCode, got, want)
	}
}

func (v *visit) target() (method, address string) {
	if v.recorded != "" {
		rec := recording(v.recorded)
		return rec.Method, v.address + rec.Target
	}
	return cmp.Or(v.method, http.MethodGet), v.address
}

// recording returns the first recorded 404 whose text begins as it is named.
func recording(name string) *testcaddy.Recording {
	for _, rec := range slices.Concat(testcaddy.Recordings(), testcaddy.RouterRecordings()) {
		if strings.HasPrefix(rec.String(), name) {
			return &rec
		}
	}
	panic("there is no such recording: " + name)
}

// nameOfRecording is the request field that tells a stand-in what to replay.
const nameOfRecording = "Recorded"

func (v *visit) header() http.Header {
	header := make(http.Header)
	if v.recorded != "" {
		if v.client == nil {
			maps.Copy(header, recording(v.recorded).Request)
		}
		header.Set(nameOfRecording, v.recorded)
	}
	maps.Copy(header, v.client)
	if v.accept != "" {
		header.Set("Accept", v.accept)
	}
	for _, field := range v.fields {
		name, value, _ := strings.Cut(field, ": ")
		header.Set(name, value)
	}
	return header
}

// linesOf returns the header and the content of a response as text.
func linesOf(res testcaddy.Response) string {
	var text strings.Builder
	for field, values := range res.Header {
		fmt.Fprintf(&text, "%s: %s\n", field, strings.Join(values, ", "))
	}
	return text.String() + "\n" + res.Content
}

// visitAgain repeats a visit that got an error, as its client does later: by a reload with the validators of this or of
// an earlier page, for a part, by HEAD and by POST. The status is the same, and the page is whole.
func (s *staged) visitAgain(t *testing.T, v *visit) {
	t.Helper()
	method, address := v.target()
	if v.want.status < http.StatusBadRequest || method != http.MethodGet {
		return
	}
	first := s.ask(t, method, address, v.header())
	reload := v.header()
	reload.Set("If-None-Match", cmp.Or(first.Header.Get("ETag"), "*"))
	reload.Set("If-Modified-Since", cmp.Or(first.Header.Get("Last-Modified"), time.Now().UTC().Format(http.TimeFormat)))
	part := v.header()
	part.Set("Range", "bytes=0-9")
	part.Set("If-Match", `"another"`)
	for what, res := range map[string]testcaddy.Response{
		"a reload":             s.ask(t, method, address, reload),
		"a request for a part": s.ask(t, method, address, part),
		"HEAD":                 s.ask(t, http.MethodHead, address, v.header()),
		"POST":                 s.ask(t, http.MethodPost, address, v.header()),
	} {
		if res.StatusCode != v.want.status {
			t.Errorf("%s, %s: got %s", address, what, res.Status)
		}
		if what != "HEAD" && what != "POST" && len(res.Content) != len(first.Content) {
			t.Errorf("%s, %s: got %d bytes, want %d", address, what, len(res.Content), len(first.Content))
		}
	}
}

// visitAsOthers repeats a visit whose 404 passed, as each other client of the recipe. If the page is for that client, a
// cache may not show it what passed: Vary names a field in which the two clients differ.
func (s *staged) visitAsOthers(t *testing.T, v *visit) {
	t.Helper()
	method, address := v.target()
	if v.want.status != http.StatusNotFound || method != http.MethodGet {
		return
	}
	own := v.header()
	passed := s.ask(t, method, address, own)
	if isStoredNowhere(passed) {
		return
	}
	for _, other := range s.recipe.visits {
		header := other.header()
		header.Set(nameOfRecording, v.recorded)
		header["Accept-Encoding"] = own["Accept-Encoding"]
		if isStoredNowhere(s.ask(t, method, address, header)) && !variesBetween(passed, own, header) {
			t.Errorf("%s: a cache shows what passed for %v, with the Vary %q, to %v, which gets the page",
				address, own, passed.Header.Values("Vary"), header)
		}
	}
}

// isStoredNowhere says whether no cache keeps a response, as it keeps no page.
func isStoredNowhere(res testcaddy.Response) bool {
	return res.Header.Get("Cache-Control") == "no-store"
}

// variesBetween says whether a cache keeps a response to the one client from the other one. A cache may heed the last
// line of Vary alone, as nginx 1.22 does.
func variesBetween(res testcaddy.Response, one, other http.Header) bool {
	lines := res.Header.Values("Vary")
	if len(lines) == 0 {
		return false
	}
	for field := range strings.SplitSeq(lines[len(lines)-1], ",") {
		field = strings.TrimSpace(field)
		if !slices.Equal(one.Values(field), other.Values(field)) {
			return true
		}
	}
	return false
}

// soughtEverywhere are addresses that clients look for on every host. A 200 tells them that the address exists.
var soughtEverywhere = []string{"/.well-known/not-there", "/robots.txt", "/404.html"}

// seekEverywhere asks every host of the recipe for such addresses.
func (s *staged) seekEverywhere(t *testing.T) {
	t.Helper()
	hosts := make(map[string]bool)
	for _, v := range s.recipe.visits {
		host, _, _ := strings.Cut(v.address, "/")
		hosts[host] = true
	}
	for host := range hosts {
		for _, path := range soughtEverywhere {
			address := host + path
			res := s.ask(t, http.MethodGet, address, browser.Clone())
			if isFound := res.StatusCode == http.StatusOK; isFound != slices.Contains(s.recipe.finds, address) {
				t.Errorf("%s: got %s", address, res.Status)
			}
		}
	}
}

// checkLogs compares the access log, once it has as many entries.
func (s *staged) checkLogs(t *testing.T) {
	t.Helper()
	for _, want := range s.recipe.logged {
		var got []string
		for _, entry := range s.logs.WaitForHost(t, "handled request", want.host, len(want.values)) {
			value, _ := entry[want.field].(string)
			for upstream, addr := range s.standIns {
				value = strings.ReplaceAll(value, addr, upstream)
			}
			got = append(got, value)
		}
		if !slices.Equal(got, want.values) {
			t.Errorf("%s: got the log's %s %q, want %q", want.host, want.field, got, want.values)
		}
	}
}

// TestRequestIDIsOnThePageAndInTheLog runs the example with a request ID.
func TestRequestIDIsOnThePageAndInTheLog(t *testing.T) {
	t.Chdir("..")
	s := stage(t, caddyfiles(t)["brand"], new(recipe))
	const host = "support.example.com"
	res := s.ask(t, http.MethodGet, host+"/html", http.Header{"Accept": {"application/json"}})
	id := res.Header.Get("X-Request-Id")
	if id == "" || !strings.Contains(res.Content, `"footer":"Request `+id+`"`) {
		t.Errorf("got the request ID %q and the page\n%s", id, res.Content)
	}
	entry := s.logs.WaitForHost(t, "handled request", host, 1)[0]
	if entry["request_id"] != id {
		t.Errorf("got the request ID %v in the log, want %s", entry["request_id"], id)
	}
}

// TestRoutersWithoutHTTPS puts the matcher of the one recipe into the other, as the document says.
func TestRoutersWithoutHTTPS(t *testing.T) {
	t.Chdir("..")
	fragments, _, _ := strings.Cut(caddyfiles(t)["docs/applications.md: Fragments without HTTPS"], "\treverse_proxy")
	_, fragments, _ = strings.Cut(fragments, "{\n")
	routers := caddyfiles(t)["docs/applications.md: A router that fetches whole pages"]
	s := stage(t, strings.Replace(routers, "\tnot_found\n", fragments, 1), new(recipe))
	html := missing("text/html", "HTTP ERROR")
	for recorded, want := range map[string]answer{
		"swup 4.10.0, Chromium 156 page by script, http,":                      html,
		"Unpoly 3.14.3, Chromium 156 navigation, http,":                        html,
		"htmx 4.0.1, Chromium 156 page by script, http,":                       theirs,
		"SolidStart 2.0.5, Chromium 156 action or form by script, http,":       theirs,
		"Unpoly 3.14.3, Chromium 156 action or form by script, http,":          theirs,
		"Turbo 8.0.23, Chromium 156 page by script, http, GET /turbo/fmissing": theirs,
	} {
		s.visit(t, &visit{address: "app.example.com", recorded: recorded, want: want})
	}
}

// TestWhatNobodyMaySeeLooksMissing compares what the recipe hides with what is not there.
func TestWhatNobodyMaySeeLooksMissing(t *testing.T) {
	t.Chdir("..")
	site, files, ok := strings.Cut(caddyfiles(t)["docs/moving.md: What nobody may see"], "root /srv/www")
	if !ok {
		t.Fatal("the recipe has another root")
	}
	s := stage(t, site+"fs cloud"+files, new(recipe))
	for _, v := range []visit{
		{client: browser},
		{client: script},
		{accept: "application/json"},
		{client: browser, method: http.MethodHead},
		{method: http.MethodPost},
		{client: browser, fields: []string{"If-None-Match: *", "Range: bytes=0-9"}},
	} {
		const missing = "/nothing123"
		linesFor := func(path string) string {
			res := s.ask(t, cmp.Or(v.method, http.MethodGet), "www.example.com"+path, v.header())
			res.Header.Del("Date")
			lines := strings.Split(res.Status+"\n"+linesOf(res), "\n")
			slices.Sort(lines)
			return strings.ReplaceAll(strings.Join(lines, "\n"), path, missing)
		}
		for _, hidden := range []string{"/secret.txt", "/admin/hide"} {
			if got, want := linesFor(hidden), linesFor(missing); got != want {
				t.Errorf("%+v: %s is\n%s\nand what is missing is\n%s", v, hidden, got, want)
			}
		}
	}
}

// TestCatchAllNeedsNoOtherCertificate asks the example for made-up names over TLS, and counts the certificates. Those
// are of Caddy's own authority.
func TestCatchAllNeedsNoOtherCertificate(t *testing.T) {
	_, example, ok := strings.Cut(readFile(t, "../examples/catch-all/Caddyfile"), "\n{\n")
	if !ok {
		t.Fatal("the example has no global options")
	}
	storage := t.TempDir()
	options := testcaddy.Caddyfile("", "local_certs", "storage file_system "+testcaddy.Quote(storage),
		"log default {\noutput discard\n}")
	options = strings.TrimSuffix(options, "}\n")
	s := testcaddy.StartConfig(t, testcaddy.Adapt(t, options+example))

	client := testcaddy.HTTP2(t, s.Addrs["443"])
	eventually(t, "certificate", func() bool {
		res, err := client.HTTP.Get("https://www.example.com/")
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	for i := range 12 {
		getPage(t, client, fmt.Sprintf("https://made-up-%d.example/x", i))
	}
	certificates := glob(t, storage+"/certificates/*/*/*.crt")
	if len(certificates) != 1 {
		t.Errorf("got the certificates %q, want only one", certificates)
	}
}

// TestJSONExampleIsItsCaddyfile compares the two, and looks for every option.
func TestJSONExampleIsItsCaddyfile(t *testing.T) {
	t.Chdir("..")
	config := readFile(t, "examples/json/caddy.json")
	adapted := testcaddy.Adapt(t, readFile(t, "examples/json/Caddyfile"))
	var got, want any
	decode(t, []byte(config), &got)
	decode(t, adapted, &want)
	if !reflect.DeepEqual(got, want) {
		t.Error("caddy.json is not what its Caddyfile is adapted to; write it again with caddy adapt --pretty")
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[notfound.Handler]()) {
		key, _, hasKey := strings.Cut(field.Tag.Get("json"), ",")
		if hasKey && !strings.Contains(config, `"`+key+`":`) {
			t.Errorf("caddy.json lacks the option %s", key)
		}
	}
}
