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
	generatedSeed  = flag.Uint64("seed", 7, "which sites TestGeneratedSites makes")
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
		"reverse_proxy<match> BACKEND {\n<matched responses>\n}",
		"reverse_proxy<match> BACKEND {\n<matched responses>\nhandle_response {\n<responses>\n}\n}",
		"intercept<match> {\n@r <response matcher>\nhandle_response @r {\n<block>\n}\n}",
	},
	"matched responses": {"@r <response matcher>\nhandle_response @r {\n<responses>\n}"},
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
		"<nested>\nnot_found<match> {\ncontext_path /sibling\n<mode>\n}\nnot_found",
		"handle<match> {\nnot_found {\n<mode>\n}\n<block>\n}",
	},
	"mode":  {"", "replace all", "replace none", "keep header X-Keep *", "replace all\nkeep header X-Keep *"},
	"match": {"", "", " <path>", " <path>*"},
	"path": {
		"/length", "/json", "/none", "/gzip", "/trailers", "/early-hints",
		"/keep", "/ok", "/204", "/500", "/accel", "/file.txt", "/missing", "/abort",
	},
	"method": {"GET", "GET", "HEAD", "POST"},
	"status": {"200", "404", "410"},
	"codes":  {"", "", " 404", " 410", " 4xx"},
}

// A generatedSite is a random site, and the source of the requests to it. Both depend on the seed alone.
type generatedSite struct {
	*rand.Rand
	host   string
	text   string
	routes []string // that have a name
}

func generateSite(seed uint64, i int) *generatedSite {
	source := rand.NewPCG(seed, uint64(i))
	s := &generatedSite{
		Rand: rand.New(source),
		host: fmt.Sprintf("g%d.test", i),
	}
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
	production := s.of(grammar[symbol])
	return symbolPattern.ReplaceAllStringFunc(production, func(found string) string {
		return s.expand(strings.Trim(found, "<>"), depth+1)
	})
}

func (s *generatedSite) of(choices []string) string {
	return choices[s.IntN(len(choices))]
}

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
	caddyfile := fmt.Sprintf("http://%s:%s {\n%s\n}\n", s.host, p.port, s.text)
	for i, block := range s.routes {
		caddyfile += fmt.Sprintf("&(ROUTE-%d) {\n%s\n}\n", i, block)
	}
	inPlace := strings.NewReplacer("PLACE", p.directives, "DRY", p.dry, "ROUTE", s.host+p.port)
	return inPlace.Replace(caddyfile)
}

// has reports whether the site has a directive besides those at its places.
func (s *generatedSite) has(directive string) bool {
	routes := strings.Join(s.routes, "")
	return strings.Contains(s.text+routes, directive)
}

// isOutermost reports whether the client gets what PLACE writes.
func (s *generatedSite) isOutermost() bool {
	return strings.HasPrefix(s.text, "PLACE") ||
		strings.Contains(s.text, "handle_errors {\nPLACE") ||
		strings.Contains(s.text, "reverse_proxy BACKEND {\nhandle_response {\nPLACE")
}

// fieldsOfBody are fields of a body that no page has.
var fieldsOfBody = []string{
	"Content-Encoding", "Content-Disposition", "Etag", "Expires", "Cdn-Cache-Control", "X-Accel-Expires", "Last-Modified",
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
		for _, field := range fieldsOfBody {
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
	file := testcaddy.TempFile(t, "file.txt", strings.Repeat("a file ", 100))
	known := strings.NewReplacer(
		"BACKEND", testcaddy.Backend(t, generatedBackend),
		"ROOT", filepath.Dir(file),
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
				e := exchange{method: s.of(grammar["method"]), path: s.of(grammar["path"])}
				if e.method == http.MethodPost {
					e.body = "a=b"
				}
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
func (s *generatedSite) compare(t *testing.T, e exchange, one, other *place, rule rule) {
	t.Helper()
	var got, ofOther seen
	wrong := "not asked"
	for tries := 0; wrong != "" && tries < 4; tries++ {
		got = e.over(one.client, s.host)
		ofOther = e.over(other.client, s.host)
		wrong = rule(e, got, ofOther)
	}
	if wrong == "" {
		return
	}
	t.Errorf("%s: %s Got, with %q,\n%s\nand with %q\n%s", e, wrong, one.directives, got, other.directives, ofOther)
	t.Logf("Of the seed %d, the site %s is\n%s\nand its named routes are\n%q", *generatedSeed, s.host, s.text, s.routes)
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
	isSilent := without.header.Get("Allow") != ""
	isEmpty := without.status == http.StatusOK && without.content == "" && !isSilent
	isInner := s.isPage(e, without, "/nested") || s.isPage(e, without, "/sibling")
	hasErrorRoute := s.has("handle_errors")
	isSeenFurtherOut := hasErrorRoute || !s.isOutermost() && s.has("intercept")
	switch {
	case without.err != "<nil>":
		return "" // Caddy itself breaks off
	case isSame:
		if is404 && s.isOutermost() && !s.has("not_found") && !hasErrorRoute {
			return "This has to be the page."
		}
	case !is404 && !isEmpty && !isSeenFurtherOut:
		return "This has to pass."
	case !s.isOutermost():
		return "" // something further out may have changed the page
	case !s.isPage(e, got, ""):
		return "This has to be the page, or the same."
	case isInner && !s.has("intercept") && !hasErrorRoute:
		return "The inner one has decided."
	}
	return ""
}

// isPage reports whether a response is the page with this context path, without a field of another body.
func (s *generatedSite) isPage(e exchange, got seen, contextPath string) bool {
	method := strings.Replace(e.method, http.MethodHead, http.MethodGet, 1)
	page := testcaddy.TextPage(method, "http://"+s.host+e.path, contextPath)
	for _, field := range fieldsOfBody {
		if got.header.Get(field) != "" {
			return false
		}
	}
	hasLength := got.header.Get("Content-Length") == strconv.Itoa(len(page))
	if e.method == http.MethodHead {
		page = ""
	}
	isMissing := got.status == http.StatusNotFound && len(got.trailer) == 0
	return isMissing && hasLength && got.content == page
}
