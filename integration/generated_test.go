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
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

var (
	generatedSites = flag.Int("sites", 40, "how many sites TestGeneratedSites makes")
	generatedSeed  = flag.Uint64("seed", 4, "which sites TestGeneratedSites makes")
)

// grammar generates sites. A word in angle brackets stands for one of its productions. At PLACE is not_found, or a directive
// that watches what comes back there; at DRY may be a dry run.
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
		"", "", "header X-Site yes", "header Content-Language de", "header Content-Encoding gzip", "header CDN-Cache-Control max-age=60",
		"header {\nExpires \"Thu, 01 Dec 2050 16:00:00 GMT\"\nX-Accel-Expires 60\nETag `\"site\"`\n}", "header {\nX-Deferred yes\n-Server\ndefer\n}",
		"header Content-Security-Policy \"default-src 'self'\"", "header Vary Origin",
	},
	"block":     {"<directive>", "<directive>\n<directive>", "<directive>\n<directive>\n<directive>"},
	"responses": {"<response>\n<block>", "<response>\n<response>\n<block>", "<block>"},
	"directive": {"<leaf>", "<leaf>", "<leaf>", "<leaf>", "<within>", "<within>", "<within>", "<middleware>", "<nested>"},
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
		"rewrite<match> <path>", "forward_auth<match> BACKEND {\nuri <path>\ncopy_headers X-User\n}", "header<match> X-Inner yes", "header<match> X-Keep yes",
		"request_header<match> X-Inner yes", "method<match> GET", "route<match> {\nDRY\nroute {\n<block>\n}\n}",
	},
	"nested": {
		"not_found<match> {\ncontext_path /nested\n<mode>\n}",
		"not_found<match> {\ncontext_path /nested\n<mode>\n}\nnot_found<match> {\ncontext_path /sibling\n<mode>\n}\nnot_found",
		"handle<match> {\nnot_found {\n<mode>\n}\n<block>\n}",
	},
	"mode":   {"", "replace all", "replace none", "keep header X-Keep *", "replace all\nkeep header X-Keep *"},
	"match":  {"", "", " <path>", " <path>*"},
	"path":   {"/length", "/json", "/object", "/object", "/none", "/gzip", "/trailers", "/early-hints", "/keep", "/ok", "/204", "/500", "/accel", "/file.txt", "/missing", "/abort"},
	"status": {"200", "404", "410"},
	"codes":  {"", "", " 404", " 410", " 4xx"},
}

// A generatedSite is a random site, and the source of the requests to it. Both depend on the seed alone.
type generatedSite struct {
	*rand.Rand
	name, text  string
	named       []string // its routes that have a name
	isOutermost bool     // the client gets what PLACE writes
}

func generateSite(seed uint64, i int) *generatedSite {
	s := &generatedSite{Rand: rand.New(rand.NewPCG(seed, uint64(i))), name: fmt.Sprint("g", i)}
	s.text = s.expand("site", 0)
	s.isOutermost = strings.HasPrefix(s.text, "PLACE") || strings.Contains(s.text, "handle_errors {\nPLACE") ||
		strings.Contains(s.text, "reverse_proxy BACKEND {\nhandle_response {\nPLACE")
	return s
}

var symbolPattern = regexp.MustCompile(`<([a-z ]+)>`)

// expand expands a symbol. Deep in a site, a directive is a leaf.
func (s *generatedSite) expand(symbol string, depth int) string {
	switch {
	case symbol == "named":
		return s.namedRoute(depth)
	case symbol == "directive" && depth > 8:
		symbol = "leaf"
	}
	return symbolPattern.ReplaceAllStringFunc(s.of(grammar[symbol]), func(found string) string {
		return s.expand(found[1:len(found)-1], depth+1)
	})
}

func (s *generatedSite) of(choices []string) string { return choices[s.IntN(len(choices))] }

// namedRoute returns the name of a new route, or of one that the site has.
func (s *generatedSite) namedRoute(depth int) string {
	if i := s.IntN(len(s.named) + 1); i < len(s.named) {
		return fmt.Sprint(s.name, "-", i)
	}
	block := s.expand("block", depth+1) // it may invoke other named routes, but not itself
	s.named = append(s.named, block)
	return fmt.Sprint(s.name, "-", len(s.named)-1)
}

// has reports whether the site has a directive besides the one at the place.
func (s *generatedSite) has(directive string) bool {
	return strings.Contains(s.text+strings.Join(s.named, ""), directive)
}

// cameBack is the field in which watch says what came back. A response that has to pass has none.
const (
	cameBack         = "X-Came-Back"
	cameBackResponse = "a 404 response"
)

// watch observes what comes back from the next handlers.
func watch(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	handled, _ := r.Context().Value(caddyhttp.ErrorCtxKey).(error)
	is404 := func(err error) bool {
		he, ok := err.(caddyhttp.HandlerError)
		return ok && he.StatusCode == http.StatusNotFound
	}
	reachedEnd := func() bool { return caddyhttp.GetVar(r.Context(), "unhandled") == true }

	answered := false
	rec := caddyhttp.NewResponseRecorder(w, new(bytes.Buffer), func(status int, header http.Header) (hold bool) {
		switch {
		case 100 <= status && status < 200:
			return false
		case reachedEnd() && (status == 0 || status == http.StatusOK && strings.Trim(header.Get("Content-Length"), "0") == ""):
			return true // no answer, unless a body follows
		case status == http.StatusNotFound:
			header.Set(cameBack, cameBackResponse)
		}
		answered = true
		return false
	})
	err := next.ServeHTTP(rec, r)
	intercepted, _ := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Get("http.intercept.status_code") // its routes end without the mark
	switch {
	case answered, handled != nil && !is404(handled):
	case rec.Size() > 0:
		return rec.WriteResponse()
	case is404(err), err != nil && handled != nil:
		w.Header().Set(cameBack, "a 404 error")
	case err == nil && (reachedEnd() || intercepted != nil && intercepted != 0):
		w.Header().Set(cameBack, "the end of the chain")
	}
	return err
}

var cameBackPattern = regexp.MustCompile(`(?m)^` + cameBack + `: \["(.*)"\]\n`)
var describesPattern = regexp.MustCompile(`(?m)^(Content-Encoding|Etag|Expires|Cdn-Cache-Control|X-Accel-Expires|Content-Disposition|Last-Modified|trailer .*): `)

// ask sends a request. It returns the transcript of the exchange, and what came back if the site watches.
func ask(c *testcaddy.Client, method, uri string) (seen, came string) {
	var body []byte
	if method == http.MethodPost {
		body = []byte("a=b")
	}
	seen = transcript(c, method, uri, body, "Accept-Encoding: gzip")
	if found := cameBackPattern.FindStringSubmatch(seen); found != nil {
		came = found[1]
	}
	return cameBackPattern.ReplaceAllString(seen, ""), came
}

// isPage reports whether a response is the page with this context path, without a field of another body.
func isPage(seen, method, uri, contextPath string) bool {
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
		if !strings.Contains("\n"+seen, "\n"+line+"\n") {
			return false
		}
	}
	return !describesPattern.MatchString(seen)
}

// difference says how a site's response breaks the rule, if it does.
func (s *generatedSite) difference(method, uri, with, without, came string) string {
	inner := isPage(without, method, uri, "/nested") || isPage(without, method, uri, "/sibling")
	switch {
	case with == without && (came == "" || s.has("not_found")):
		return ""
	case without == "*fmt.wrapError": // malformed, because a handler added to the header of another
		return ""
	case !s.isOutermost && came != "": // its response may be replaced further out
		return ""
	case without == "*errors.errorString" && (!s.isOutermost || s.has("handle_errors")):
		return "" // an error route may abort, and intercept panics over the end of a chain
	case came == "":
		return "This has to pass."
	case !isPage(with, method, uri, ""):
		return "This has to be the page."
	case inner && came == cameBackResponse && !s.has("intercept"): // an error reaches the error routes without not_found
		return "The inner one has decided."
	}
	return ""
}

// withoutVary returns a transcript without Vary, to which a response adds fields if it passes because of its body.
func withoutVary(seen string) string { return varyPattern.ReplaceAllString(seen, "") }

var varyPattern = regexp.MustCompile(`(?m)^Vary: .*\n`)

// isObject reports whether what came back is JSON under another label, as far as not_found can see.
func isObject(seen, came string) bool {
	return (came == "" || came == cameBackResponse) && !strings.Contains(seen, "\nContent-Encoding: ") && strings.Contains(seen, fmt.Sprintf("\n%d %x <nil>\n", len(object), sha256.Sum256([]byte(object))))
}

// generatedBackend answers by the path.
func generatedBackend(w http.ResponseWriter, r *http.Request) {
	h, status, contentType, content := w.Header(), 200, "text/html", "<h1>theirs</h1>"
	h.Set("X-User", "me")
	switch r.URL.Path {
	case "/json":
		status, contentType = 404, "application/json"
	case "/keep":
		h.Set("X-Keep", "1")
		status = 404
	case "/object":
		status, contentType, content = 404, "text/plain", object
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

// object is JSON under another label, which passes.
const object = `{"error":"none"}`

const (
	dryRun      = "not_found {\ndry_run\n}"
	replacesAll = "not_found {\nreplace all\n}"
)

// generatedPlaces are what stands at PLACE and at DRY, in pairs: the first shows what the second must do.
var generatedPlaces = [...]struct{ place, dry string }{
	{"WATCH", ""}, {replacesAll, dryRun}, // the rule, with dry runs inside
	{"", ""}, {dryRun, dryRun}, // a dry run outside others changes nothing
	{"@live not path /json /length\nnot_found @live {\nreplace all\n}", ""}, {"@dry path /json /length\nnot_found @dry {\ndry_run\n}\n" + replacesAll, dryRun},
	{"", ""}, {"not_found", dryRun}, // of the 404 responses, JSON passes
}

// TestGeneratedSites compares random sites with and without not_found. The client gets the page, or exactly the same response.
// With a dry run, it always gets the same.
func TestGeneratedSites(t *testing.T) {
	root := filepath.Dir(testcaddy.TempFile(t, "file.txt", strings.Repeat("a file ", 100)))
	known := strings.NewReplacer("BACKEND", testcaddy.Backend(t, generatedBackend), "ROOT", root, "SILENT", testcaddy.Directive(t, silent), "WATCH", testcaddy.Directive(t, watch))
	var ports [len(generatedPlaces)]string
	for i := range ports {
		ports[i] = testcaddy.FreePort(t)
	}
	responses := make(map[bool]int)                         // by whether they are pages
	for first := 0; first < *generatedSites; first += 200 { // of one Caddy
		var sites []*generatedSite
		var caddyfile strings.Builder
		for i := first; i < min(first+200, *generatedSites); i++ {
			s := generateSite(*generatedSeed, i)
			sites = append(sites, s)
			for place, at := range generatedPlaces {
				made := strings.NewReplacer("PLACE", at.place, "DRY", at.dry, s.name+"-", fmt.Sprintf("%s-%d-", s.name, place)) // named routes, too
				fmt.Fprintf(&caddyfile, "http://%s.test:%s {\n%s\n}\n", s.name, ports[place], made.Replace(s.text))
				for i, block := range s.named {
					fmt.Fprintf(&caddyfile, "&(%s-%d-%d) {\n%s\n}\n", s.name, place, i, made.Replace(block))
				}
			}
		}
		testcaddy.StartQuiet(t, known.Replace(caddyfile.String()), "order go before not_found")
		var clients [len(generatedPlaces)]*testcaddy.Client
		for i, port := range ports {
			clients[i] = testcaddy.HTTP11(t, "127.0.0.1:"+port)
		}
		for i, s := range sites {
			for range 6 {
				method, uri := s.of([]string{"GET", "GET", "HEAD", "POST"}), "http://"+s.name+".test"+s.of(grammar["path"])
				var watched string
				for place := 0; place < len(generatedPlaces); place += 2 {
					var with, without, came string
					difference := "not asked yet"
					for tries := 0; difference != "" && tries < 4; tries++ { // Caddy's own answers vary
						without, came = ask(clients[place], method, uri)
						with, _ = ask(clients[place+1], method, uri)
						switch {
						case place == 0:
							difference = s.difference(method, uri, with, without, came)
							watched = came
						case with == without || withoutVary(with) == withoutVary(without) || generatedPlaces[place+1].place == "not_found" && !(s.isOutermost && isObject(without, watched)):
							difference = ""
						case generatedPlaces[place+1].place == "not_found":
							difference = "JSON has to pass."
						default:
							difference = "A dry run has to change nothing."
						}
					}
					if difference != "" {
						t.Errorf("%s %s, where %q came back: %s Got, with %s,\n%s\nand without it\n%s\nSite %d of the seed %d is\n%s\nand its named routes are\n%s",
							method, uri, watched, difference, generatedPlaces[place+1].place, with, without, first+i, *generatedSeed, s.text, strings.Join(s.named, "\n\n"))
					}
					responses[isPage(with, method, uri, "")]++
				}
			}
		}
	}
	if responses[true] < responses[false]/10 || responses[false] < responses[true]/10 {
		t.Errorf("the sample is lopsided: %d responses are pages, and %d are not", responses[true], responses[false])
	}
}
