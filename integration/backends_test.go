//go:build backends

package integration

import (
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

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
	const header = `"link","host","path","query","count","overcount","browsers","last_link","first","last",` +
		`"unanswered","error","response","passed","replaceable"` + "\n"
	const row = `"own","www.example.com","/shop/candles",false,7,0,1,"https://b.test/",` +
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

// TestDocumentedJqOfAccessLogs has two sites write access logs.
func TestDocumentedJqOfAccessLogs(t *testing.T) {
	dir := t.TempDir()
	s := testcaddy.Start(t, strings.ReplaceAll(`
(logged) {
	log {
		output file "DIR/access-{args[0]}.log"
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
	eventually(t, "page of each site in its log", func() bool {
		got := strings.Fields(documented(t, dir, "../docs/report.md", "cat access-"))
		return slices.Equal(got, []string{"2", "a.test/x", "http://c.test/", "1", "b.test/z"})
	})
}

// TestDocumentedCrawlFindsBrokenLinks has the crawler of docs/report.md visit a site with a broken link and a missing
// image.
func TestDocumentedCrawlFindsBrokenLinks(t *testing.T) {
	root := t.TempDir()
	writeFile(t, root+"/index.html", `<a href="/about.html">About</a> <img src="/gone.png">`)
	writeFile(t, root+"/about.html", `<a href="/gone">Gone</a>`)
	s := startReporting(t, "http://127.0.0.1:0 {\nnot_found {\nreport\n}\nroot "+testcaddy.Quote(root)+"\nfile_server\n}")
	here := strings.NewReplacer("https://www.example.com", "http://"+s.Addr, "/tmp/crawl", strconv.Quote(t.TempDir()))
	crawl := regexp.MustCompile(`(?m)^wget .*$`).FindString(readFile(t, "../docs/report.md"))
	shell(t, root, here.Replace(crawl)+"; test $? = 8") // a page is missing
	want := strings.ReplaceAll(
		"own HOST/gone: error; on http://HOST/about.html\n"+
			"own HOST/gone.png: error; on http://HOST/\n", "HOST", s.Addr)
	if got := s.report(t); !strings.HasPrefix(got, want) {
		t.Errorf("got the report\n%s\nwant it to begin with\n%s", got, want)
	}
}

// TestDocumentedHealthCheck has HAProxy check a site by the line of docs/report.md, and by lines with another address. A
// check without the site's host succeeds whatever the address.
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
