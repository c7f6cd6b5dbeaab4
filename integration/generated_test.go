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
	"slices"
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
	"mode": {
		"", "replace all", "replace browsers", "replace none",
		"keep header X-Keep *", "replace all\nkeep header X-Keep *",
	},
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

	without *testcaddy.Client // of the site without not_found
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
	for i, p := range places {
		p.port = strconv.Itoa(1 + i)
	}
	file := testcaddy.TempFile(t, "file.txt", strings.Repeat("a file ", 100))
	known := strings.NewReplacer(
		"BACKEND", testcaddy.Backend(t, generatedBackend),
		"ROOT", testcaddy.Quote(filepath.Dir(file)),
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
		caddy := testcaddy.StartQuiet(t, known.Replace(caddyfile), "order go before not_found")
		for _, p := range places {
			p.client = testcaddy.HTTP11(t, caddy.Addrs[p.port])
		}
		for _, s := range sites {
			s.without = without.client
			for range 6 {
				e := exchange{method: s.of(grammar["method"]), path: s.of(grammar["path"])}
				if e.method == http.MethodPost {
					e.body = "a=b"
				}
				s.compare(t, e, dry, without, isSame)
				s.compare(t, e, partlyDry, partly, isSame)
				s.compare(t, e, all, without, s.rules()...)
			}
		}
	}
}

// rule is what holds for the responses of a site with two places in it.
type rule struct {
	says  string
	holds func(e exchange, got, other seen) bool
}

// compare asks the site with two places in it. Where they break a rule, they have another chance only if the response
// also varies without not_found, so that the request itself is not deterministic, or if a connection was reset. TCP may
// do that to a response whose server closes the connection with a part of the request's body unread.
func (s *generatedSite) compare(t *testing.T, e exchange, one, other *place, rules ...rule) {
	t.Helper()
	for chances := 4; ; chances-- {
		got := e.over(one.client, s.host)
		ofOther := e.over(other.client, s.host)
		broken := slices.IndexFunc(rules, func(r rule) bool {
			return !r.holds(e, got, ofOther)
		})
		if broken < 0 {
			return
		}
		isReset := got.status == 0 || ofOther.status == 0
		if chances > 0 && (isReset || s.varies(t, e)) {
			continue
		}
		says := rules[broken].says
		t.Errorf("%s: %s Got, with %q,\n%s\nand with %q\n%s", e, says, one.directives, got, other.directives, ofOther)
		t.Logf("Of the seed %d, the site %s is\n%s\nand its named routes are\n%q", *generatedSeed, s.host, s.text, s.routes)
		return
	}
}

// varies reports whether the response without not_found is not always the same.
func (s *generatedSite) varies(t *testing.T, e exchange) bool {
	t.Helper()
	first := e.over(s.without, s.host)
	for range 50 {
		next := e.over(s.without, s.host)
		if !reflect.DeepEqual(next, first) {
			t.Logf("%s to %s varies without not_found: got\n%s\nand then\n%s", e, s.host, first, next)
			return true
		}
	}
	return false
}

var isSame = rule{
	says:  "A dry run has to change nothing.",
	holds: func(_ exchange, got, other seen) bool { return reflect.DeepEqual(got, other) },
}

// rules returns what holds with replace all. The page answers errors, which intercept and error routes then do not see.
func (s *generatedSite) rules() (rules []rule) {
	hasErrorRoute := s.has("handle_errors")
	hasIntercept := s.has("intercept")
	hasInner := s.has("not_found")
	if !hasErrorRoute && (s.isOutermost() || !hasIntercept) {
		rules = append(rules, rule{"This has to pass.", s.answerPasses})
	}
	if !s.isOutermost() {
		return rules // something further out may change the page
	}
	rules = append(rules, rule{"This has to be the page, or the same.", s.isPageOrSame})
	if !hasErrorRoute && !hasInner {
		rules = append(rules, rule{"This has to be the page.", s.missingIsPage})
	}
	if !hasErrorRoute && !hasIntercept && hasInner {
		rules = append(rules, rule{"The page of an inner handler has to stand.", s.innerStands})
	}
	return rules
}

func (s *generatedSite) isPageOrSame(e exchange, got, without seen) bool {
	return s.isPage(e, got, "") || reflect.DeepEqual(got, without)
}

func (s *generatedSite) missingIsPage(e exchange, got, without seen) bool {
	return without.status != http.StatusNotFound || s.isPage(e, got, "")
}

// answerPasses leaves out an empty 200, which may mean that nothing answered, unless it has the field of silent.
func (s *generatedSite) answerPasses(_ exchange, got, without seen) bool {
	isEmpty := without.status == http.StatusOK && without.content == "" && without.header.Get("Allow") == ""
	isAnswer := without.status != http.StatusNotFound && !isEmpty && without.err == "<nil>"
	return !isAnswer || reflect.DeepEqual(got, without)
}

func (s *generatedSite) innerStands(e exchange, got, without seen) bool {
	isInner := s.isPage(e, without, "/nested") || s.isPage(e, without, "/sibling")
	return !isInner || reflect.DeepEqual(got, without)
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
