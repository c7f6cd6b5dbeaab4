//go:build backends

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestPagesOfOtherServers replaces the 404 pages of nginx, Python and Node. The test has a build tag because they are not
// part of a Go installation; .ci/run installs them.
func TestPagesOfOtherServers(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("hello.txt", "hello")

	nginx, python, node := testcaddy.FreePort(t), testcaddy.FreePort(t), testcaddy.FreePort(t)
	conf := write("nginx.conf", fmt.Sprintf(`
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
	server {
		listen 127.0.0.1:%[2]s;
		root %[1]s;
	}
}
`, dir, nginx))
	script := write("server.js", `
require("http").createServer((req, res) => {
	if (req.url === "/hello.txt") return res.end("hello");
	res.writeHead(404, {"Content-Type": "text/html; charset=utf-8", "X-Powered-By": "Node", ...(req.method === "GET" && {"Trailer": "X-Sum"})});
	if (req.method !== "GET") return res.end();
	res.write("<pre>Cannot GET " + req.url + "</pre>");
	setTimeout(() => { res.addTrailers({"X-Sum": "1"}); res.end("<!-- late -->"); }, 5);
}).listen(process.argv[2], "127.0.0.1");
`)
	for _, command := range [][]string{
		{"nginx", "-c", conf, "-p", dir},
		{"python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", dir, python},
		{"node", script, node},
	} {
		cmd := exec.Command(command[0], command[1:]...)
		var output strings.Builder
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
			if t.Failed() {
				t.Logf("%s: %s", command[0], output.String())
			}
		})
	}

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
