package integration

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// An exchange is a request for a host of an example, and what comes back.
type exchange struct {
	url    string
	fields []string // of the request

	status    int
	mediaType string
	contains  string            // what the body has
	header    map[string]string // some fields
}

// TestExamplesAnswer runs examples with addresses and folders of the test, and asks them for what their comments promise.
func TestExamplesAnswer(t *testing.T) {
	t.Chdir("..") // where the paths in the examples begin
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		switch filepath.Base(r.URL.Path) {
		case "fine":
			io.WriteString(w, "fine")
			return
		case "empty":
			w.Header()["Content-Type"] = nil
			w.WriteHeader(http.StatusNotFound)
			return
		case "api":
			w.Header().Set("Content-Type", "application/json")
		default:
			w.Header().Set("Content-Type", "text/html")
		}
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `"theirs"`)
	})
	root := t.TempDir()
	for _, file := range []string{"index.php", "hello.txt"} {
		if err := os.WriteFile(filepath.Join(root, file), []byte("hello"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	started := make(chan string, 10) // what PHP is asked for
	php := testcaddy.FastCGI(t, func(w http.ResponseWriter, r *http.Request) {
		started <- r.Host + r.URL.Path
		if r.URL.Path == "/api" {
			w.Header().Set("Content-Type", "application/json")
		} else {
			w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `"theirs"`)
	})

	const (
		text     = "text/plain; charset=utf-8"
		html     = "text/html; charset=utf-8"
		json     = "application/json"
		designed = "We looked everywhere" // in the brand's template
		page     = "HTTP ERROR 404"
	)
	for name, tt := range map[string]struct {
		exchanges []exchange
		missed    []string // the addresses in the report, in their order as strings
	}{
		"scanners": {
			exchanges: []exchange{
				{url: "www.example.com/wp-login.php", fields: []string{"Accept: text/html"}, status: 404, mediaType: text, contains: page},
				{url: "www.example.com/.git/config", status: 404, mediaType: text, contains: page},
				{url: "www.example.com/shop/nothing", fields: []string{"Accept: text/html"}, status: 404, mediaType: html, contains: page},
				{url: "www.example.com/nothing", status: 404, mediaType: text, contains: page},
			},
			missed: []string{"www.example.com/nothing", "www.example.com/shop/nothing"},
		},
		"only-empty": {exchanges: []exchange{
			{url: "www.example.com/page", status: 404, mediaType: "text/html", contains: "theirs"},
			{url: "www.example.com/api", status: 404, mediaType: json, contains: "theirs"},
			{url: "www.example.com/empty", status: 404, mediaType: text, contains: page},
			{url: "files.example.com/app/page", status: 404, mediaType: "text/html", contains: "theirs"},
			{url: "files.example.com/app/empty", status: 404},
			{url: "files.example.com/nothing", status: 404, mediaType: text, contains: page},
		}},
		"assets": {
			exchanges: []exchange{
				{url: "www.example.com/a.png", fields: []string{"Sec-Fetch-Dest: image", "Accept: image/avif,image/webp,*/*;q=0.8"}, status: 404, mediaType: text, contains: page},
				{url: "www.example.com/w.js", fields: []string{"Sec-Fetch-Dest: serviceworker", "Accept: */*"}, status: 404, mediaType: text, contains: page},
				{url: "www.example.com/doc", fields: []string{"Sec-Fetch-Dest: document", "Accept: text/html,*/*;q=0.8"}, status: 404, mediaType: html, contains: designed},
				{url: "www.example.com/any", fields: []string{"Accept: */*"}, status: 404, mediaType: html, contains: designed},
				{url: "www.example.com/hello.txt", fields: []string{"Sec-Fetch-Dest: image"}, status: 200, mediaType: text, contains: "hello"},
			},
			missed: []string{"www.example.com/a.png", "www.example.com/any", "www.example.com/doc", "www.example.com/w.js"},
		},
		"exception": {
			exchanges: []exchange{
				{url: "www.example.com/legacy/page", status: 404, mediaType: "text/html", contains: "theirs"},
				{url: "www.example.com/page", fields: []string{"Accept: text/html"}, status: 404, mediaType: html, contains: designed},
				{url: "shop.example.com/legacy/page", status: 404, mediaType: "text/html", contains: "theirs"},
				{url: "shop.example.com/page", status: 404, mediaType: text, contains: page},
			},
			missed: []string{"www.example.com/legacy/page", "www.example.com/page"},
		},
		"php": {exchanges: []exchange{
			{url: "www.example.com/nothing", status: 404, mediaType: text, contains: page},
			{url: "www.example.com/api", status: 404, mediaType: json, contains: "theirs"},
			{url: "www.example.com/hello.txt", status: 200, mediaType: text, contains: "hello"},
			{url: "plain.example.com/nothing", status: 404, mediaType: text, contains: page},
			{url: "plain.example.com/api", status: 404, mediaType: text, contains: page},
			{url: "plain.example.com/hello.txt", status: 200, mediaType: text, contains: "hello"},
		}},
		"ways-on": {exchanges: []exchange{
			{url: "www.example.com/nothing", fields: []string{"Accept: text/html"}, status: 404, mediaType: html, contains: `<form action="/search"`, header: ways},
			{url: "www.example.com/nothing", fields: []string{"Accept: text/markdown"}, status: 404, mediaType: "text/markdown; charset=utf-8", contains: page, header: ways},
			{url: "www.example.com/hello.txt", status: 200, mediaType: text, contains: "hello", header: map[string]string{"Link": ""}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			content := readFile(t, filepath.Join("examples", name, "Caddyfile"))
			sites := regexp.MustCompile(`127\.0\.0\.1:808\d`).ReplaceAllString(content, app)
			sites = strings.ReplaceAll(sites, "127.0.0.1:9000", php)
			sites = regexp.MustCompile(`/srv/\S+`).ReplaceAllString(sites, root)
			sites = regexp.MustCompile(`(?m)^(\S+\.example\.com) {`).ReplaceAllString(sites, "http://$1:0 {")
			var reports *reporting
			var s *testcaddy.Server
			if len(tt.missed) > 0 {
				reports = startReporting(t, sites)
				s = reports.Server
			} else {
				s = testcaddy.Start(t, sites)
			}
			for _, x := range tt.exchanges {
				res := s.Get(t, "http://"+x.url, x.fields...)
				if res.StatusCode != x.status || res.Header.Get("Content-Type") != x.mediaType || !strings.Contains(res.Content, x.contains) {
					t.Errorf("%s %q: got %d %s %.200q, want %d %s with %q", x.url, x.fields, res.StatusCode, res.Header.Get("Content-Type"), res.Content, x.status, x.mediaType, x.contains)
				}
				for field, value := range x.header {
					res.WantHeader(t, field, value)
				}
			}
			if name == "php" { // which never sees what is a file, or none in the second site
				close(started)
				var asked string
				for address := range started {
					asked += address + " "
				}
				if asked != "www.example.com/nothing www.example.com/api " {
					t.Errorf("PHP was asked for %s", asked)
				}
			}
			if reports != nil {
				var missed []string
				for _, a := range reports.report(t, "").Addresses {
					missed = append(missed, a.Host+a.Path)
				}
				slices.Sort(missed)
				if !slices.Equal(missed, tt.missed) {
					t.Errorf("the report has %q, want %q", missed, tt.missed)
				}
			}
		})
	}
}

// ways are the header of every representation in the example ways-on.
var ways = map[string]string{"Link": `</llms.txt>; rel="help"; type="text/plain" | </search>; rel="search"`}
