package integration

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

var (
	generatedSites = flag.Int("sites", 40, "how many sites TestGeneratedSites makes")
	generatedSeed  = flag.Uint64("seed", 1, "which sites TestGeneratedSites makes")
)

// grammar says what a generated site may have. A word in angle brackets stands for one of its productions. PLACE is where
// not_found stands, or in another site the directive that watches what comes back there.
var grammar = map[string][]string{
	"site": { // without another not_found in the same block, which might not take effect
		"PLACE\n<fields>\nhandle {\n<block>\n}",
		"PLACE\n<fields>\nroute {\n<block>\n}",
		"PLACE\n<fields>\nhandle {\n<block>\n}\nhandle_errors<codes> {\n<block>\n}",
		"<fields>\n<block>\n<error>\nhandle_errors {\nPLACE\nhandle {\n<block>\n}\n}",
		"<fields>\nreverse_proxy BACKEND {\nhandle_response {\nPLACE\nroute {\n<responses>\n}\n}\n}",
		"<fields>\n<block>\nhandle<match> {\nPLACE\nhandle {\n<block>\n}\n}\n<directive>",
		"<fields>\nroute {\n<directive>\nPLACE\nroute {\n<block>\n}\n}",
	},
	"fields": {
		"", "", "header X-Site yes", "header Content-Language de", "header Content-Encoding gzip", "header CDN-Cache-Control max-age=60",
		"header {\nExpires \"Thu, 01 Dec 2050 16:00:00 GMT\"\nX-Accel-Expires 60\nETag `\"site\"`\n}", "header {\nX-Deferred yes\n-Server\ndefer\n}",
		"header Content-Security-Policy \"default-src 'self'\"", "header Vary Origin",
	},
	"block":     {"<directive>", "<directive>\n<directive>", "<directive>\n<directive>\n<directive>"},
	"responses": {"<response>\n<block>", "<response>\n<response>\n<block>", "<block>"},
	"directive": {
		"<leaf>", "<leaf>", "<leaf>", "<leaf>", "<within>", "<within>", "<within>", "<middleware>", "<nested>",
	},
	"leaf": {
		"respond<match> theirs", "respond<match> 200", "respond<match> \"no such thing\" 404", "respond<match> 404", "respond<match> gone 410",
		"route<match> {\nheader Content-Type application/json\nrespond \"{}\" 404\n}", "<error>", "redir <path> /elsewhere", "abort /abort",
		"file_server<match> {\nroot ROOT\n}", "handle <path> {\nSILENT\n}", "reverse_proxy<match> BACKEND", "reverse_proxy<match> BACKEND", "reverse_proxy<match> BACKEND",
	},
	"error": {"error<match> 404", "error<match> \"no such thing\" 404", "error<match> 410", "error<match> 500"},
	"within": {
		"handle<match> {\n<block>\n}", "route<match> {\n<block>\n}", "handle_path <path>* {\n<block>\n}", "invoke<match> <named>",
		"reverse_proxy<match> BACKEND {\n@r <response matcher>\nhandle_response @r {\n<responses>\n}\n}",
		"reverse_proxy<match> BACKEND {\n@r <response matcher>\nhandle_response @r {\n<responses>\n}\nhandle_response {\n<responses>\n}\n}",
		"intercept<match> {\n@r <response matcher>\nhandle_response @r {\n<block>\n}\n}",
	},
	"response":         {"copy_response", "copy_response 404", "copy_response 410", "copy_response_headers", "copy_response_headers", "<directive>"},
	"response matcher": {"status 404", "status 4xx", "status 200", "status 2xx", "header X-Accel-Redirect *", "header Content-Type text/html*"},
	"middleware": {
		"intercept<match> {\n@r <response matcher>\nreplace_status @r <status>\n}", "templates<match>", "encode<match> {\nminimum_length 1\n}",
		"rewrite<match> <path>", "forward_auth<match> BACKEND {\nuri <path>\ncopy_headers X-User\n}", "header<match> X-Inner yes",
		"request_header<match> X-Inner yes", "method<match> GET",
	},
	"nested": {
		"not_found<match> {\ncontext_path /nested\n<mode>\n}",
		"not_found<match> {\ncontext_path /nested\n<mode>\n}\nnot_found<match> {\ncontext_path /sibling\n<mode>\n}\nnot_found",
		"handle<match> {\nnot_found {\n<mode>\n}\n<block>\n}",
	},
	"mode":   {"", "replace all", "replace none", "keep header X-Keep *", "replace all\nkeep header X-Keep *"},
	"match":  {"", "", " <path>", " <path>*"},
	"path":   {"/length", "/json", "/none", "/gzip", "/trailers", "/early-hints", "/keep", "/ok", "/204", "/500", "/accel", "/file.txt", "/missing", "/abort"},
	"status": {"200", "404", "410"},
	"codes":  {"", "", " 404", " 410", " 4xx"},
}

// generator makes sites of the grammar. What it makes depends on its seed alone.
type generator struct {
	*rand.Rand
	named []string // the routes of the site that have a name
	name  string   // of the site
}

var symbolPattern = regexp.MustCompile(`<([a-z ]+)>`)

// expand makes something of a symbol. Deep in a site, a directive is a leaf.
func (g *generator) expand(symbol string, depth int) string {
	switch {
	case symbol == "named":
		return g.namedRoute(depth)
	case symbol == "directive" && depth > 8:
		symbol = "leaf"
	}
	productions := grammar[symbol]
	if len(productions) == 0 {
		panic("no productions for " + symbol)
	}
	return symbolPattern.ReplaceAllStringFunc(productions[g.IntN(len(productions))], func(found string) string {
		return g.expand(found[1:len(found)-1], depth+1)
	})
}

// namedRoute returns the name of a route, perhaps of one that the site has already.
func (g *generator) namedRoute(depth int) string {
	if i := g.IntN(len(g.named) + 1); i < len(g.named) {
		return fmt.Sprint(g.name, "-", i)
	}
	block := g.expand("block", depth+1) // which may have named routes of its own, but does not invoke itself
	g.named = append(g.named, block)
	return fmt.Sprint(g.name, "-", len(g.named)-1)
}

// A generatedSite is two sites: one with not_found, and one in which a directive watches what comes back at its place.
type generatedSite struct {
	name, text, mode string
	named            []string
	isOutermost      bool // what it writes is what the client gets
}

func generateSite(seed uint64, i int) generatedSite {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(i))), name: fmt.Sprint("g", i)}
	s := generatedSite{name: g.name, text: g.expand("site", 0), mode: g.expand("mode", 0), named: g.named}
	s.isOutermost = strings.HasPrefix(s.text, "PLACE") || strings.Contains(s.text, "handle_errors {\nPLACE") ||
		strings.Contains(s.text, "reverse_proxy BACKEND {\nhandle_response {\nPLACE")
	return s
}

// has reports whether the site has a directive besides the one at the place.
func (s generatedSite) has(directive string) bool {
	return strings.Contains(s.text+strings.Join(s.named, ""), directive)
}

// What a watching directive says in the field X-Came-Back. It says nothing of any other response, which has to pass.
const (
	cameBack  = "X-Came-Back"
	theEnd    = "the end of the chain"
	a404Error = "a 404 error"
	a404      = "a 404 response|" // its Content-Type and Content-Length follow
)

// watch observes what comes back from the next handlers.
func watch(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	handled, _ := r.Context().Value(caddyhttp.ErrorCtxKey).(error)
	is404 := func(err error) bool {
		he, ok := err.(caddyhttp.HandlerError)
		return ok && he.StatusCode == http.StatusNotFound
	}
	reachedEnd := func() bool { return caddyhttp.GetVar(r.Context(), "unhandled") == true }

	left := w.Header().Clone() // by a handler that failed
	answered := false
	rec := caddyhttp.NewResponseRecorder(w, new(bytes.Buffer), func(status int, header http.Header) (hold bool) {
		contentType, length := header.Get("Content-Type"), header.Get("Content-Length")
		switch {
		case 100 <= status && status < 200:
			return false
		case reachedEnd() && (status == 0 || status == http.StatusOK):
			return true // this stands for no answer, unless a body follows
		case status != http.StatusNotFound:
		case is404(handled) && contentType == left.Get("Content-Type") && length == left.Get("Content-Length"): // as Caddy ends the error routes of a 404
			header.Set(cameBack, a404Error)
		default:
			header.Set(cameBack, a404+contentType+"|"+length)
		}
		answered = true
		return false
	})
	err := next.ServeHTTP(rec, r)
	switch {
	case answered, handled != nil && !is404(handled):
	case rec.Size() > 0:
		return rec.WriteResponse()
	case is404(err), err != nil && handled != nil:
		w.Header().Set(cameBack, a404Error)
	case err == nil && reachedEnd():
		w.Header().Set(cameBack, theEnd)
	}
	return err
}

// A seenResponse is the transcript of an exchange, without what the watcher says.
type seenResponse string

var (
	cameBackPattern  = regexp.MustCompile(`(?m)^` + cameBack + `: \["(.*)"\]\n`)
	describesPattern = regexp.MustCompile(`(?m)^(Content-Encoding|Etag|Expires|Cdn-Cache-Control|X-Accel-Expires|Content-Disposition|Last-Modified|trailer .*): `)
	staysPattern     = regexp.MustCompile(`(?m)^(103 |(Set-Cookie|Access-Control-Allow-Origin|X-Site|X-Inner|X-Deferred|X-User): ).*$`)
)

// ask sends a request, and says what came back if the site watches it.
func ask(c *testcaddy.Client, method, uri string) (seen seenResponse, came string) {
	var body []byte
	if method == http.MethodPost {
		body = []byte("a=b")
	}
	text := transcript(c, method, uri, body, "Accept-Encoding: gzip")
	if found := cameBackPattern.FindStringSubmatch(text); found != nil {
		came = found[1]
	}
	return seenResponse(cameBackPattern.ReplaceAllString(text, "")), came
}

// isPage reports whether a response is a page with this context path, and describes nothing else.
func (seen seenResponse) isPage(method, uri, contextPath string) bool {
	body := testcaddy.TextPage(strings.Replace(method, http.MethodHead, http.MethodGet, 1), uri, contextPath)
	length := len(body)
	if method == http.MethodHead {
		body = ""
	}
	for _, line := range []string{
		"HTTP/1.1 404 Not Found []",
		`Content-Type: ["text/plain; charset=utf-8"]`,
		fmt.Sprintf("Content-Length: [\"%d\"]", length),
		fmt.Sprintf("%d %x <nil>", len(body), sha256.Sum256([]byte(body))),
	} {
		if !strings.Contains("\n"+string(seen), "\n"+line+"\n") {
			return false
		}
	}
	return !describesPattern.MatchString(string(seen))
}

// wantsPage is the rule: it reports whether the page has to take the place of what came back.
func (s generatedSite) wantsPage(method, came string, without seenResponse) bool {
	described, isResponse := strings.CutPrefix(came, a404)
	contentType, length, _ := strings.Cut(described, "|")
	switch {
	case !isResponse:
		return came != ""
	case strings.Contains(s.mode, "none"), strings.Contains(s.mode, "keep") && strings.Contains(string(without), "\nX-Keep: "):
		return false
	case strings.Contains(s.mode, "all"), length == "0" && method != http.MethodHead:
		return true
	}
	return contentType == "" || strings.HasPrefix(contentType, "text/html") || strings.HasPrefix(contentType, "text/plain")
}

// difference says how what a client sees of the site breaks the rule.
func (s generatedSite) difference(method, uri string, with, without seenResponse, came string) string {
	wants := s.wantsPage(method, came, without)
	inner := without.isPage(method, uri, "/nested") || without.isPage(method, uri, "/sibling")
	switch {
	case with == without && (!wants || s.has("not_found")):
		return ""
	case without == "*fmt.wrapError": // malformed, because a handler added to the header of another
		return ""
	case !s.isOutermost && came != "": // what it writes may not arrive
		return ""
	case without == "*errors.errorString" && (!s.isOutermost || s.has("handle_errors")):
		return "" // an error route may abort, and intercept panics over the end of a chain
	case came == "", !wants && !s.has("not_found"):
		return "This has to pass."
	case !with.isPage(method, uri, ""):
		return "This has to be the page."
	case came == theEnd, came == a404Error:
		return ""
	case inner && !s.has("intercept"), !wants:
		return "The inner one has decided."
	case !slices.Equal(staysPattern.FindAllString(string(with), -1), staysPattern.FindAllString(string(without), -1)):
		return "The rest of the header has to stay."
	case strings.HasPrefix(s.text, "PLACE") && strings.Contains(string(with), `: ["theirs"]`):
		return "The header is that of the other content."
	}
	return ""
}

// generatedBackend answers as a path says.
func generatedBackend(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-User", "me")
	h.Set("Content-Language", "theirs")
	status, contentType, content := 200, "text/html", "<h1>theirs</h1>"
	switch r.URL.Path {
	case "/json":
		status, contentType = 404, "application/json"
	case "/keep":
		h.Set("X-Keep", "1")
		status = 404
	case "/ok", "/file.txt":
	case "/204":
		w.WriteHeader(204)
		return
	case "/500":
		status = 500
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

// TestGeneratedSites makes sites at random, and has each of them with not_found and, in its place, with a directive that
// watches. What the client gets is the page, or exactly what it gets from the other site.
func TestGeneratedSites(t *testing.T) {
	file := testcaddy.TempFile(t, "file.txt", strings.Repeat("a file ", 100))
	known := strings.NewReplacer("BACKEND", testcaddy.Backend(t, generatedBackend), "ROOT", filepath.Dir(file), "SILENT", testcaddy.Directive(t, silent))
	watching := testcaddy.Directive(t, watch)
	port, watchedPort := testcaddy.FreePort(t), testcaddy.FreePort(t)
	pages, others := 0, 0
	const batch = 200 // of sites of one Caddy
	for first := 0; first < *generatedSites; first += batch {
		var sites []generatedSite
		var caddyfile strings.Builder
		for i := first; i < min(first+batch, *generatedSites); i++ {
			s := generateSite(*generatedSeed, i)
			sites = append(sites, s)
			for place, port := range map[string]string{"not_found {\n" + s.mode + "\n}": port, watching: watchedPort} {
				fmt.Fprintf(&caddyfile, "http://%s.test:%s {\n%s\n}\n", s.name, port, strings.Replace(s.text, "PLACE", place, 1))
			}
			for i, block := range s.named {
				fmt.Fprintf(&caddyfile, "&(%s-%d) {\n%s\n}\n", s.name, i, block)
			}
		}
		testcaddy.StartQuiet(t, known.Replace(caddyfile.String()), "order go before not_found")
		client, watchedClient := testcaddy.HTTP11(t, "127.0.0.1:"+port), testcaddy.HTTP11(t, "127.0.0.1:"+watchedPort)
		for i, s := range sites {
			g := rand.New(rand.NewPCG(*generatedSeed, uint64(first+i)))
			for range 6 {
				method := []string{"GET", "GET", "HEAD", "POST"}[g.IntN(4)]
				uri := "http://" + s.name + ".test" + grammar["path"][g.IntN(len(grammar["path"]))]
				var with, without seenResponse
				var came string
				difference := "not asked yet"
				for tries := 0; difference != "" && tries < 4; tries++ { // Caddy alone answers otherwise from time to time
					with, _ = ask(client, method, uri)
					without, came = ask(watchedClient, method, uri)
					difference = s.difference(method, uri, with, without, came)
				}
				if difference != "" {
					t.Errorf("%s %s, where %q came back: %s Got\n%s\nand without not_found\n%s\nSite %d of the seed %d is\n%s\nwith %q, and its named routes are\n%s",
						method, uri, came, difference, with, without, first+i, *generatedSeed, s.text, s.mode, strings.Join(s.named, "\n\n"))
				}
				if with.isPage(method, uri, "") {
					pages++
				} else {
					others++
				}
			}
		}
	}
	t.Logf("%d responses are pages, %d are others", pages, others)
	if pages < others/10 || others < pages/10 {
		t.Error("the sites are no fair sample")
	}
}
