package integration

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
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

	"github.com/caddy-notfound/notfound"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestRecipes runs each example, and each Caddyfile in the documents, with stand-ins for what it proxies to and with
// files in the folders that it serves. testdata/recipes.txt has the requests, and what has to come of them. A
// stand-in says its port in the field From, which stays on a page, and does what the end of the path says.
func TestRecipes(t *testing.T) {
	promises := make(map[string]string)
	rows := strings.Split(readFile(t, "testdata/recipes.txt"), "\n== ")
	for _, row := range rows[1:] {
		name, lines, _ := strings.Cut(row, "\n")
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

// TestCatchAllNeedsNoOtherCertificate asks the example for made-up names over TLS, and counts the certificates. Those
// are of Caddy's own authority.
func TestCatchAllNeedsNoOtherCertificate(t *testing.T) {
	_, example, ok := strings.Cut(readFile(t, "../examples/catch-all/Caddyfile"), "\n{\n")
	if !ok {
		t.Fatal("the example has no global options")
	}
	storage := t.TempDir()
	options := testcaddy.Caddyfile("", "local_certs", "storage file_system "+testcaddy.Quote(storage),
		"log default {\noutput discard\n}")
	options = strings.TrimSuffix(options, "}\n")
	s := testcaddy.StartConfig(t, testcaddy.Adapt(t, options+example))

	client := testcaddy.HTTP2(t, s.Addrs["443"])
	eventually(t, "there is a certificate", func() bool {
		res, err := client.HTTP.Get("https://www.example.com/")
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	for i := range 12 {
		getPage(t, client, fmt.Sprintf("https://made-up-%d.example/x", i))
	}
	certificates := glob(t, storage+"/certificates/*/*/*.crt")
	if len(certificates) != 1 {
		t.Errorf("got the certificates %q, want only one", certificates)
	}
}

// recipes returns the Caddyfiles of the examples, by their folders, and those in the documents, by their headings.
func recipes(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, file := range glob(t, "examples/*/Caddyfile") {
		name := filepath.Base(filepath.Dir(file))
		found[name] = readFile(t, file)
	}
	headingOrCode := regexp.MustCompile("(?ms)^#+ (.*?)\n|^ *```(.*?)\n(.*?)^ *```$")
	for _, file := range documents(t) {
		content := readFile(t, file)
		under := ""
		for _, match := range headingOrCode.FindAllStringSubmatch(content, -1) {
			heading, language, code := match[1], match[2], match[3]
			if heading != "" {
				under = file + ": " + heading
			}
			if language == "caddyfile" {
				name := under
				for n := 2; found[name] != ""; n++ {
					name = fmt.Sprintf("%s, %d", under, n)
				}
				found[name] = code
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
	var lines, down []string
	for line := range strings.Lines(row) {
		line = strings.TrimSpace(line)
		ports, isDown := strings.CutPrefix(line, "down ")
		switch {
		case isDown:
			down = strings.Fields(ports)
		case line != "":
			lines = append(lines, line)
		}
	}
	s := stage(t, caddyfile, down)
	for _, line := range lines {
		asked, want, ok := strings.Cut(line, " → ")
		if !ok {
			t.Errorf("nothing has to come of %q", line)
			continue
		}
		words := strings.Split(asked, " | ")
		what, of, _ := strings.Cut(words[0], " ")
		got := ""
		switch what {
		case "report":
			got = s.report(want)
		case "log":
			want = withFields(want, s.last)
			entries := strings.Count(want, ", ") + 1
			got = s.logged(t, of, entries)
		case "replaced", "kept", "added":
			isPlain := len(words) > 1
			ofRecipe := s.replaced(t, of, isPlain)
			ofBare := s.replaced(t, "localhost:1", isPlain)
			got = countByClient(ofRecipe, ofBare, what)
		default:
			s.expect(t, words, want)
			continue
		}
		if got != want {
			t.Errorf("%s: got\n\t%s\nwant\n\t%s", asked, got, want)
		}
	}
}

// expect sends a request, and compares the response with the parts that it has to have, and those that it must not
// have.
func (s *staged) expect(t *testing.T, words []string, want string) {
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
	if rest, isPage := strings.CutPrefix(want, "page"); isPage {
		want = "404 text/plain & HTTP ERROR 404 No endpoint " + method + " /missing.html.\nURI: " + url + "\n" + rest
	}

	contentType := s.last.Header.Get("Content-Type")
	mediaType, _, _ := strings.Cut(contentType, ";")
	got := fmt.Sprintln(s.last.StatusCode, mediaType)
	for field, values := range s.last.Header {
		got += field + ": " + strings.Join(values, ", ") + "\n"
	}
	got += "\n" + s.last.Content
	parts := strings.Split(withFields(want, s.last), " & ")
	begins := parts[0]
	isWanted := strings.HasPrefix(got, begins)
	for _, part := range parts[1:] {
		part, isUnwanted := strings.CutPrefix(part, "!")
		isWanted = isWanted && strings.Contains(got, part) != isUnwanted
	}
	if !isWanted {
		t.Errorf("%q: got\n%.900s\nwant %q", words, got, parts)
	}
}

// logged returns the values in the access log, once there are n, of a host and a field of its entries.
func (s *staged) logged(t *testing.T, of string, n int) string {
	t.Helper()
	host, field, _ := strings.Cut(of, " ")
	var values []string
	for _, entry := range s.logs.WaitForHost(t, "handled request", host, n) {
		value, _ := entry[field].(string)
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

// bareSite is not_found alone, to compare a recipe with.
const bareSite = "\nhttp://:1 {\n\tnot_found\n\treverse_proxy 127.0.0.1:2\n}\n"

// decode reads JSON.
func decode(t *testing.T, content []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}

// stage runs a recipe, and beside it the bare site. Addresses, folders and TLS are those of the test,
// the rest of the config is as it is written.
func stage(t *testing.T, caddyfile string, down []string) *staged {
	t.Helper()
	s := &staged{
		logs:     testcaddy.NewLogs(t),
		folders:  t.TempDir(),
		standIns: make(map[string]string),
		down:     down,
	}
	var config map[string]any
	base := testcaddy.Caddyfile("", "log default {\n"+s.logs.Output+"\n}")
	decode(t, testcaddy.Adapt(t, base), &config)
	decode(t, testcaddy.Adapt(t, caddyfile+bareSite), &config)
	apps := config["apps"].(map[string]any)
	delete(apps, "tls")
	delete(apps, "pki")
	s.replaceIn(t, config)
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	report.Missed.Take()
	s.listeners = testcaddy.StartConfig(t, encoded).Addrs
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

// replaceIn replaces what a part of the config has of the world outside.
func (s *staged) replaceIn(t *testing.T, part any) {
	t.Helper()
	if list, ok := part.([]any); ok {
		for _, child := range list {
			s.replaceIn(t, child)
		}
	}
	object, _ := part.(map[string]any)
	if listen, ok := object["listen"].([]any); ok {
		delete(object, "tls_connection_policies")
		object["automatic_https"] = map[string]any{"disable": true}
		listen[0] = "free/" + listen[0].(string)
	}
	root, _ := object["root"].(string)
	if filepath.IsAbs(root) {
		object["root"] = s.folder(t, root)
	}
	templates, _ := object["template"].(map[string]any)
	for _, row := range templates {
		files := row.([]any)
		for i, file := range files {
			if filepath.IsAbs(file.(string)) {
				files[i] = "examples/brand/" + filepath.Base(file.(string))
			}
		}
	}
	transport, _ := object["transport"].(map[string]any)
	isFastCGI := transport["protocol"] == "fastcgi"
	upstreams, _ := object["upstreams"].([]any)
	for _, each := range upstreams {
		upstream := each.(map[string]any)
		dial := upstream["dial"].(string)
		upstream["dial"] = s.standIn(t, dial, isFastCGI)
	}
	for _, child := range object {
		s.replaceIn(t, child)
	}
}

// folder returns a folder with some files, in place of one that a recipe serves. Of the folders that a placeholder
// names, acme's is there, with a page.
func (s *staged) folder(t *testing.T, root string) (folder string) {
	t.Helper()
	folder = filepath.Join(s.folders, root)
	served := placeholder.ReplaceAllString(folder, "acme.example.com")
	if err := os.MkdirAll(served+"/assets", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"index.html", "index.php", "hello.txt", "assets/app.js"} {
		writeFile(t, served+"/"+name, root+" has "+name)
	}
	if served != folder {
		writeFile(t, served+"/404.html", "the page of acme, with {{.URI}}")
	}
	return folder
}

var placeholder = regexp.MustCompile(`\{.*?\}`)

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
		addr = "unix/" + s.folders + "/down"
	default:
		addr = testcaddy.Backend(t, standIn(port))
	}
	s.standIns[upstream] = addr
	return addr
}

// theirFields are those of responses that are not only HTML, by the last segment of the path.
var theirFields = map[string]http.Header{
	"empty":           {"Content-Type": nil},
	"json":            {"Content-Type": {"application/json"}},
	"plain":           {"Content-Type": {"text/plain"}},
	"policy":          {"Content-Type": {"application/json"}, "Content-Security-Policy": {"default-src theirs"}},
	"labelled":        {"Content-Type": {"text/plain"}},
	"xml":             {"Content-Type": {"application/xml"}},
	"private":         {"X-Powered-By": {"PeerTube"}},
	"fails":           {"Content-Type": {"application/json"}, "Content-Disposition": {"attachment"}},
	"designed":        {"X-Error-Page": {"1"}},
	"german":          {"Content-Language": {"de"}},
	"german-designed": {"Content-Language": {"de"}, "Set-Cookie": {"designed=1"}},
	"french-designed": {"Content-Language": {"fr"}, "Set-Cookie": {"designed=1"}},
}

// standIn is an upstream that says who it is, and answers as the last segment of the path says: ok, or a 404 of its
// own.
func standIn(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recorded := r.Header.Get("X-Recorded")
		if i, err := strconv.Atoi(recorded); err == nil {
			testcaddy.Recordings()[i].Replay(w)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		last := path.Base(r.URL.Path)
		kind, _, _ := strings.Cut(last, ".")
		w.Header().Set("From", name)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		maps.Copy(w.Header(), theirFields[kind])
		content := name + " lacks " + r.URL.Path
		status := http.StatusNotFound
		var body io.Writer = w
		switch kind {
		case "ok", "index", "healthz":
			content = name + " has " + r.URL.Path
			status = http.StatusOK
		case "forbidden":
			status = http.StatusForbidden
		case "fails":
			status = http.StatusInternalServerError
			content = `{"error":"` + content + `"}`
		case "empty":
			content = ""
		case "labelled": // JSON as text
			content = `{"error":"` + content + `"}`
		}
		if (kind == "labelled" || kind == "fails") && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			compressing := gzip.NewWriter(w)
			defer compressing.Close()
			body = compressing
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(body, content)
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

// report returns what was counted, once it is what it has to be, or nothing more comes.
func (s *staged) report(want string) (got string) {
	deadline := time.Now().Add(3 * time.Second)
	for ; got != want && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		counted, _ := report.Missed.Snapshot()
		var lines []string
		for _, a := range counted.Addresses {
			line := fmt.Sprintf("%s%s %s", a.Host, a.Path, a.Outcomes)
			lines = append(lines, line)
		}
		slices.Sort(lines)
		got = strings.Join(lines, ", ")
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
		maps.DeleteFunc(header, func(field string, _ []string) bool {
			isOfConnection := field == "Content-Length" || field == "Keep-Alive"
			return isOfConnection || plain && strings.HasPrefix(field, "Sec-")
		})
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
			application := firstWord.FindString(r.Application)
			client := firstWord.FindString(r.Client)
			n[application+"/"+client]++
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
	adapted := testcaddy.Adapt(t, readFile(t, "examples/json/Caddyfile"))
	var got, want any
	decode(t, []byte(config), &got)
	decode(t, adapted, &want)
	if !reflect.DeepEqual(got, want) {
		t.Error("caddy.json is not what its Caddyfile is adapted to; write it again with caddy adapt --pretty")
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[notfound.Handler]()) {
		key, _, hasKey := strings.Cut(field.Tag.Get("json"), ",")
		if hasKey && !strings.Contains(config, `"`+key+`":`) {
			t.Errorf("caddy.json lacks the option %s", key)
		}
	}
}
