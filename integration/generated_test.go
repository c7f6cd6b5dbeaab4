package integration

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

var (
	generatedSites = flag.Int("sites", 40, "how many sites TestGeneratedSites makes")
	generatedSeed  = flag.Uint64("seed", 4, "which sites TestGeneratedSites makes")
)

// grammar generates sites. A word in angle brackets stands for one of its productions. At PLACE may be not_found, and
// at DRY a dry run.
var grammar = map[string][]string{
	"site": { // with no other not_found in the same block, where only one takes effect
		"PLACE\n<fields>\nhandle {\n<block>\n}",
		"PLACE\n<fields>\nhandle {\nDRY\nhandle {\n<block>\n}\n}",
		"PLACE\n<fields>\nroute {\n<block>\n}",
		"PLACE\n<fields>\nhandle {\n<block>\n}\nhandle_errors<codes> {\n<block>\n}",
		"<fields>\n<block>\n<error>\nhandle_errors {\nPLACE\nhandle {\n<block>\n}\n}",
		"<fields>\nreverse_proxy BACKEND {\nhandle_response {\nPLACE\nroute {\n<responses>\n}\n}\n}",
		"<fields>\n<block>\nhandle<match> {\nPLACE\nhandle {\n<block>\n}\n}\n<directive>",
		"<fields>\nroute {\n<directive>\nPLACE\nroute {\n<block>\n}\n}",
	},
	"fields": {
		"", "", "header X-Site yes", "header Content-Language de", "header Content-Encoding gzip",
		"header CDN-Cache-Control max-age=60",
		"header {\nExpires \"Thu, 01 Dec 2050 16:00:00 GMT\"\nX-Accel-Expires 60\nETag `\"site\"`\n}",
		"header {\nX-Deferred yes\n-Server\ndefer\n}",
		"header Content-Security-Policy \"default-src 'self'\"", "header Vary Origin",
	},
	"block":     {"<directive>", "<directive>\n<directive>", "<directive>\n<directive>\n<directive>"},
	"responses": {"<response>\n<block>", "<response>\n<response>\n<block>", "<block>"},
	"directive": {
		"<leaf>", "<leaf>", "<leaf>", "<leaf>", "<within>", "<within>", "<within>", "<middleware>",
		"<nested>",
	},
	"leaf": {
		"respond<match> theirs", "respond<match> 200", "respond<match> \"no such thing\" 404",
		"respond<match> 404", "respond<match> gone 410",
		"route<match> {\nheader Content-Type application/json\nrespond \"{}\" 404\n}", "<error>",
		"redir <path> /elsewhere", "abort /abort",
		"file_server<match> {\nroot ROOT\n}", "handle <path> {\nSILENT\n}",
		"reverse_proxy<match> BACKEND", "reverse_proxy<match> BACKEND", "reverse_proxy<match> BACKEND",
	},
	"error": {"error<match> 404", "error<match> \"no such thing\" 404", "error<match> 410", "error<match> 500"},
	"within": {
		"handle<match> {\n<block>\n}", "route<match> {\n<block>\n}",
		"handle_path <path>* {\n<block>\n}", "invoke<match> <named>",
		"reverse_proxy<match> BACKEND {\n@r <response matcher>\nhandle_response @r {\n<responses>\n}\n}",
		"reverse_proxy<match> BACKEND {\n@r <response matcher>\nhandle_response @r {\n<responses>\n}\nhandle_response {\n<responses>\n}\n}",
		"intercept<match> {\n@r <response matcher>\nhandle_response @r {\n<block>\n}\n}",
	},
	"response": {
		"copy_response", "copy_response 404", "copy_response 410", "copy_response_headers",
		"copy_response_headers", "<directive>",
	},
	"response matcher": {
		"status 404", "status 4xx", "status 200", "status 2xx", "header X-Accel-Redirect *",
		"header Content-Type text/html*",
	},
	"middleware": {
		"intercept<match> {\n@r <response matcher>\nreplace_status @r <status>\n}", "templates<match>",
		"encode<match> {\nminimum_length 1\n}",
		"rewrite<match> <path>", "forward_auth<match> BACKEND {\nuri <path>\ncopy_headers X-User\n}",
		"header<match> X-Inner yes", "header<match> X-Keep yes",
		"request_header<match> X-Inner yes", "method<match> GET", "route<match> {\nDRY\nroute {\n<block>\n}\n}",
	},
	"nested": {
		"not_found<match> {\ncontext_path /nested\n<mode>\n}",
		"not_found<match> {\ncontext_path /nested\n<mode>\n}\nnot_found<match> {\ncontext_path /sibling\n<mode>\n}\nnot_found",
		"handle<match> {\nnot_found {\n<mode>\n}\n<block>\n}",
	},
	"mode":  {"", "replace all", "replace none", "keep header X-Keep *", "replace all\nkeep header X-Keep *"},
	"match": {"", "", " <path>", " <path>*"},
	"path": {
		"/length", "/json", "/none", "/gzip", "/trailers", "/early-hints",
		"/keep", "/ok", "/204", "/500", "/accel", "/file.txt", "/missing", "/abort",
	},
	"status": {"200", "404", "410"},
	"codes":  {"", "", " 404", " 410", " 4xx"},
}

// A generatedSite is a random site, and the source of the requests to it. Both depend on the seed alone.
type generatedSite struct {
	*rand.Rand
	name   string
	text   string
	routes []string // that have a name
}

func generateSite(seed uint64, i int) *generatedSite {
	s := &generatedSite{Rand: rand.New(rand.NewPCG(seed, uint64(i))), name: fmt.Sprint("g", i)}
	s.text = s.expand("site", 0)
	return s
}

var symbolPattern = regexp.MustCompile(`<([a-z ]+)>`)

// expand expands a symbol. Deep in a site, a directive is a leaf.
func (s *generatedSite) expand(symbol string, depth int) string {
	if symbol == "named" {
		return s.namedRoute(depth)
	}
	if symbol == "directive" && depth > 8 {
		symbol = "leaf"
	}
	return symbolPattern.ReplaceAllStringFunc(s.of(grammar[symbol]), func(found string) string {
		return s.expand(found[1:len(found)-1], depth+1)
	})
}

func (s *generatedSite) of(choices []string) string { return choices[s.IntN(len(choices))] }

// namedRoute returns the name of a new route, or of one that the site has.
func (s *generatedSite) namedRoute(depth int) string {
	i := s.IntN(len(s.routes) + 1)
	if i == len(s.routes) {
		block := s.expand("block", depth+1) // it may invoke other named routes, but not itself
		i = len(s.routes)
		s.routes = append(s.routes, block)
	}
	return fmt.Sprint("ROUTE-", i)
}

// caddyfile returns the site with directives in its places. Each place has its own port, and its own named routes.
func (s *generatedSite) caddyfile(p place) string {
	caddyfile := fmt.Sprintf("http://%s.test:%s {\n%s\n}\n", s.name, p.port, s.text)
	for i, block := range s.routes {
		caddyfile += fmt.Sprintf("&(ROUTE-%d) {\n%s\n}\n", i, block)
	}
	route := s.name + "-" + p.port
	return strings.NewReplacer("PLACE", p.directives, "DRY", p.dry, "ROUTE", route).Replace(caddyfile)
}

// has reports whether the site has a directive besides those at its places.
func (s *generatedSite) has(directive string) bool {
	return strings.Contains(s.text+strings.Join(s.routes, ""), directive)
}

// isOutermost reports whether the client gets what PLACE writes.
func (s *generatedSite) isOutermost() bool {
	return strings.HasPrefix(s.text, "PLACE") ||
		strings.Contains(s.text, "handle_errors {\nPLACE") ||
		strings.Contains(s.text, "reverse_proxy BACKEND {\nhandle_response {\nPLACE")
}

// generatedBackend answers by the path.
func generatedBackend(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-User", "me")
	status := http.StatusOK
	contentType := "text/html"
	const content = "<h1>theirs</h1>"
	switch r.URL.Path {
	case "/json":
		status = http.StatusNotFound
		contentType = "application/json"
	case "/keep":
		status = http.StatusNotFound
		h.Set("X-Keep", "1")
	case "/ok", "/file.txt":
	case "/204":
		w.WriteHeader(http.StatusNoContent)
		return
	case "/500":
		status = http.StatusInternalServerError
	case "/accel":
		for _, field := range []string{"Content-Encoding", "Content-Disposition", "Etag", "Expires", "Cdn-Cache-Control"} {
			h.Set(field, "theirs")
		}
		h.Set("X-Accel-Redirect", "/file.txt")
	default:
		testcaddy.MissingPage(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(status)
	io.WriteString(w, content)
}

// place is what stands at the places of a site.
type place struct {
	directives string // at PLACE
	dry        string // at DRY
	port       string
	client     *testcaddy.Client
}

// TestGeneratedSites compares random sites with and without not_found. The client gets the page, or exactly the same
// response. With a dry run, it always gets the same.
func TestGeneratedSites(t *testing.T) {
	const (
		live     = "@live not path /json /length\nnot_found @live {\nreplace all\n}\n"
		dryFirst = "@dry path /json /length\nnot_found @dry {\ndry_run\n}\n"
	)
	without := &place{}
	dry := &place{directives: dryRun, dry: dryRun}
	all := &place{directives: replaceAll, dry: dryRun}
	partly := &place{directives: live}
	partlyDry := &place{directives: dryFirst + replaceAll, dry: dryRun}
	places := []*place{without, dry, all, partly, partlyDry}
	for _, p := range places {
		p.port = testcaddy.FreePort(t)
		p.client = testcaddy.HTTP11(t, "127.0.0.1:"+p.port)
	}
	known := strings.NewReplacer(
		"BACKEND", testcaddy.Backend(t, generatedBackend),
		"ROOT", filepath.Dir(testcaddy.TempFile(t, "file.txt", strings.Repeat("a file ", 100))),
		"SILENT", testcaddy.Directive(t, silent),
	)
	const sitesOfOneCaddy = 200
	for first := 0; first < *generatedSites; first += sitesOfOneCaddy {
		var sites []*generatedSite
		caddyfile := ""
		for i := first; i < min(first+sitesOfOneCaddy, *generatedSites); i++ {
			s := generateSite(*generatedSeed, i)
			sites = append(sites, s)
			for _, p := range places {
				caddyfile += s.caddyfile(*p)
			}
		}
		testcaddy.StartQuiet(t, known.Replace(caddyfile), "order go before not_found")
		for _, s := range sites {
			for range 6 {
				e := exchange{method: s.of([]string{"GET", "GET", "HEAD", "POST"}), path: s.of(grammar["path"])}
				s.compare(t, e, dry, without, wantSame)
				s.compare(t, e, partlyDry, partly, wantSame)
				s.compare(t, e, all, without, s.wantPageOrSame)
			}
		}
	}
}

// A rule says what is wrong with a response, if the one at another place is right.
type rule func(e exchange, got, other seen) (wrong string)

// compare asks the site with two places in it. Caddy's own responses vary, so each has several chances.
func (s *generatedSite) compare(t *testing.T, e exchange, place, otherPlace *place, rule rule) {
	t.Helper()
	if e.method == http.MethodPost {
		e.body = "a=b"
	}
	var got, other seen
	wrong := "not asked"
	for tries := 0; wrong != "" && tries < 4; tries++ {
		got = e.over(place.client, s.host())
		other = e.over(otherPlace.client, s.host())
		wrong = rule(e, got, other)
	}
	if wrong == "" {
		return
	}
	t.Errorf("%s %s%s: %s Got, with %q,\n%s\nand with %q\n%s",
		e.method, s.host(), e.path, wrong, place.directives, got, otherPlace.directives, other)
	t.Logf("Of the seed %d, the site is\n%s\nand its named routes are\n%s",
		*generatedSeed, s.text, strings.Join(s.routes, "\n\n"))
}

func wantSame(_ exchange, got, other seen) (wrong string) {
	if !reflect.DeepEqual(got, other) {
		return "A dry run has to change nothing."
	}
	return ""
}

// wantPageOrSame is the rule with replace all. What an inner handler has decided stands, unless it was in an error
// route or beside intercept, which see no error where the page answers it.
func (s *generatedSite) wantPageOrSame(e exchange, got, without seen) (wrong string) {
	isSame := reflect.DeepEqual(got, without)
	is404 := without.status == http.StatusNotFound
	isEmpty := without.status == http.StatusOK && without.content == "" && without.header.Get("Allow") == ""
	isInner := s.isPage(e, without, "/nested") || s.isPage(e, without, "/sibling")
	isSeenFurtherOut := !s.isOutermost() && s.has("intercept")
	mayBePage := is404 || isEmpty || isSeenFurtherOut || s.has("handle_errors")
	switch {
	case without.err != "<nil>":
		return "" // Caddy itself breaks off
	case !isSame && !mayBePage:
		return "This has to pass."
	case !s.isOutermost():
		return "" // something further out may have changed the page
	case isSame && is404 && !s.has("not_found") && !s.has("handle_errors"):
		return "This has to be the page."
	case !isSame && !s.isPage(e, got, ""):
		return "This has to be the page, or the same."
	case !isSame && isInner && !s.has("intercept") && !s.has("handle_errors"):
		return "The inner one has decided."
	}
	return ""
}

func (s *generatedSite) host() string { return s.name + ".test" }

// isPage reports whether a response is the page with this context path, without a field of another body.
func (s *generatedSite) isPage(e exchange, got seen, contextPath string) bool {
	method := strings.Replace(e.method, http.MethodHead, http.MethodGet, 1)
	page := testcaddy.TextPage(method, "http://"+s.host()+e.path, contextPath)
	for _, field := range []string{
		"Content-Encoding", "Etag", "Expires", "Cdn-Cache-Control", "X-Accel-Expires", "Content-Disposition", "Last-Modified",
	} {
		if got.header.Get(field) != "" {
			return false
		}
	}
	hasLength := got.header.Get("Content-Length") == strconv.Itoa(len(page))
	if e.method == http.MethodHead {
		page = ""
	}
	return got.status == http.StatusNotFound && got.content == page && hasLength && len(got.trailer) == 0
}
