//go:build backends

package integration

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestPagesOfOtherServers replaces the 404 pages of nginx, Python and Node, which .ci/run installs.
func TestPagesOfOtherServers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}

	nginx, python, node := testcaddy.FreePort(t), testcaddy.FreePort(t), testcaddy.FreePort(t)
	startNginx(t, "server {\nlisten 127.0.0.1:"+nginx+";\nroot "+dir+";\n}")
	script := testcaddy.TempFile(t, "server.js", `
require("http").createServer((req, res) => {
	if (req.url === "/hello.txt") return res.end("hello");
	res.writeHead(404, {"Content-Type": "text/html; charset=utf-8", "X-Powered-By": "Node", ...(req.method === "GET" && {"Trailer": "X-Sum"})});
	if (req.method !== "GET") return res.end();
	res.write("<pre>Cannot GET " + req.url + "</pre>");
	setTimeout(() => { res.addTrailers({"X-Sum": "1"}); res.end("<!-- late -->"); }, 5);
}).listen(process.argv[2], "127.0.0.1");
`)
	startProgram(t, "python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", dir, python)
	startProgram(t, "node", script, node)

	backends := map[string]string{"nginx": nginx, "python": python, "node": node}
	var caddyfile strings.Builder
	for name, port := range backends {
		addr := "127.0.0.1:" + port
		awaitListener(t, name, addr)
		fmt.Fprintf(&caddyfile, "http://%[1]s.test:0 {\nnot_found\nreverse_proxy %[2]s\n}\nhttp://bare-%[1]s.test:0 {\nreverse_proxy %[2]s\n}\n", name, addr)
	}
	s := testcaddy.Start(t, caddyfile.String())
	for name := range backends {
		t.Run(name, func(t *testing.T) {
			bare := s.Get(t, "http://bare-"+name+".test/nothing")
			if bare.StatusCode != 404 || !strings.HasPrefix(bare.Header.Get("Content-Type"), "text/html") {
				t.Fatalf("the server has no page of its own: %d %s", bare.StatusCode, bare.Content)
			}
			for range 20 {
				uri := "http://" + name + ".test/nothing?x=1"
				res := s.Get(t, uri, "Accept-Encoding: gzip", "Range: bytes=0-3")
				res.WantPage(t, "GET", uri, "")
				if bare.Header.Get("Server") != "" {
					res.WantHeader(t, "Server", "Caddy")
				} else { // a proxied response has none of Caddy's, either
					res.WantHeader(t, "Server", "")
				}
				res.WantHeader(t, "Content-Encoding", "")
				if head := s.Do(t, "HEAD", uri); head.StatusCode != 404 || head.Content != "" || head.ContentLength != res.ContentLength {
					t.Errorf("HEAD: got %d, Content-Length %d, %q", head.StatusCode, head.ContentLength, head.Content)
				}
				if len(res.Trailer) > 0 {
					t.Errorf("got the trailers %v", res.Trailer)
				}
				s.Get(t, "http://"+name+".test/hello.txt").Want(t, 200, "hello")
			}
		})
	}
}

// TestErrorServiceOfNginx runs the example's nginx.conf and Caddyfile. The page shows the visitor's address and method.
func TestErrorServiceOfNginx(t *testing.T) {
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
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "files"), 0o755); err != nil {
		t.Fatal(err)
	}

	// nginx, and a Caddy that trusts some proxies
	start := func(t *testing.T, proxies string) (nginx, query, header *testcaddy.Client) {
		queryPort, headerPort := testcaddy.FreePort(t), testcaddy.FreePort(t)
		options, sites, ok := strings.Cut(edited(t, example+"Caddyfile", ":8080 ", "http://:"+queryPort+" ", ":8081 ", "http://:"+headerPort+" ", ":8082 ", "http://:0 ", ":8090 ", "http://a.test:0 ", ":8091 ", "http://b.test:0 ", "remote_ip private_ranges", "remote_ip "+proxies), "\n}\n")
		_, options, _ = strings.Cut(options, "\n{\n")
		if !ok || !strings.Contains(options, "trusted_proxies") {
			t.Fatalf("the Caddyfile has the options %q", options)
		}
		testcaddy.Start(t, sites, options)

		addr := "127.0.0.1:" + testcaddy.FreePort(t)
		rewrites := "location /rewritten/ {\nrewrite ^ /other?y break;\nproxy_pass http://application;\nproxy_intercept_errors on;\n}\n"
		startNginx(t, edited(t, example+"nginx.conf", "listen 80;", "listen "+addr+";", "127.0.0.1:9000", application, "127.0.0.1:8081", "127.0.0.1:"+headerPort, "/var/www", root,
			"location /files/", rewrites+"location /files/", "$scheme;", "https;")) // as over TLS
		awaitListener(t, "nginx", addr)
		return testcaddy.HTTP11(t, addr), testcaddy.HTTP11(t, "127.0.0.1:"+queryPort), testcaddy.HTTP11(t, "127.0.0.1:"+headerPort)
	}

	const ownPath = "/a%20b//c?x=1&url=/evil"
	const asked, own = "http://www.example.com" + ownPath, "https://www.example.com" + ownPath
	forged := []string{"X-Original-URI: http://evil.example/", "X-Forwarded-Host: evil.example", "X-Forwarded-Proto: http"}

	t.Run("trusted", func(t *testing.T) {
		nginx, query, _ := start(t, "127.0.0.0/8")
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
			req, err := http.NewRequest(method, asked, strings.NewReader("a=b"))
			if err != nil {
				t.Fatal(err)
			}
			nginx.Send(t, req).WantPage(t, method, own, "")
		}
		nginx.Get(t, asked, forged...).WantPage(t, "GET", own, "")
		nginx.Get(t, "http://www.example.com/rewritten/x?y=z").WantPage(t, "GET", "https://www.example.com/rewritten/x?y=z", "")
		nginx.Get(t, "http://www.example.com/files/nothing?x").WantPage(t, "GET", "https://www.example.com/files/nothing?x", "")
		nginx.Get(t, "http://www.example.com:8443/x").WantPage(t, "GET", "https://www.example.com:8443/x", "")
		page := testcaddy.FieldsOf(t, nginx.Get(t, asked, "Accept: application/json"))
		if head := nginx.Do(t, "HEAD", asked); page.URI != own || head.StatusCode != http.StatusNotFound || head.Content != "" {
			t.Errorf("got the JSON %+v, and for HEAD %d %q", page, head.StatusCode, head.Content)
		}
		nginx.Do(t, "PUT", "http://www.example.com/hello").Want(t, http.StatusOK, "PUT")
		if res := nginx.Get(t, "http://www.example.com/forbidden"); res.StatusCode != http.StatusForbidden {
			t.Errorf("got %s, want what the application says", res.Status)
		}

		// as Traefik does
		query.Get(t, "http://shop.test/404?url=https%3A%2F%2Fshop.test%2Fa%2520b%3Fx").WantPage(t, "GET", "https://shop.test/a%20b?x", "")
	})
	t.Run("not trusted", func(t *testing.T) {
		nginx, query, header := start(t, "192.0.2.0/24")
		nginx.Get(t, "http://www.example.com/rewritten/x?y=z").WantPage(t, "GET", "https://www.example.com/other?y&y=z", "")
		header.Get(t, "http://www.example.com/x", forged[0]).WantPage(t, "GET", "http://www.example.com/x", "")
		query.Get(t, "http://shop.test/404?url=/x").WantPage(t, "GET", "http://shop.test/404?url=/x", "")
	})
}

// TestDocumentedJq runs the jq lines of docs/report.md on a report with hostile addresses, which only a forged report may have.
func TestDocumentedJq(t *testing.T) {
	hostile := []string{
		"/*", "/a/*", "/{uri}", "/a b", "/a\n", "/a\nredir /* https://evil.example", "/a\r", "/..", "/a/../b", "/.git",
		`/"`, "/`", "/'", "/$(id)", "/%2A", "/\x1b[2J", "/\x00", "/\u2028", "/\t", "/", "//evil.example", "/a#b", "/a?b",
		"/\\", "*", "", "{", "-n", "/" + strings.Repeat("x", 200),
	}
	var r report.Report
	add := func(link report.Link, host, path string, count uint64, passed uint64) {
		r.Addresses = append(r.Addresses, report.Address{
			Link:     link,
			Host:     host,
			Path:     path,
			Count:    count,
			Outcomes: report.Outcomes{Error: count - passed, Passed: passed},
			LastLink: "https://b.test/",
		})
	}
	for _, path := range hostile {
		add(report.Other, "www.example.com", path, 2, 0)
	}
	add(report.Own, "www.example.com", "/shop/candles", 7, 0)
	add(report.Own, "www.example.com", "/shop/lanterns", 1, 0)
	add(report.Other, "www.example.com", "/old/a.html/", 2, 0)
	add(report.Other, "www.example.com", "/~a/_b-c", 2, 0)
	add(report.Other, "www.example.com", "/once", 1, 0)
	add(report.Other, "www.example.com", "/passed", 3, 1)
	add(report.Other, "shop.example.com", "/other-host", 3, 0)
	add(report.None, "www.example.com", "/nobody", 3, 0)
	for _, cell := range []string{"=1+1", "+1", "-1", "@x"} {
		add(report.None, cell, "", 1, 0)
	}
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(testcaddy.TempFile(t, "report.json", string(body)))
	jq := func(t *testing.T, comment string) string {
		return documented(t, dir, "../docs/report.md", comment)
	}

	const page = "8\t2\thttps://b.test/\n"
	if got := jq(t, "own links by linking page"); got != page {
		t.Errorf("by linking page: got\n%swant\n%s", got, page)
	}
	const comments = "# redir /old/a.html/ /NEW\n# redir /~a/_b-c /NEW\n"
	if got := jq(t, "redirects"); got != comments {
		t.Errorf("redirects: got\n%swant\n%s", got, comments)
	}
	const address = "own\t7\thttps://b.test/\n"
	if got := jq(t, "one address"); got != address {
		t.Errorf("one address: got\n%swant\n%s", got, address)
	}

	rows, err := csv.NewReader(strings.NewReader(jq(t, "everything as CSV"))).ReadAll()
	if err != nil || len(rows) != 1+len(r.Addresses) {
		t.Fatalf("got %d rows, %v, want a header and %d", len(rows), err, len(r.Addresses))
	}
	const keys = "link,host,path,query,count,overcount,last_link,first,last,unanswered,error,response,passed,replaceable"
	if got := strings.Join(rows[0], ","); got != keys {
		t.Errorf("got the header %s, want %s", got, keys)
	}
	for i, a := range r.Addresses {
		host := strings.TrimPrefix(rows[1+i][1], "'")
		if host != a.Host || strings.ContainsAny(rows[1+i][1][:1], "=+-@") || rows[1+i][4] != fmt.Sprint(a.Count) {
			t.Errorf("got the row %q of %+v", rows[1+i], a)
		}
	}
}

// documented runs the lines of shell in a document that begin with a comment, or have a text in them.
func documented(t *testing.T, dir, file, has string) (stdout string) {
	t.Helper()
	for _, block := range strings.Split(readFile(t, file), "```sh\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for script := range strings.SplitSeq(block, "\n\n") {
			if !strings.Contains(script, has) {
				continue
			}
			cmd := exec.Command("sh", "-c", script)
			cmd.Dir = dir
			output, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", script, err, output)
			}
			return string(output)
		}
	}
	t.Fatalf("%s has no lines with %q", file, has)
	return ""
}

// TestDocumentedJqOfAccessLogs has two Caddys write access logs.
func TestDocumentedJqOfAccessLogs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			s := testcaddy.Start(t, "http://a.test:0 {\nlog {\noutput file "+filepath.Join(dir, "access-"+name+".log")+"\n}\n"+
				"log_append not_found {http.not_found.cause}\nnot_found\nrespond /fine fine\n}")
			s.Get(t, "http://a.test/x?"+name, "Referer: http://b.test/")
			s.Get(t, "http://a.test/fine")
			s.Get(t, "http://a.test/"+name)
		})
	}
	eventually(t, "jq counts the pages of both", func() bool {
		got := strings.Fields(documented(t, dir, "../docs/report.md", "cat access-"))
		want := []string{"2", "a.test/x", "http://b.test/", "1", "a.test/two", "1", "a.test/one"}
		return slices.Equal(got, want)
	})
}

// TestCacheInFront has nginx cache an application's 404s, which are fresh for a minute: its own, replaced ones, and replaced
// ones with the Caddyfile of docs/headers.md.
func TestCacheInFront(t *testing.T) {
	t.Chdir("..")
	asked := make(map[string]int)
	var mu sync.Mutex
	application := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.Host]++
		w.Header().Set("Cache-Control", "max-age=60")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "theirs")
	})
	recipe := recipes(t)["docs/headers.md: Header fields"]
	s := testcaddy.Start(t, "http://bare.test:0 {\nreverse_proxy "+application+"\n}\nhttp://replaced.test:0 {\nnot_found\nreverse_proxy "+application+"\n}\n"+
		strings.NewReplacer("example.com", "http://example.com:0", "localhost:9000", application).Replace(recipe))
	addr := "127.0.0.1:" + testcaddy.FreePort(t)
	startNginx(t, fmt.Sprintf("proxy_cache_path %s keys_zone=cache:1m;\nserver {\nlisten %s;\nlocation / {\nproxy_pass http://%s;\nproxy_set_header Host $host;\nproxy_cache cache;\nproxy_cache_key $host$uri;\n}\n}", t.TempDir(), addr, s.Addr))
	awaitListener(t, "nginx", addr)
	nginx := testcaddy.HTTP11(t, addr)
	for host, want := range map[string]int{"bare.test": 1, "replaced.test": 20, "example.com": 1} {
		for range 20 {
			res := nginx.Get(t, "http://"+host+"/nothing")
			if isPage := strings.HasPrefix(res.Content, "HTTP ERROR 404"); res.StatusCode != http.StatusNotFound || isPage != (host != "bare.test") {
				t.Errorf("%s: got %s %s", host, res.Status, res.Content)
			}
		}
		mu.Lock()
		if asked[host] != want {
			t.Errorf("%s: of 20 requests, %d reached the application, want %d", host, asked[host], want)
		}
		mu.Unlock()
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
