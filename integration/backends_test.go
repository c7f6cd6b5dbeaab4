//go:build backends

package integration

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// nodeServer has a page of its own with a trailer, whose end comes late.
const nodeServer = `
require("http").createServer((req, res) => {
	if (req.url === "/hello.txt") return res.end("hello");
	res.writeHead(404, {"Content-Type": "text/html; charset=utf-8", "Trailer": "X-Sum"});
	res.write("<pre>Cannot GET " + req.url + "</pre>");
	setTimeout(() => { res.addTrailers({"X-Sum": "1"}); res.end("<!-- late -->"); }, 5);
}).listen(process.argv[2], "127.0.0.1");
`

// TestPagesOfOtherServers replaces the 404 pages of nginx, Python and Node, which .ci/run installs.
func TestPagesOfOtherServers(t *testing.T) {
	dir := filepath.Dir(testcaddy.TempFile(t, "hello.txt", "hello"))
	script := testcaddy.TempFile(t, "server.js", nodeServer)
	for name, start := range map[string]func(t *testing.T, port string){
		"nginx": func(t *testing.T, port string) {
			startNginx(t, "server {\nlisten 127.0.0.1:"+port+";\nroot "+dir+";\n}")
		},
		"python": func(t *testing.T, port string) {
			startProgram(t, "python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", dir, port)
		},
		"node": func(t *testing.T, port string) {
			startProgram(t, "node", script, port)
		},
	} {
		t.Run(name, func(t *testing.T) {
			port := testcaddy.FreePort(t)
			start(t, port)
			addr := "127.0.0.1:" + port
			awaitListener(t, name, addr)
			s := testcaddy.Start(t, `
http://a.test:0 {
	not_found
	reverse_proxy `+addr+`
}
http://bare.test:0 {
	reverse_proxy `+addr+`
}`)
			bare := s.Get(t, "http://bare.test/nothing")
			if bare.StatusCode != 404 || !strings.HasPrefix(bare.Header.Get("Content-Type"), "text/html") {
				t.Fatalf("the server has no page of its own: %d %s", bare.StatusCode, bare.Content)
			}
			for range 20 {
				const url = "http://a.test/nothing?x=1"
				res := s.Get(t, url, "Accept-Encoding: gzip", "Range: bytes=0-3")
				res.WantPage(t, "GET", url, "")
				res.WantHeader(t, "Content-Encoding", "")
				if len(res.Trailer) > 0 {
					t.Errorf("got the trailers %v", res.Trailer)
				}
				s.Get(t, "http://a.test/hello.txt").Want(t, 200, "hello")
			}
		})
	}
}

// errorService is nginx and the Caddy that makes its pages.
type errorService struct {
	nginx  *testcaddy.Client
	query  *testcaddy.Client // of Caddy, for Traefik
	header *testcaddy.Client // of Caddy, for nginx
}

// startErrorService runs the nginx.conf of the example in front of an application, and the Caddyfile with the
// addresses of some proxies.
func startErrorService(t *testing.T, proxies string) errorService {
	t.Helper()
	const example = "../examples/proxies/"
	application := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hello":
			fmt.Fprint(w, r.Method)
		case "/forbidden":
			w.WriteHeader(http.StatusForbidden)
		default:
			testcaddy.MissingPage(w, r)
		}
	})
	addr := "127.0.0.1:" + testcaddy.FreePort(t)
	query := testcaddy.FreePort(t)
	header := testcaddy.FreePort(t)
	caddyfile := edited(t, example+"Caddyfile",
		":8080 ", "http://:"+query+" ",
		":8081 ", "http://:"+header+" ",
		":8082 ", "http://:0 ",
		":8090 ", "http://a.test:0 ",
		":8091 ", "http://b.test:0 ",
		"remote_ip private_ranges", "remote_ip "+proxies)
	options, sites, _ := strings.Cut(caddyfile, "\n}\n")
	_, options, _ = strings.Cut(options, "\n{\n")
	testcaddy.Start(t, sites, options)

	const rewritten = `
		location /rewritten/ {
			rewrite ^ /other?y break;
			proxy_pass http://application;
			proxy_intercept_errors on;
		}
		location /files/`
	startNginx(t, edited(t, example+"nginx.conf",
		"listen 80;", "listen "+addr+";",
		"127.0.0.1:9000", application,
		"127.0.0.1:8081", "127.0.0.1:"+header,
		"/var/www", t.TempDir(),
		"location /files/", rewritten,
		"$scheme;", "https;")) // as over TLS
	awaitListener(t, "nginx", addr)
	return errorService{
		nginx:  testcaddy.HTTP11(t, addr),
		query:  testcaddy.HTTP11(t, "127.0.0.1:"+query),
		header: testcaddy.HTTP11(t, "127.0.0.1:"+header),
	}
}

// TestErrorServiceOfNginx runs the example. The page shows the visitor's address and method.
func TestErrorServiceOfNginx(t *testing.T) {
	t.Run("trusted", func(t *testing.T) {
		s := startErrorService(t, "127.0.0.0/8")
		for _, path := range []string{"/a%20b//c?x=1&url=/evil", "/rewritten/x?y=z", "/files/nothing?x"} {
			res := s.nginx.Get(t, "http://www.example.com"+path,
				"X-Original-URI: http://evil.example/", "X-Forwarded-Host: evil.example", "X-Forwarded-Proto: http")
			res.WantPage(t, "GET", "https://www.example.com"+path, "")
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
			s.nginx.Do(t, method, "http://www.example.com/x").WantPage(t, method, "https://www.example.com/x", "")
		}
		s.nginx.Get(t, "http://www.example.com:8443/x").WantPage(t, "GET", "https://www.example.com:8443/x", "")
		s.nginx.Do(t, "PUT", "http://www.example.com/hello").Want(t, http.StatusOK, "PUT")
		if res := s.nginx.Get(t, "http://www.example.com/forbidden"); res.StatusCode != http.StatusForbidden {
			t.Errorf("got %s, want what the application says", res.Status)
		}
		ofTraefik := s.query.Get(t, "http://shop.test/404?url=https%3A%2F%2Fshop.test%2Fa%2520b%3Fx")
		ofTraefik.WantPage(t, "GET", "https://shop.test/a%20b?x", "")
	})
	t.Run("not trusted", func(t *testing.T) {
		s := startErrorService(t, "192.0.2.0/24")
		inNginx := s.nginx.Get(t, "http://www.example.com/rewritten/x?y=z")
		inNginx.WantPage(t, "GET", "https://www.example.com/other?y&y=z", "")
		inHeader := s.header.Get(t, "http://www.example.com/x", "X-Original-URI: http://evil.example/")
		inHeader.WantPage(t, "GET", "http://www.example.com/x", "")
		s.query.Get(t, "http://shop.test/404?url=/x").WantPage(t, "GET", "http://shop.test/404?url=/x", "")
	})
}

// TestDocumentedJq runs the jq lines of docs/report.md on testdata/report.json, a forged report: only such a one has
// paths that must not become redirects, and hosts that are formulas of a spreadsheet.
func TestDocumentedJq(t *testing.T) {
	for comment, want := range map[string]string{
		"own links by linking page": "8\t2\thttps://b.test/\n",
		"redirects":                 "# redir /old/a.html/ /NEW\n# redir /~a/_b-c /NEW\n",
	} {
		if got := documented(t, "testdata", "../docs/report.md", comment); got != want {
			t.Errorf("%s: got\n%swant\n%s", comment, got, want)
		}
	}

	table := documented(t, "testdata", "../docs/report.md", "everything as CSV")
	const header = `"link","host","path","query","count","overcount","last_link","first","last",` +
		`"unanswered","error","response","passed","replaceable"` + "\n"
	const row = `"own","www.example.com","/shop/candles",false,7,0,"https://b.test/",` +
		`"2026-01-02T03:04:05Z","2026-01-03T03:04:05Z",0,7,0,0,0` + "\n"
	if !strings.HasPrefix(table, header+row) {
		t.Errorf("got the table\n%s\nwant it to begin with\n%s%s", table, header, row)
	}
	for _, formula := range []string{"=1+1", "+1", "-1", "@x"} {
		if !strings.Contains(table, `,"'`+formula+`",`) {
			t.Errorf("%s is not quoted in\n%s", formula, table)
		}
	}
}

// documented runs the lines of shell in a document that begin with a comment, or have a text in them.
func documented(t *testing.T, dir, file, has string) (stdout string) {
	t.Helper()
	for _, block := range strings.Split(readFile(t, file), "```sh\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for script := range strings.SplitSeq(block, "\n\n") {
			if strings.Contains(script, has) {
				return shell(t, dir, script)
			}
		}
	}
	t.Fatalf("%s has no lines with %q", file, has)
	return ""
}

// TestDocumentedJqOfAccessLogs has two sites write access logs.
func TestDocumentedJqOfAccessLogs(t *testing.T) {
	dir := t.TempDir()
	s := testcaddy.Start(t, strings.ReplaceAll(`
(logged) {
	log {
		output file DIR/access-{args[0]}.log
	}
	log_append not_found {http.not_found.cause}
	not_found
	respond /fine fine
}
http://a.test:0 {
	import logged a
}
http://b.test:0 {
	import logged b
}`, "DIR", dir))
	s.Get(t, "http://a.test/x?y", "Referer: http://c.test/")
	s.Get(t, "http://a.test/x", "Referer: http://c.test/")
	s.Get(t, "http://a.test/fine")
	s.Get(t, "http://b.test/z")
	eventually(t, "jq counts the pages of both", func() bool {
		got := strings.Fields(documented(t, dir, "../docs/report.md", "cat access-"))
		return slices.Equal(got, []string{"2", "a.test/x", "http://c.test/", "1", "b.test/z"})
	})
}

// TestDocumentedCrawlFindsBrokenLinks has the crawler of docs/report.md visit a site with a broken link and a missing
// image.
func TestDocumentedCrawlFindsBrokenLinks(t *testing.T) {
	root := t.TempDir()
	for name, page := range map[string]string{
		"index.html": `<a href="/about.html">About</a> <img src="/gone.png">`,
		"about.html": `<a href="/gone">Gone</a>`,
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := startReporting(t, "http://127.0.0.1:0 {\nnot_found {\nreport\n}\nroot "+root+"\nfile_server\n}")
	line := regexp.MustCompile(`(?m)^wget .*$`).FindString(readFile(t, "../docs/report.md"))
	crawl := strings.NewReplacer("https://www.example.com", "http://"+s.Addr, "/tmp/crawl", t.TempDir()).Replace(line)
	shell(t, root, crawl+"; test $? = 8") // a page is missing
	got := s.report(t)
	for _, want := range []string{
		fmt.Sprintf("own %[1]s/gone: error; on http://%[1]s/about.html\n", s.Addr),
		fmt.Sprintf("own %[1]s/gone.png: error; on http://%[1]s/\n", s.Addr),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %q:\n%s", want, got)
		}
	}
}

// TestCacheInFront has nginx cache an application's 404s, which are fresh for a minute: its own, and replaced ones.
func TestCacheInFront(t *testing.T) {
	var requests atomic.Int32
	application := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Cache-Control", "max-age=60")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "theirs")
	})
	s := testcaddy.Start(t, `
http://bare.test:0 {
	reverse_proxy `+application+`
}
http://replaced.test:0 {
	not_found
	reverse_proxy `+application+`
}`)
	addr := "127.0.0.1:" + testcaddy.FreePort(t)
	startNginx(t, strings.NewReplacer("DIR", t.TempDir(), "ADDR", addr, "CADDY", s.Addr).Replace(`
	proxy_cache_path DIR keys_zone=cache:1m;
	server {
		listen ADDR;
		location / {
			proxy_pass http://CADDY;
			proxy_set_header Host $host;
			proxy_cache cache;
			proxy_cache_key $host$uri;
		}
	}`))
	awaitListener(t, "nginx", addr)
	nginx := testcaddy.HTTP11(t, addr)
	for host, want := range map[string]int32{"bare.test": 1, "replaced.test": 20} {
		requests.Store(0)
		for range 20 {
			res := nginx.Get(t, "http://"+host+"/nothing")
			isPage := strings.HasPrefix(res.Content, "HTTP ERROR 404")
			if res.StatusCode != http.StatusNotFound || isPage != (host != "bare.test") {
				t.Errorf("%s: got %s %s", host, res.Status, res.Content)
			}
		}
		if got := requests.Load(); got != want {
			t.Errorf("%s: of 20 requests, %d reached the application, want %d", host, got, want)
		}
	}
}

// startNginx runs nginx with server blocks until the test ends.
func startNginx(t *testing.T, servers string) {
	t.Helper()
	dir := t.TempDir()
	conf := testcaddy.TempFile(t, "nginx.conf", fmt.Sprintf(`
daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	gzip on;
	gzip_min_length 1;
	%[2]s
}
`, dir, servers))
	startProgram(t, "nginx", "-c", conf, "-p", dir)
}

// startProgram runs a program until the test ends.
func startProgram(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", name, output.String())
		}
	})
}
