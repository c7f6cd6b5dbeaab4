//go:build backends

package integration

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// errorService is the Caddy that makes the pages of another proxy, and the application behind that proxy.
type errorService struct {
	caddy       *testcaddy.Server
	application string
}

// startErrorService runs the Caddyfile of examples/proxies, with the addresses of some proxies.
func startErrorService(t *testing.T, proxies string) errorService {
	t.Helper()
	t.Chdir("..") // where the paths in the examples begin
	caddyfile := edited(t, "examples/proxies/Caddyfile", "remote_ip private_ranges", "remote_ip "+proxies)
	options, sites, _ := strings.Cut(caddyfile, "\n}\n")
	_, options, _ = strings.Cut(options, "\n{\n")
	return errorService{
		caddy:       testcaddy.Start(t, sites, options),
		application: testcaddy.Backend(t, greeter),
	}
}

// greeter is an application with one page, which says by which method it was asked for, and one that includes a
// fragment that is missing.
func greeter(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/hello":
		fmt.Fprint(w, r.Method)
	case "/includes":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<p><esi:include src="/fragments/x"/></p>`)
	case "/fragments/x":
		w.WriteHeader(http.StatusNotFound)
	case "/json":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{}`)
	default:
		testcaddy.MissingPage(w, r)
	}
}

// config returns a file of examples/proxies with the addresses of the test.
func (s *errorService) config(t *testing.T, file string, oldnew ...string) string {
	t.Helper()
	return edited(t, "examples/proxies/"+file, append(oldnew,
		"127.0.0.1:9000", s.application,
		"127.0.0.1:8081", s.caddy.Addrs["8081"])...)
}

// forged returns header fields that a proxy which visitors reach by a scheme may not believe.
func forged(scheme string) []string {
	other := "https"
	if scheme == other {
		other = "http"
	}
	return []string{
		"X-Original-URI: http://evil.example/",
		"X-Forwarded-Host: evil.example",
		"X-Forwarded-Proto: " + other,
	}
}

// wantPages asks a proxy for addresses that nothing is at, and for one that the application answers. The page shows the
// visitor's address and method, or GET for a proxy that asks by that method alone.
func wantPages(t *testing.T, proxy *testcaddy.Client, scheme string, onlyGET bool, paths ...string) {
	t.Helper()
	for _, path := range append(paths, "/a%20b//c?x=1&url=/evil", ":8443/x") {
		res := proxy.Get(t, "http://www.example.com"+path, forged(scheme)...)
		res.WantPage(t, "GET", scheme+"://www.example.com"+path, "")
	}
	method := "POST"
	if onlyGET {
		method = "GET"
	}
	req, err := http.NewRequest("POST", "http://www.example.com/x", strings.NewReader("a=b"))
	if err != nil {
		t.Fatal(err)
	}
	posted := proxy.Send(t, req)
	posted.WantPage(t, method, scheme+"://www.example.com/x", "")
	asHTML := proxy.Get(t, "http://www.example.com/x", "Accept: text/html")
	asHTML.WantHeader(t, "Content-Type", "text/html; charset=utf-8")
	proxy.Do(t, "PUT", "http://www.example.com/hello").Want(t, http.StatusOK, "PUT")
}

// TestErrorServiceOfNginx runs the example in an http block that has nginx replace every error.
func TestErrorServiceOfNginx(t *testing.T) {
	start := func(t *testing.T, proxies string) (errorService, *testcaddy.Client) {
		s := startErrorService(t, proxies)
		const rewritten = `
		location /rewritten/ {
			rewrite ^ /other?y break;
			proxy_pass http://application;
		}
		location /files/`
		return s, testcaddy.HTTP11(t, startNginx(t, "proxy_intercept_errors on;\n"+s.config(t, "nginx.conf",
			"listen 80;", "listen ADDR;",
			"/var/www", strconv.Quote(t.TempDir()),
			"location /files/", rewritten,
			"$scheme;", "https;"))) // as over TLS
	}
	t.Run("trusted", func(t *testing.T) {
		s, nginx := start(t, "127.0.0.0/8")
		wantPages(t, nginx, "https", false, "/rewritten/x?y=z", "/files/nothing?x")
		query := testcaddy.HTTP11(t, s.caddy.Addrs["8080"])
		ofTraefik := query.Get(t, "http://shop.test/404?url=https%3A%2F%2Fshop.test%2Fa%2520b%3Fx")
		ofTraefik.WantPage(t, "GET", "https://shop.test/a%20b?x", "")
	})
	t.Run("not trusted", func(t *testing.T) {
		s, nginx := start(t, "192.0.2.0/24")
		inNginx := nginx.Get(t, "http://www.example.com/rewritten/x?y=z")
		inNginx.WantPage(t, "GET", "https://www.example.com/other?y&y=z", "")
		header := testcaddy.HTTP11(t, s.caddy.Addrs["8081"])
		getPage(t, header, "http://www.example.com/x", "X-Original-URI: http://evil.example/")
		query := testcaddy.HTTP11(t, s.caddy.Addrs["8080"])
		getPage(t, query, "http://shop.test/404?url=/x")
	})
}

// TestErrorServiceOfApache runs the example.
func TestErrorServiceOfApache(t *testing.T) {
	s := startErrorService(t, "127.0.0.0/8")
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { // Apache leaves root
		t.Fatal(err)
	}
	addr := freeAddr(t)
	config := s.config(t, "apache.conf", "*:80", addr, "/var/www/", strconv.Quote(dir+"/"))
	var modules strings.Builder
	for _, module := range []string{
		"mpm_event", "authz_core", "alias", "headers", "rewrite", "proxy", "proxy_http",
	} {
		fmt.Fprintf(&modules, "LoadModule %[1]s_module /usr/lib/apache2/modules/mod_%[1]s.so\n", module)
	}
	file := testcaddy.TempFile(t, "apache.conf", fmt.Sprintf(`
%[1]s
Listen %[2]s
ServerName localhost
ServerRoot %[3]q
PidFile pid
ErrorLog /dev/stderr
User nobody
Group nogroup
<Directory %[3]q>
	Require all granted
</Directory>
%[4]s`, &modules, addr, dir, config))
	apache := exec.CommandContext(t.Context(), "apache2", "-D", "FOREGROUND", "-f", file)
	startServer(t, apache, addr)
	wantPages(t, testcaddy.HTTP11(t, addr), "http", true, "/files/nothing?x", "/.not-found?x")
}

// TestErrorServiceOfVarnish runs the example. A fragment that is missing does not become the page.
func TestErrorServiceOfVarnish(t *testing.T) {
	s := startErrorService(t, "127.0.0.0/8")
	varnish := testcaddy.HTTP11(t, startVarnish(t, edited(t, "examples/proxies/varnish.vcl",
		"9000", portOf(s.application),
		"8081", portOf(s.caddy.Addrs["8081"]))+`
sub vcl_backend_response {
	set beresp.do_esi = true;
}`))
	wantPages(t, varnish, "http", false)
	varnish.Get(t, "http://www.example.com/includes").Want(t, http.StatusOK, "<p></p>")
}

// TestErrorServiceOfHAProxy makes the copy by the command of the example.
func TestErrorServiceOfHAProxy(t *testing.T) {
	s := startErrorService(t, "127.0.0.0/8")
	const example = "examples/proxies/haproxy.cfg"
	copied := t.TempDir() + "/404.http"
	command := regexp.MustCompile(`curl .*`).FindString(readFile(t, example))
	here := strings.NewReplacer("127.0.0.1:8083", s.caddy.Addrs["8083"], "/etc/haproxy/404.http", copied)
	shell(t, ".", here.Replace(command))

	addr, _ := startHAProxy(t, edited(t, example,
		"/etc/haproxy/404.http", copied,
		"bind :80", "bind fd@3",
		"127.0.0.1:9000", s.application,
		"127.0.0.1:8082", s.caddy.Addrs["8082"]))
	haproxy := testcaddy.HTTP11(t, addr)
	for _, path := range []string{"/x?y", ":8443/x"} {
		res := haproxy.Get(t, "http://www.example.com"+path)
		res.Want(t, http.StatusNotFound, readFile(t, "examples/errors/404.html"))
		res.WantHeader(t, "Content-Type", "text/html; charset=utf-8")
		res.WantHeader(t, "Date", "")
	}
	haproxy.Get(t, "http://www.example.com/json").Want(t, http.StatusNotFound, "{}")
	haproxy.Do(t, "PUT", "http://www.example.com/hello").Want(t, http.StatusOK, "PUT")
	getPage(t, haproxy, "http://other.test/x?y", forged("http")...)
}

// startHAProxy runs HAProxy until the test ends, with a config that has it listen at fd@3.
func startHAProxy(t *testing.T, config string) (addr, log string) {
	t.Helper()
	listener, addr := testcaddy.Listen(t)
	file := testcaddy.TempFile(t, "haproxy.cfg", config+"\n")
	haproxy := exec.CommandContext(t.Context(), "haproxy", "-db", "-f", file)
	return addr, startLogging(t, haproxy, listener)
}

// startVarnish runs Varnish until the test ends. It chooses its port itself.
func startVarnish(t *testing.T, vcl string) (addr string) {
	t.Helper()
	dir := t.TempDir()
	file := testcaddy.TempFile(t, "varnish.vcl", vcl)
	varnish := exec.CommandContext(t.Context(),
		"varnishd", "-F", "-j", "none", "-n", dir, "-a", "127.0.0.1:0", "-f", file)
	varnish.Cancel = func() error {
		return varnish.Process.Signal(syscall.SIGTERM) // or it would leave its worker
	}
	startLogging(t, varnish)
	eventually(t, "address of Varnish", func() bool {
		output, _ := exec.Command("varnishadm", "-n", dir, "debug.listen_address").Output()
		fields := strings.Fields(string(output)) // a name, an address and a port
		if len(fields) == 3 {
			addr = net.JoinHostPort(fields[1], fields[2])
		}
		return addr != "" && isListening(addr)
	})
	return addr
}

// startServer runs a server until the test ends, and waits until it listens.
func startServer(t *testing.T, server *exec.Cmd, addr string) {
	t.Helper()
	server.Cancel = func() error {
		return server.Process.Signal(syscall.SIGTERM) // or it would leave its workers
	}
	startLogging(t, server)
	eventually(t, "connection to "+addr, func() bool { return isListening(addr) })
}

func isListening(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// freeAddr returns an address for a server that takes no listener. Nothing else that the tests run has this IP.
func freeAddr(t *testing.T) string {
	t.Helper()
	listener, addr := testcaddy.Listen(t)
	listener.Close()
	return "127.0.0.2:" + portOf(addr)
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}
