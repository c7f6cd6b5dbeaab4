package integration

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// staged is a Caddy with a recipe.
type staged struct {
	recipe *recipe
	client *testcaddy.Client
	logs   *testcaddy.Logs

	folders   string            // the folder that those of the recipe are in
	listeners map[string]string // by the ports of the recipe
	standIns  map[string]string // by the addresses of the recipe's upstreams
}

// decode reads JSON.
func decode(t *testing.T, content []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}

// stage runs a recipe. Addresses, folders and TLS are those of the test, the rest of the config is as it is written.
func stage(t *testing.T, caddyfile string, r *recipe) *staged {
	t.Helper()
	s := &staged{
		recipe:   r,
		logs:     testcaddy.NewLogs(t),
		folders:  t.TempDir(),
		standIns: make(map[string]string),
	}
	for name, content := range r.files {
		file := filepath.Join(s.folders, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, content)
	}
	var config map[string]any
	base := testcaddy.Caddyfile("", "log default {\n"+s.logs.Output+"\n}")
	decode(t, testcaddy.Adapt(t, base), &config)
	decode(t, testcaddy.Adapt(t, caddyfile), &config)
	apps := config["apps"].(map[string]any)
	delete(apps, "tls")
	delete(apps, "pki")
	apps["caddy.filesystems"] = map[string]any{"filesystems": []any{map[string]any{
		"name":        "cloud",
		"file_system": map[string]any{"backend": "test_folder", "path": s.folders + "/cloud"},
	}}}
	s.replaceIn(t, config)
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	s.listeners = testcaddy.StartConfig(t, encoded).Addrs
	s.client = testcaddy.HTTP11(t, "")
	s.client.HTTP.Transport.(*http.Transport).DialContext = s.dial
	return s
}

// testFolder is a file system other than Caddy's. It does not let secret.txt be read.
type testFolder struct {
	fs.FS
	Path string `json:"path"`
}

func init() { caddy.RegisterModule(new(testFolder)) }

func (*testFolder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.fs.test_folder", New: func() caddy.Module { return new(testFolder) }}
}

func (f *testFolder) Provision(caddy.Context) error {
	f.FS = os.DirFS(f.Path)
	return nil
}

func (f *testFolder) Open(name string) (fs.File, error) {
	if name == "secret.txt" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.FS.Open(name)
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
	if path.IsAbs(root) {
		object["root"] = s.folder(t, root)
	}
	site, _ := object["site"].(string) // a variable that a document has
	if path.IsAbs(site) {
		object["site"] = s.folder(t, site)
	}
	templates, _ := object["template"].(map[string]any)
	for _, row := range templates {
		files := row.([]any)
		for i, file := range files {
			if path.IsAbs(file.(string)) {
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

// folder returns a folder with some files, in place of one that a recipe serves. One that a placeholder names has only
// the recipe's own files.
func (s *staged) folder(t *testing.T, root string) (folder string) {
	t.Helper()
	folder = filepath.ToSlash(filepath.Join(s.folders, root))
	if strings.Contains(root, "{") {
		return folder
	}
	if err := os.MkdirAll(folder+"/assets", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"index.html", "index.php", "hello.txt", "assets/app.js"} {
		writeFile(t, folder+"/"+name, root+" has "+name)
	}
	return folder
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
	case slices.Contains(s.recipe.down, port):
		addr = "unix/" + s.folders + "/down"
	case slices.Contains(s.recipe.static, port):
		addr = testcaddy.Backend(t, staticServer(port))
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
	"fails":           {"Content-Disposition": {"attachment"}},
	"unavailable":     {"Retry-After": {"30"}},
	"overloaded":      {"Content-Type": {"application/problem+json"}, "Retry-After": {"30"}},
	"designed":        {"X-Error-Page": {"1"}},
	"german":          {"Content-Language": {"de"}},
	"german-designed": {"Content-Language": {"de"}, "Set-Cookie": {"designed=1"}},
	"french-designed": {"Content-Language": {"fr"}, "Set-Cookie": {"designed=1"}},
}

// sourced are the fields of 404s that were not recorded, by the application.
var sourced = sync.OnceValue(func() map[string]string {
	fields := make(map[string]string)
	for _, s := range testcaddy.Sources() {
		fields[s.Application] = s.Keep
	}
	return fields
})

// standIn is an upstream that says who it is. It replays a recording, or answers as the last segment of the path says:
// ok, or a 404 of its own.
func standIn(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("From", name)
		if recorded := r.Header.Get(nameOfRecording); recorded != "" {
			recording(recorded).Replay(w)
			return
		}
		last := path.Base(r.URL.Path)
		kind, _, _ := strings.Cut(last, ".")
		if field, value, ok := strings.Cut(sourced()[kind], ": "); ok {
			w.Header().Set(field, value)
		}
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
		case "gone":
			status = http.StatusGone
		case "unavailable", "overloaded":
			status = http.StatusServiceUnavailable
		case "fails":
			status = http.StatusInternalServerError
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

// staticServer is an upstream with a 404.html, which it sends with a validator, and in parts.
func staticServer(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("From", name)
		if r.RequestURI != "/404.html" {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "404.html", time.Unix(1e9, 0), strings.NewReader("the 404.html of "+name))
	}
}

// ask sends a request to an address of the recipe.
func (s *staged) ask(t *testing.T, method, address string, header http.Header) testcaddy.Response {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	return s.client.Send(t, req)
}
