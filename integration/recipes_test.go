package integration

import (
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

// TestRecipes runs each example, and each Caddyfile in the documents, with stand-ins for what it proxies to and with files
// in the folders that it serves. testdata/recipes.txt has the requests, and what has to come of them. A stand-in says its
// port in the field From, which stays on a page, and does what the end of the path says.
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
	for _, file := range documents(t) {
		heading, fence, n := "", "", make(map[string]int)
		for line := range strings.Lines(readFile(t, file)) {
			switch text := strings.TrimSpace(line); {
			case strings.HasPrefix(text, "```") && fence != "":
				fence = ""
			case strings.HasPrefix(text, "```"):
				if fence = text; fence == "```caddyfile" {
					n[heading]++
				}
			case fence == "```caddyfile" && n[heading] > 1:
				found[fmt.Sprintf("%s: %s, %d", file, heading, n[heading])] += line
			case fence == "```caddyfile":
				found[file+": "+heading] += line
			case fence == "" && strings.HasPrefix(line, "#"):
				heading = strings.TrimLeft(text, "# ")
			}
		}
	}
	return found
}

// clients are what they send.
var clients = map[string]http.Header{
	"browser": {"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"}},
	"script":  {"Accept": {"*/*"}, "Sec-Fetch-Mode": {"cors"}, "Sec-Fetch-Dest": {"empty"}},
	"turbo":   {"Accept": {"text/html, application/xhtml+xml"}, "Sec-Fetch-Mode": {"cors"}, "Sec-Fetch-Dest": {"empty"}},
}

// perform has a recipe at work, and does what the lines of its row say.
func perform(t *testing.T, caddyfile, row string) {
	var lines, swap, down []string
	for line := range strings.Lines(row) {
		switch words := append(strings.Fields(line), ""); words[0] {
		case "swap":
			swap = words[1 : len(words)-1]
		case "down":
			down = words[1 : len(words)-1]
		case "":
		default:
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	s := stage(t, strings.NewReplacer(swap...).Replace(caddyfile), down)
	var last testcaddy.Response
	for _, line := range lines {
		asked, want, ok := strings.Cut(line, " → ")
		if !ok {
			t.Errorf("nothing has to come of %q", line)
			continue
		}
		words := strings.Split(asked, " | ")
		what, host, _ := strings.Cut(words[0], " ")
		var got string
		switch what {
		case "report":
			got = s.report(t, want)
		case "log":
			host, field, _ := strings.Cut(host, " ")
			want = withFields(want, last)
			for _, e := range s.logs.WaitForHost(t, "handled request", host, len(strings.Split(want, ", "))) {
				value, _ := e[field].(string)
				got += ", " + cmp.Or(value, "-")
			}
		case "replaced", "kept", "added":
			plain := len(words) > 1
			got = countByClient(s.replaced(t, host, plain), s.replaced(t, "localhost:1", plain), what)
		default:
			method, url, ok := strings.Cut(words[0], " ")
			if !ok {
				method, url = http.MethodGet, method
			}
			header := make(http.Header)
			for _, word := range words[1:] {
				if client := clients[word]; client != nil {
					maps.Copy(header, client)
				} else {
					field, value, _ := strings.Cut(word, ": ")
					header.Add(field, value)
				}
			}
			last = s.ask(t, method, "http://"+url, header)
			if rest, ok := strings.CutPrefix(want, "page"); ok {
				want = "404 text/plain & HTTP ERROR 404 No endpoint " + method + " /missing.html.\nURI: http://" + url + "\n" + rest
			}
			expect(t, last, asked, want)
			continue
		}
		if got = strings.TrimPrefix(got, ", "); got != want {
			t.Errorf("%s: got\n\t%s\nwant\n\t%s", asked, got, want)
		}
	}
}

// expect compares a response with the parts that it has to have, and those that it must not have.
func expect(t *testing.T, res testcaddy.Response, asked, want string) {
	t.Helper()
	mediaType, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	got := fmt.Sprint(res.StatusCode, " ", mediaType, "\n")
	for field, values := range res.Header {
		got += field + ": " + strings.Join(values, ", ") + "\n"
	}
	got += "\n" + res.Content
	for i, part := range strings.Split(withFields(want, res), " & ") {
		unwanted, not := strings.CutPrefix(part, "!")
		if i == 0 && !strings.HasPrefix(got, part) || !not && !strings.Contains(got, part) || not && strings.Contains(got, unwanted) {
			t.Errorf("%s: got\n%.900s\nwant %s", asked, got, part)
			return
		}
	}
}

// withFields puts the fields of a response in place of their names in braces.
func withFields(want string, res testcaddy.Response) string {
	return regexp.MustCompile(`\{[\w-]+\}`).ReplaceAllStringFunc(want, func(name string) string { return res.Header.Get(strings.Trim(name, "{}")) })
}

// staged is a Caddy with a recipe.
type staged struct {
	client *testcaddy.Client
	logs   *testcaddy.Logs
}

// stage runs a recipe, and beside it a bare not_found on port 1. Addresses, folders and TLS are those of the test, the rest
// of the config is as it is written.
func stage(t *testing.T, caddyfile string, down []string) *staged {
	t.Helper()
	s := &staged{logs: testcaddy.NewLogs(t)}
	var config map[string]any
	base := testcaddy.Adapt(t, testcaddy.Caddyfile("", "log default {\n"+s.logs.Output+"\n}"))
	recipe := testcaddy.Adapt(t, caddyfile+"\nhttp://:1 {\n\tnot_found\n\treverse_proxy 127.0.0.1:2\n}\n")
	if err := errors.Join(json.Unmarshal(base, &config), json.Unmarshal(recipe, &config)); err != nil {
		t.Fatal(err)
	}
	apps := config["apps"].(map[string]any)
	config["apps"] = map[string]any{"http": apps["http"]} // without TLS
	standIns, folders, ports := make(map[string]string), t.TempDir(), make(map[string]string)
	walk(config, func(m map[string]any) {
		if listen, ok := m["listen"].([]any); ok {
			delete(m, "tls_connection_policies")
			m["automatic_https"] = map[string]any{"disable": true}
			_, port, _ := net.SplitHostPort(listen[0].(string))
			ports[port] = "127.0.0.1:" + testcaddy.FreePort(t)
			listen[0] = ports[port]
		}
		if root, ok := m["root"].(string); ok && filepath.IsAbs(root) {
			m["root"] = filepath.Join(folders, root)
			for _, file := range []string{"index.html", "index.php", "hello.txt", "assets/app.js"} {
				name := filepath.Join(folders, root, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(root+" has "+file), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
		}
		templates, _ := m["template"].(map[string]any)
		for format, file := range templates {
			if file := file.(string); filepath.IsAbs(file) {
				templates[format] = "examples/brand/" + filepath.Base(file)
			}
		}
		upstreams, _ := m["upstreams"].([]any)
		transport, _ := m["transport"].(map[string]any)
		for _, u := range upstreams {
			u := u.(map[string]any)
			dial := u["dial"].(string)
			_, name, isTCP := strings.Cut(dial, ":")
			switch {
			case standIns[dial] != "":
			case transport["protocol"] == "fastcgi":
				standIns[dial] = testcaddy.FastCGI(t, standIn("php"))
			case isTCP && slices.Contains(down, name):
				standIns[dial] = "127.0.0.1:" + testcaddy.FreePort(t)
			default:
				standIns[dial] = testcaddy.Backend(t, standIn(name))
			}
			u["dial"] = standIns[dial]
		}
	})
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	s.serveReport(t, http.MethodDelete)
	testcaddy.StartConfig(t, encoded)
	transport := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		_, port, _ := net.SplitHostPort(addr)
		if port == "80" && ports[port] == "" { // most recipes speak TLS, outside of the test
			port = "443"
		}
		return new(net.Dialer).DialContext(ctx, network, ports[port])
	}}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = &testcaddy.Client{HTTP: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	return s
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

// standIn is an upstream that says who it is, and answers as the last segment of the path says: ok, or a 404 of its own.
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
		switch kind {
		case "ok", "index", "healthz":
			fmt.Fprintf(w, "%s has %s", name, r.URL.Path)
			return
		case "fails":
			w.WriteHeader(http.StatusInternalServerError)
			return
		case "empty":
			w.WriteHeader(http.StatusNotFound)
			return
		case "labelled": // JSON as text, compressed if that is accepted
			out := io.Writer(w)
			if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				defer z.Close()
				out = z
			}
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(out, `{"error":"%s lacks %s"}`, name, r.URL.Path)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, "%s lacks %s", name, r.URL.Path)
	}
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
	_ = module.New().(caddy.AdminRouter).Routes()[0].Handler.ServeHTTP(rec, httptest.NewRequest(method, "/not_found/report", nil))
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
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var counted []string
		for _, a := range s.serveReport(t, http.MethodGet).Addresses {
			counted = append(counted, a.Host+a.Path+" "+a.Outcomes.String())
		}
		slices.Sort(counted)
		if got = strings.Join(counted, ", "); got == want || time.Now().After(deadline) {
			return got
		}
	}
}

// replaced sends the recorded requests to a host, over plain HTTP without the fields that browsers send over HTTPS alone, and
// says which responses are pages.
func (s *staged) replaced(t *testing.T, host string, plain bool) (replaced []bool) {
	t.Helper()
	for i, r := range testcaddy.Recordings() {
		header := http.Header{"Accept-Encoding": {"identity"}} // or reverse_proxy decompresses what only says that it is
		maps.Copy(header, r.Request)
		header.Set("X-Recorded", strconv.Itoa(i))
		for field := range r.Request {
			if plain && strings.HasPrefix(field, "Sec-") || field == "Content-Length" || field == "Keep-Alive" {
				delete(header, field)
			}
		}
		res := s.ask(t, r.Method, "http://"+host+r.Target, header)
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("%s %s: got %s", r.Application, r.Target, res.Status)
		}
		replaced = append(replaced, res.Header.Get("Content-Location") == "")
	}
	return replaced
}

// countByClient counts the recordings that are replaced, kept or added, by their applications and clients.
func countByClient(replaced, baseline []bool, what string) string {
	n := make(map[string]int)
	for i, r := range testcaddy.Recordings() {
		if map[string]bool{"replaced": replaced[i], "kept": baseline[i] && !replaced[i], "added": replaced[i] && !baseline[i]}[what] {
			first := func(name string) string { return regexp.MustCompile(`[^ :,/]+`).FindString(name) }
			n[first(r.Application)+"/"+first(r.Client)]++
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
	config := readFile(t, "examples/json/caddy.json")
	var got, want any
	if err := errors.Join(json.Unmarshal([]byte(config), &got), json.Unmarshal(testcaddy.Adapt(t, readFile(t, "examples/json/Caddyfile")), &want)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("caddy.json is not what its Caddyfile is adapted to; write it again with caddy adapt --pretty")
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[notfound.Handler]()) {
		if key, _, ok := strings.Cut(field.Tag.Get("json"), ","); ok && !strings.Contains(config, `"`+key+`":`) {
			t.Errorf("caddy.json lacks the option %s", key)
		}
	}
}
