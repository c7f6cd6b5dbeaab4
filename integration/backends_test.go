//go:build backends

package integration

import (
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestDocumentedJq runs the line of jq in docs/report.md on testdata/report.json.
func TestDocumentedJq(t *testing.T) {
	want := "8\t2\thttps://b.test/\n"
	if got := documented(t, "testdata", "../docs/report.md", "own links by linking page"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// documented runs the lines of shell in a document that have a text in them, such as their comment.
func documented(t *testing.T, dir, file, has string) (stdout string) {
	t.Helper()
	before, after, ok := strings.Cut(readFile(t, file), has)
	if !ok {
		t.Fatalf("%s has no lines with %q", file, has)
	}
	begin := strings.LastIndex(before, "\n")
	after, _, _ = strings.Cut(after, "```")
	after, _, _ = strings.Cut(after, "\n\n")
	return shell(t, dir, before[begin:]+has+after)
}

// TestDocumentedCrawlFindsBrokenLinks has the crawler of docs/report.md visit a site with a missing image, and with a
// broken link that is further from the first page than wget goes by default.
func TestDocumentedCrawlFindsBrokenLinks(t *testing.T) {
	root := t.TempDir()
	writeFile(t, root+"/index.html", `<a href="/1.html">1</a> <img src="/gone.png">`)
	for i := 1; i < 9; i++ {
		writeFile(t, fmt.Sprintf("%s/%d.html", root, i), fmt.Sprintf(`<a href="/%d.html">next</a>`, i+1))
	}
	s := startReporting(t, "http://127.0.0.1:0 {\nnot_found {\nreport\n}\nroot "+testcaddy.Quote(root)+"\nfile_server\n}")
	here := strings.NewReplacer("https://www.example.com", "http://"+s.Addr, "/tmp/crawl", strconv.Quote(t.TempDir()))
	crawl := regexp.MustCompile(`(?m)^wget .*$`).FindString(readFile(t, "../docs/report.md"))
	shell(t, root, here.Replace(crawl)+"; test $? = 8") // a page is missing
	want := strings.ReplaceAll(
		"own HOST/9.html: error; on http://HOST/8.html\n"+
			"own HOST/gone.png: error; on http://HOST/\n", "HOST", s.Addr)
	if got := s.report(t); !strings.HasPrefix(got, want) {
		t.Errorf("got the report\n%s\nwant it to begin with\n%s", got, want)
	}
}

// TestDocumentedHealthCheck has HAProxy check a site by the line of docs/report.md, and by lines with another address.
// A check without the site's host succeeds whatever the address.
func TestDocumentedHealthCheck(t *testing.T) {
	s := testcaddy.Start(t, "http://www.example.com:0 {\nnot_found\nhandle /health {\nrespond 200\n}\n}")
	documented := regexp.MustCompile(`(?m)^http-check send .*$`).FindString(readFile(t, "../docs/report.md"))
	for name, tt := range map[string]struct {
		line string
		want string
	}{
		"documented": {
			line: documented,
			want: "succeeded, reason: Layer7 check passed, code: 200",
		},
		"a missing address": {
			line: strings.Replace(documented, "/health", "/missing", 1),
			want: "failed, reason: Layer7 wrong status, code: 404",
		},
		"a missing address and no host": {
			line: "http-check send meth GET uri /missing",
			want: "succeeded, reason: Layer7 check passed, code: 200",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, log := startHAProxy(t, fmt.Sprintf(`
global
	log stderr format raw local0
defaults
	mode http
	log global
	timeout connect 5s
	timeout client 5s
	timeout server 5s
listen checked
	bind fd@3
	option httpchk
	option log-health-checks
	%s
	server caddy %s check`, tt.line, s.Addr))
			got := awaitLog(t, log, `Health check for server checked/caddy (\w+, reason: [^,]*, code: \d+)`)
			if got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.line, got, tt.want)
			}
		})
	}
}

// TestProgramsPrintThePage has git and the go command ask for an address that nothing answers: not_found alone, and the
// site of docs/applications.md.
func TestProgramsPrintThePage(t *testing.T) {
	t.Chdir("..")
	documented := caddyfiles(t)["docs/applications.md: Programs that print the page"]
	for name, tt := range map[string]struct {
		site      string
		isPrinted bool
	}{
		"alone":      {site: "code.example.com {\nnot_found\n}", isPrinted: true},
		"documented": {site: documented},
	} {
		t.Run(name, func(t *testing.T) {
			site := strings.Replace(tt.site, "code.example.com {", "http://code.example.com:0 {", 1)
			s := testcaddy.Start(t, site)
			for program, command := range map[string]string{
				"git": "git ls-remote http://code.example.com/x.git",
				"go":  "GOPROXY=http://code.example.com go list -m -versions example.com/x",
			} {
				output := throughProxy(t, s.Addr, command+"; test $? -ne 0")
				if !strings.Contains(output, "not found") && !strings.Contains(output, "404 Not Found") {
					t.Errorf("%s: got\n%s", program, output)
				}
				for _, line := range []string{"HTTP ERROR 404", "URI: ", "STATUS: 404", "MESSAGE: ", "Powered by"} {
					if strings.Contains(output, line) != tt.isPrinted {
						t.Errorf("%s: got\n%s\nwant a line with %s: %t", program, output, line, tt.isPrinted)
					}
				}
			}
		})
	}
}

// TestFragmentsInFront has Varnish and nginx put a fragment into a page, which does not exist: not_found alone, and the
// site of docs/limits.md.
func TestFragmentsInFront(t *testing.T) {
	t.Chdir("..")
	const missing = "/fragments/missing"
	application := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == missing {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<p><esi:include src="%[1]s"/><!--# include virtual="%[1]s" --></p>`, missing)
	})
	documented := caddyfiles(t)["docs/limits.md: Fragments of pages"]
	here := strings.NewReplacer("www.example.com {", "http://www.example.com:0 {", "localhost:9000", application)
	for name, site := range map[string]string{
		"alone":      "www.example.com {\nnot_found\nreverse_proxy localhost:9000\n}",
		"documented": documented,
	} {
		t.Run(name, func(t *testing.T) {
			caddy := testcaddy.Start(t, here.Replace(site)).Addr
			varnish := startVarnish(t, fmt.Sprintf(`
vcl 4.1;
backend caddy {
	.host = "127.0.0.1";
	.port = "%s";
}
sub vcl_backend_response {
	set beresp.do_esi = true;
}`, portOf(caddy)))
			nginx := startNginx(t, fmt.Sprintf(`
server {
	listen ADDR;
	location / {
		proxy_pass http://%s;
		proxy_set_header Host $host;
		ssi on;
	}
}`, caddy))
			for proxy, addr := range map[string]string{"Varnish": varnish, "nginx": nginx} {
				page := testcaddy.HTTP11(t, addr).Get(t, "http://www.example.com/")
				hasPage := strings.Contains(page.Content, "HTTP ERROR 404")
				if page.StatusCode != http.StatusOK || hasPage != (name == "alone") {
					t.Errorf("%s: got the status %d and\n%s", proxy, page.StatusCode, page.Content)
				}
			}
		})
	}
}

// throughProxy runs a command whose requests all go to a Caddy. Over HTTPS, there is nobody.
func throughProxy(t *testing.T, addr, command string) (output string) {
	t.Helper()
	return shell(t, t.TempDir(), fmt.Sprintf(`
export http_proxy=http://%s https_proxy=http://127.0.0.1:1 no_proxy= HTTP_PROXY= HTTPS_PROXY= NO_PROXY=
export GOSUMDB=off GOFLAGS=-modcacherw GOTOOLCHAIN=local GOMODCACHE=$PWD/modules
%s`, addr, command))
}

// TestCacheInFront has nginx cache an application's 404s, which are fresh for a minute: its own, and replaced ones.
func TestCacheInFront(t *testing.T) {
	var requests atomic.Int32
	application := testcaddy.Backend(t, func(w http.ResponseWriter, _ *http.Request) {
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
	nginx := testcaddy.HTTP11(t, startNginx(t, `
	proxy_cache_path `+strconv.Quote(t.TempDir())+` keys_zone=cache:1m;
	server {
		listen ADDR;
		location / {
			proxy_pass http://`+s.Addr+`;
			proxy_set_header Host $host;
			proxy_cache cache;
			proxy_cache_key $host$uri;
		}
	}`))
	for range 20 {
		nginx.Get(t, "http://bare.test/nothing").Want(t, http.StatusNotFound, "theirs")
	}
	if got := requests.Load(); got != 1 {
		t.Errorf("nginx has cached no 404 of the application: it was asked %d times", got)
	}
	for range 20 {
		getPage(t, nginx, "http://replaced.test/nothing")
	}
	if got := requests.Load(); got != 1+20 {
		t.Errorf("nginx has cached the page: the application was asked %d times, want 21", got)
	}
}

// startNginx runs nginx until the test ends, with a config that has it listen at ADDR.
func startNginx(t *testing.T, config string) (addr string) {
	t.Helper()
	listener, addr := testcaddy.Listen(t)
	dir := t.TempDir()
	file := testcaddy.TempFile(t, "nginx.conf", fmt.Sprintf(`
daemon off;
user root;
pid "%[1]s/nginx.pid";
error_log "%[1]s/error.log";
events {}
http {
	access_log off;
	client_body_temp_path "%[1]s/body";
	proxy_temp_path "%[1]s/proxy";
	fastcgi_temp_path "%[1]s/fastcgi";
	uwsgi_temp_path "%[1]s/uwsgi";
	scgi_temp_path "%[1]s/scgi";
	gzip on;
	gzip_min_length 1;
	%[2]s
}
`, dir, strings.ReplaceAll(config, "ADDR", addr)))
	nginx := exec.CommandContext(t.Context(), "nginx", "-c", file, "-p", dir)
	nginx.Env = []string{"NGINX=3;"} // the listeners that it has already
	nginx.Cancel = func() error {
		return nginx.Process.Signal(syscall.SIGTERM) // or its worker would go on
	}
	startLogging(t, nginx, listener)
	return addr
}
