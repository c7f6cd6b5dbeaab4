package integration

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestRecipes runs each example, and each Caddyfile in the documents, with stand-ins for what it proxies to and with
// files in the folders that it serves. testdata/recipes.txt has the requests, and what has to come of them. A
// stand-in says its port in the field From, which stays on a page, and does what the end of the path says.
func TestRecipes(t *testing.T) {
	promises := make(map[string]string)
	for _, promise := range strings.Split(readFile(t, "testdata/recipes.txt"), "\n== ")[1:] {
		name, lines, _ := strings.Cut(promise, "\n")
		promises[name] = lines
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Chdir("..") // where the paths in the examples begin
	recipes := recipes(t)
	for name := range promises {
		if recipes[name] == "" {
			t.Errorf("there is no recipe %q, only %q", name, slices.Sorted(maps.Keys(recipes)))
		}
	}
	for name, caddyfile := range recipes {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(promises[name], " → ") {
				t.Fatal("testdata/recipes.txt asks nothing of this recipe")
			}
			perform(t, caddyfile, promises[name])
		})
	}
}

// recipes returns the Caddyfiles of the examples, by their folders, and those in the documents, by their headings.
func recipes(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, file := range glob(t, "examples/*/Caddyfile") {
		found[filepath.Base(filepath.Dir(file))] = readFile(t, file)
	}
	headingOrCode := regexp.MustCompile("(?ms)^#+ (.*?)\n|^ *```(.*?)\n(.*?)^ *```$")
	for _, file := range documents(t) {
		name := ""
		n := 0 // of the Caddyfiles under a heading
		for _, match := range headingOrCode.FindAllStringSubmatch(readFile(t, file), -1) {
			heading, language, code := match[1], match[2], match[3]
			switch {
			case heading != "":
				name = file + ": " + heading
				n = 0
			case language == "caddyfile" && n == 0:
				found[name] = code
				n++
			case language == "caddyfile":
				n++
				found[fmt.Sprintf("%s, %d", name, n)] = code
			}
		}
	}
	return found
}

// clients are what they send.
var clients = map[string]http.Header{
	"browser": {
		"Accept":         {"text/html,application/xhtml+xml,*/*;q=0.8"},
		"Sec-Fetch-Mode": {"navigate"},
		"Sec-Fetch-Dest": {"document"},
	},
	"script": {
		"Accept":         {"*/*"},
		"Sec-Fetch-Mode": {"cors"},
		"Sec-Fetch-Dest": {"empty"},
	},
	"turbo": {
		"Accept":         {"text/html, application/xhtml+xml"},
		"Sec-Fetch-Mode": {"cors"},
		"Sec-Fetch-Dest": {"empty"},
	},
}

// perform has a recipe at work, and does what the lines of its row say.
func perform(t *testing.T, caddyfile, row string) {
	var lines, swap, down []string
	for line := range strings.Lines(row) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "swap":
			swap = strings.Fields(rest)
		case "down":
			down = strings.Fields(rest)
		case "":
		default:
			lines = append(lines, line)
		}
	}
	s := stage(t, strings.NewReplacer(swap...).Replace(caddyfile), down)
	for _, line := range lines {
		asked, want, ok := strings.Cut(line, " → ")
		if !ok {
			t.Errorf("nothing has to come of %q", line)
			continue
		}
		words := strings.Split(asked, " | ")
		what, of, _ := strings.Cut(words[0], " ")
		isPlain := len(words) > 1
		got := ""
		switch what {
		case "report":
			got = s.report(t, want)
		case "log":
			host, field, _ := strings.Cut(of, " ")
			want = withFields(want, s.last)
			got = s.logged(t, host, field, len(strings.Split(want, ", ")))
		case "replaced", "kept", "added":
			got = countByClient(s.replaced(t, of, isPlain), s.replaced(t, "localhost:1", isPlain), what)
		default:
			s.expect(t, asked, words, want)
			continue
		}
		if got != want {
			t.Errorf("%s: got\n\t%s\nwant\n\t%s", asked, got, want)
		}
	}
}

// expect sends a request, and compares the response with the parts that it has to have, and those that it must not
// have.
func (s *staged) expect(t *testing.T, asked string, words []string, want string) {
	t.Helper()
	method, url, ok := strings.Cut(words[0], " ")
	if !ok {
		method, url = http.MethodGet, words[0]
	}
	url = "http://" + url
	header := make(http.Header)
	for _, word := range words[1:] {
		field, value, isField := strings.Cut(word, ": ")
		if isField {
			header.Add(field, value)
		}
		maps.Copy(header, clients[word])
	}
	s.last = s.ask(t, method, url, header)
	if rest, ok := strings.CutPrefix(want, "page"); ok {
		want = "404 text/plain & HTTP ERROR 404 No endpoint " + method + " /missing.html.\nURI: " + url + "\n" + rest
	}

	mediaType, _, _ := strings.Cut(s.last.Header.Get("Content-Type"), ";")
	got := fmt.Sprintln(s.last.StatusCode, mediaType)
	for field, values := range s.last.Header {
		got += field + ": " + strings.Join(values, ", ") + "\n"
	}
	got += "\n" + s.last.Content
	parts := strings.Split(withFields(want, s.last), " & ")
	isWanted := strings.HasPrefix(got, parts[0])
	for _, part := range parts[1:] {
		part, isUnwanted := strings.CutPrefix(part, "!")
		isWanted = isWanted && strings.Contains(got, part) != isUnwanted
	}
	if !isWanted {
		t.Errorf("%s: got\n%.900s\nwant %s", asked, got, strings.Join(parts, " & "))
	}
}

// logged returns the values that a field has in the access log of a host, once there are n.
func (s *staged) logged(t *testing.T, host, field string, n int) string {
	t.Helper()
	var values []string
	for _, e := range s.logs.WaitForHost(t, "handled request", host, n) {
		value, _ := e[field].(string)
		values = append(values, cmp.Or(value, "-"))
	}
	return strings.Join(values, ", ")
}

var fieldInBraces = regexp.MustCompile(`\{[\w-]+\}`)

// withFields puts the fields of a response in place of their names in braces.
func withFields(want string, res testcaddy.Response) string {
	return fieldInBraces.ReplaceAllStringFunc(want, func(name string) string {
		return res.Header.Get(strings.Trim(name, "{}"))
	})
}

// staged is a Caddy with a recipe.
type staged struct {
	client *testcaddy.Client
	logs   *testcaddy.Logs
	last   testcaddy.Response

	folders   string            // the folder that those of the recipe are in
	listeners map[string]string // by the ports of the recipe
	standIns  map[string]string // by the addresses of the recipe's upstreams
	down      []string          // the ports of upstreams that do not run
}

// stage runs a recipe, and beside it a bare not_found on port 1. Addresses, folders and TLS are those of the test,
// the rest of the config is as it is written.
func stage(t *testing.T, caddyfile string, down []string) *staged {
	t.Helper()
	s := &staged{
		logs:      testcaddy.NewLogs(t),
		folders:   t.TempDir(),
		listeners: make(map[string]string),
		standIns:  make(map[string]string),
		down:      down,
	}
	var config map[string]any
	base := testcaddy.Adapt(t, testcaddy.Caddyfile("", "log default {\n"+s.logs.Output+"\n}"))
	recipe := testcaddy.Adapt(t, caddyfile+"\nhttp://:1 {\n\tnot_found\n\treverse_proxy 127.0.0.1:2\n}\n")
	if err := errors.Join(json.Unmarshal(base, &config), json.Unmarshal(recipe, &config)); err != nil {
		t.Fatal(err)
	}
	apps := config["apps"].(map[string]any)
	delete(apps, "tls")
	delete(apps, "pki")
	walk(config, func(object map[string]any) { s.replaceIn(t, object) })
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	s.serveReport(t, http.MethodDelete)
	testcaddy.StartConfig(t, encoded)
	s.client = testcaddy.HTTP11(t, "")
	s.client.HTTP.Transport.(*http.Transport).DialContext = s.dial
	return s
}

// dial connects to the listener that the recipe has at an address.
func (s *staged) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	_, port, _ := net.SplitHostPort(addr)
	if port == "80" && s.listeners[port] == "" { // most recipes speak TLS, outside of the test
		port = "443"
	}
	return new(net.Dialer).DialContext(ctx, network, s.listeners[port])
}

// replaceIn replaces what an object of the config has of the world outside.
func (s *staged) replaceIn(t *testing.T, object map[string]any) {
	t.Helper()
	if listen, ok := object["listen"].([]any); ok {
		delete(object, "tls_connection_policies")
		object["automatic_https"] = map[string]any{"disable": true}
		_, port, _ := net.SplitHostPort(listen[0].(string))
		s.listeners[port] = "127.0.0.1:" + testcaddy.FreePort(t)
		listen[0] = s.listeners[port]
	}
	if root, ok := object["root"].(string); ok && filepath.IsAbs(root) {
		folder := filepath.Join(s.folders, root)
		object["root"] = folder
		for _, name := range []string{"index.html", "index.php", "hello.txt", "assets/app.js"} {
			file := filepath.Join(folder, name)
			_ = os.MkdirAll(filepath.Dir(file), 0o700)
			if err := os.WriteFile(file, []byte(root+" has "+name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	templates, _ := object["template"].(map[string]any)
	for format, file := range templates {
		if filepath.IsAbs(file.(string)) {
			templates[format] = "examples/brand/" + filepath.Base(file.(string))
		}
	}
	transport, _ := object["transport"].(map[string]any)
	upstreams, _ := object["upstreams"].([]any)
	for _, each := range upstreams {
		upstream := each.(map[string]any)
		upstream["dial"] = s.standIn(t, upstream["dial"].(string), transport["protocol"] == "fastcgi")
	}
}

// standIn returns the address of the stand-in for an upstream.
func (s *staged) standIn(t *testing.T, upstream string, isFastCGI bool) (addr string) {
	t.Helper()
	if addr := s.standIns[upstream]; addr != "" {
		return addr
	}
	_, port, _ := strings.Cut(upstream, ":")
	switch {
	case isFastCGI:
		addr = testcaddy.FastCGI(t, standIn("php"))
	case slices.Contains(s.down, port):
		addr = "127.0.0.1:" + testcaddy.FreePort(t)
	default:
		addr = testcaddy.Backend(t, standIn(port))
	}
	s.standIns[upstream] = addr
	return addr
}

// walk calls a function for each object of a JSON document.
func walk(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(v)
		for _, child := range v {
			walk(child, visit)
		}
	case []any:
		for _, child := range v {
			walk(child, visit)
		}
	}
}

// theirFields are those of 404s that are not only HTML, by the last segment of the path.
var theirFields = map[string]http.Header{
	"empty":           {"Content-Type": nil},
	"json":            {"Content-Type": {"application/json"}},
	"plain":           {"Content-Type": {"text/plain"}},
	"policy":          {"Content-Type": {"application/json"}, "Content-Security-Policy": {"default-src theirs"}},
	"labelled":        {"Content-Type": {"text/plain"}},
	"designed":        {"X-Error-Page": {"1"}},
	"german":          {"Content-Language": {"de"}},
	"german-designed": {"Content-Language": {"de"}, "Set-Cookie": {"designed=1"}},
	"french-designed": {"Content-Language": {"fr"}, "Set-Cookie": {"designed=1"}},
}

// standIn is an upstream that says who it is, and answers as the last segment of the path says: ok, or a 404 of its
// own.
func standIn(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if i, err := strconv.Atoi(r.Header.Get("X-Recorded")); err == nil {
			testcaddy.Recordings()[i].Replay(w)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		kind, _, _ := strings.Cut(path.Base(r.URL.Path), ".")
		w.Header().Set("From", name)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		maps.Copy(w.Header(), theirFields[kind])
		content := name + " lacks " + r.URL.Path
		status := http.StatusNotFound
		switch kind {
		case "ok", "index", "healthz":
			content = name + " has " + r.URL.Path
			status = http.StatusOK
		case "fails":
			status = http.StatusInternalServerError
		case "empty":
			content = ""
		case "labelled": // JSON as text, compressed if that is accepted
			content = `{"error":"` + content + `"}`
			if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				w.Header().Set("Content-Encoding", "gzip")
				content = compressed(content)
			}
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, content)
	}
}

func compressed(text string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

func (s *staged) ask(t *testing.T, method, url string, header http.Header) testcaddy.Response {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	return s.client.Send(t, req)
}

// serveReport asks for the report as the admin API has it.
func (s *staged) serveReport(t *testing.T, method string) (r report.Report) {
	t.Helper()
	module, err := caddy.GetModule("admin.api.not_found")
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	route := module.New().(caddy.AdminRouter).Routes()[0]
	_ = route.Handler.ServeHTTP(rec, httptest.NewRequest(method, "/not_found/report", nil))
	if rec.Body.Len() > 0 { // else no handler has reported yet
		if err := json.Unmarshal(rec.Body.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// report returns what was counted, once it is what it has to be, or nothing more comes.
func (s *staged) report(t *testing.T, want string) (got string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); got != want && time.Now().Before(deadline); {
		var counted []string
		for _, a := range s.serveReport(t, http.MethodGet).Addresses {
			counted = append(counted, a.Host+a.Path+" "+a.Outcomes.String())
		}
		slices.Sort(counted)
		got = strings.Join(counted, ", ")
	}
	return got
}

// replaced sends the recorded requests to a host, over plain HTTP without the fields that browsers send over HTTPS
// alone, and says which responses are pages.
func (s *staged) replaced(t *testing.T, host string, plain bool) (replaced []bool) {
	t.Helper()
	for i, r := range testcaddy.Recordings() {
		header := http.Header{"Accept-Encoding": {"identity"}} // or reverse_proxy decompresses what only says that it is
		maps.Copy(header, r.Request)
		header.Set("X-Recorded", strconv.Itoa(i))
		delete(header, "Content-Length")
		delete(header, "Keep-Alive")
		if plain {
			maps.DeleteFunc(header, func(field string, _ []string) bool { return strings.HasPrefix(field, "Sec-") })
		}
		res := s.ask(t, r.Method, "http://"+host+r.Target, header)
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("%s %s: got %s", r.Application, r.Target, res.Status)
		}
		replaced = append(replaced, res.Header.Get("Content-Location") == "")
	}
	return replaced
}

var firstWord = regexp.MustCompile(`[^ :,/]+`)

// countByClient counts the recordings that are replaced, kept or added, by their applications and clients.
func countByClient(replaced, baseline []bool, what string) string {
	n := make(map[string]int)
	for i, r := range testcaddy.Recordings() {
		counts := map[string]bool{
			"replaced": replaced[i],
			"kept":     baseline[i] && !replaced[i],
			"added":    replaced[i] && !baseline[i],
		}
		if counts[what] {
			n[firstWord.FindString(r.Application)+"/"+firstWord.FindString(r.Client)]++
		}
	}
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		counts = append(counts, fmt.Sprint(name, " ", n[name]))
	}
	return strings.Join(counts, ", ")
}

// TestJSONExampleIsItsCaddyfile compares the two, and looks for every option.
func TestJSONExampleIsItsCaddyfile(t *testing.T) {
	t.Chdir("..")
	config := []byte(readFile(t, "examples/json/caddy.json"))
	adapted := testcaddy.Adapt(t, readFile(t, "examples/json/Caddyfile"))
	var got, want any
	if err := errors.Join(json.Unmarshal(config, &got), json.Unmarshal(adapted, &want)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("caddy.json is not what its Caddyfile is adapted to; write it again with caddy adapt --pretty")
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[notfound.Handler]()) {
		key, _, hasKey := strings.Cut(field.Tag.Get("json"), ",")
		if hasKey && !bytes.Contains(config, []byte(`"`+key+`":`)) {
			t.Errorf("caddy.json lacks the option %s", key)
		}
	}
}
