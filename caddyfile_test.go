package notfound

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestUnmarshalCaddyfile(t *testing.T) {
	for name, tt := range map[string]struct {
		input string
		want  Handler
		err   string // a part of it; all of them name the file and the line
	}{
		"nothing":      {input: "not_found"},
		"empty block":  {input: "not_found {\n}"},
		"context_path": {input: "not_found {\ncontext_path /app\n}", want: Handler{ContextPath: "/app"}},
		"root":         {input: "not_found {\ncontext_path \"\"\n}"},
		"base_url":     {input: "not_found {\nbase_url https://a.test\n}", want: Handler{BaseURL: "https://a.test"}},
		"footer":       {input: "not_found {\nfooter \"Powered by us\"\n}", want: Handler{Footer: "Powered by us"}},
		"formats":      {input: "not_found {\nformats html json\n}", want: Handler{Formats: []string{"html", "json"}}},
		"replace":      {input: "not_found {\nreplace all\n}", want: Handler{Replace: "all"}},
		"template":     {input: "not_found {\ntemplate 404.html\n}", want: Handler{Template: "404.html"}},
		"everything": {
			input: "not_found {\ncontext_path /app\nbase_url https://a.test\nfooter x\nformats xml\nreplace none\ntemplate 404.html\n}",
			want:  Handler{ContextPath: "/app", BaseURL: "https://a.test", Footer: "x", Formats: []string{"xml"}, Replace: "none", Template: "404.html"},
		},

		"stray argument":        {input: "not_found 404.html", err: "unexpected argument '404.html'"},
		"unknown option":        {input: "not_found {\nstatus 404\n}", err: "unknown option 'status'; the options are context_path,"},
		"repeated option":       {input: "not_found {\nfooter x\nfooter y\n}", err: "option 'footer' is given twice"},
		"repeated formats":      {input: "not_found {\nformats html\nformats text\n}", err: "option 'formats' is given twice"},
		"missing argument":      {input: "not_found {\ncontext_path\n}", err: "option 'context_path' takes one argument, not 0"},
		"no formats":            {input: "not_found {\nformats\n}", err: "option 'formats' needs at least one of text, html, json, problem and xml"},
		"surplus argument":      {input: "not_found {\nfooter Powered by us\n}", err: "option 'footer' takes one argument, not 3; quote a value that has spaces"},
		"empty value":           {input: "not_found {\nfooter \"\"\n}", err: "option 'footer' is empty"},
		"a block of option":     {input: "not_found {\nfooter x {\ny\n}\n}", err: "option 'footer' takes no block"},
		"empty block of option": {input: "not_found {\nfooter x {\n}\nreplace all\n}", want: Handler{Footer: "x", Replace: "all"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h Handler
			err := h.UnmarshalCaddyfile(caddyfile.NewTestDispenser(tt.input))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), "Testfile:") {
					t.Errorf("got the error %v, want one with %q and the line", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(h, tt.want) {
				t.Errorf("got %+v, want %+v", h, tt.want)
			}

			// the same in JSON, under the same names
			encoded, err := json.Marshal(&h)
			if err != nil {
				t.Fatal(err)
			}
			var fromJSON Handler
			if err := caddy.StrictUnmarshalJSON(encoded, &fromJSON); err != nil || !reflect.DeepEqual(fromJSON, h) {
				t.Errorf("%s becomes %+v, %v", encoded, fromJSON, err)
			}
			for option := range strings.Lines(tt.input) {
				if option, _, ok := strings.Cut(option, " "); ok && option != "not_found" && name != "root" && !strings.Contains(string(encoded), `"`+option+`":`) {
					t.Errorf("%s lacks %s", encoded, option)
				}
			}
		})
	}
}

// TestMistakesAreRefused loads each mistake as `caddy validate` does, from a Caddyfile and from JSON.
func TestMistakesAreRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	unparsable := write("unparsable.html", "<p>{{.URI")
	unknownFunc := write("function.html", "<p>{{uri}}")
	unescapable := write("unescapable.html", "<a href='{{if .URI}}x'{{end}}>")

	for name, tt := range map[string]struct{ option, value, err string }{
		"context path without slash":        {"context_path", "app", `context_path: "app" does not begin with a slash; write it as in "/app"`},
		"context path with a space":         {"context_path", "/my app", `context_path: "/my app" has characters that the path of a URL cannot have; percent-encode them, as in "/my%20app"`},
		"context path with a query":         {"context_path", "/app?x", `percent-encode them, as in "/app%3Fx"`},
		"context path with markup":          {"context_path", "/<b>", `percent-encode them, as in "/%3Cb%3E"`},
		"context path of a placeholder":     {"context_path", "app/{http.request.host}", `context_path: "app/{http.request.host}" does not begin with a slash`},
		"base URL without scheme":           {"base_url", "www.example.com", `base_url: "www.example.com" is not an absolute http or https URL with a host; write it as in https://www.example.com`},
		"base URL of another scheme":        {"base_url", "ftp://example.com", `base_url: "ftp://example.com" is not an absolute http or https URL`},
		"base URL without host":             {"base_url", "https:///x", `is not an absolute http or https URL with a host`},
		"base URL with a port only":         {"base_url", "https://:8443", `is not an absolute http or https URL with a host`},
		"base URL with a user":              {"base_url", "https://me:secret@example.com", `base_url: "https://me:xxxxx@example.com" has user information`},
		"base URL with a query":             {"base_url", "https://example.com/?x", `has a query or a fragment; leave it out`},
		"base URL with an empty query":      {"base_url", "https://example.com/?", `has a query or a fragment; leave it out`},
		"base URL with a fragment":          {"base_url", "https://example.com/#x", `has a query or a fragment; leave it out`},
		"base URL with a space":             {"base_url", "https://example.com/my app", `percent-encode them, as in "https://example.com/my%20app"`},
		"base URL that is none":             {"base_url", "https://example.com:x", `is not a URL: `},
		"base URL of a placeholder":         {"base_url", "ftp://{http.request.host}", `does not begin with http:// or https://`},
		"base URL of an unset variable":     {"base_url", "{env.NOT_FOUND_TEST_UNSET}", `base_url: "" is not an absolute http or https URL`},
		"blank footer":                      {"footer", " \t", `is blank; write one line of text, or leave the option out`},
		"footer of an unset variable":       {"footer", "{env.NOT_FOUND_TEST_UNSET}", `footer: "{env.NOT_FOUND_TEST_UNSET}" is blank`},
		"footer of two lines":               {"footer", "one\ntwo", `footer: "one\ntwo" is not one line of text; leave out line breaks and control characters`},
		"footer with a control character":   {"footer", "be\x07ll", `is not one line of text`},
		"footer with another line end":      {"footer", "one\u2028two", `is not one line of text`},
		"unknown format":                    {"formats", "yaml", `formats: unknown format "yaml"; the formats are text, html, json, problem and xml`},
		"repeated format":                   {"formats", "html text html", `formats: html is given twice; give each format once`},
		"unknown mode":                      {"replace", "some", `replace: unknown mode "some"; it is pages, all or none`},
		"missing template":                  {"template", filepath.Join(dir, "none.html"), "template: reading the file: open " + filepath.Join(dir, "none.html")},
		"template that is a folder":         {"template", dir, "template: reading the file: "},
		"template that does not parse":      {"template", unparsable, "template: parsing " + unparsable + ": "},
		"template with an unknown function": {"template", unknownFunc, `function "uri" not defined`},
		"template that cannot be escaped":   {"template", unescapable, "template: parsing " + unescapable + ": "},
	} {
		t.Run(name, func(t *testing.T) {
			value := `"` + strings.ReplaceAll(tt.value, `"`, `\"`) + `"`
			if tt.option == "formats" {
				value = tt.value
			}
			fromCaddyfile := adapt(t, "{\n"+globalOptions+"}\nhttp://a.test:0 {\nnot_found {\n"+tt.option+" "+value+"\n}\n}")

			var encoded any = tt.value
			if tt.option == "formats" {
				encoded = strings.Fields(tt.value)
			}
			handler, err := json.Marshal(map[string]any{"handler": "not_found", tt.option: encoded})
			if err != nil {
				t.Fatal(err)
			}
			fromJSON := `{"admin":{"disabled":true},"apps":{"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"routes":[{"handle":[` + string(handler) + `]}]}}}}}`

			for _, config := range [][]byte{fromCaddyfile, []byte(fromJSON)} {
				var cfg caddy.Config
				if err := json.Unmarshal(config, &cfg); err != nil {
					t.Fatal(err)
				}
				if err := caddy.Validate(&cfg); err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got the error\n%v\nwant one with\n%s", err, tt.err)
				}
			}
		})
	}

	t.Run("unknown option in JSON", func(t *testing.T) {
		var cfg caddy.Config
		if err := json.Unmarshal([]byte(`{"admin":{"disabled":true},"apps":{"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"routes":[{"handle":[{"handler":"not_found","status":404}]}]}}}}}`), &cfg); err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(&cfg); err == nil || !strings.Contains(err.Error(), `unknown field "status"`) {
			t.Errorf("got the error %v, want one that names the field", err)
		}
	})
}

func TestMistakeInCaddyfileNamesFileAndLine(t *testing.T) {
	_, err := adaptErr("http://a.test:0 {\n\tnot_found {\n\t\tfoot x\n\t}\n}")
	if err == nil || !strings.Contains(err.Error(), "Caddyfile:3") {
		t.Errorf("got the error %v, want one with Caddyfile:3", err)
	}
}

func TestAdaptReadsNoFile(t *testing.T) {
	config := adapt(t, "http://a.test:0 {\nnot_found {\ntemplate /nowhere/404.html\n}\n}")
	if !strings.Contains(string(config), `"template":"/nowhere/404.html"`) {
		t.Errorf("the template is not in %s", config)
	}
}

func TestReloadWithMistakeLeavesRunningSite(t *testing.T) {
	s := startCaddy(t, "http://a.test:0 {\nnot_found {\ncontext_path /app\n}\n}")
	s.get(t, "http://a.test/x").wantPage(t, "GET", "http://a.test/x", "/app")

	broken := adapt(t, "{\n"+globalOptions+"}\nhttp://a.test:0 {\nnot_found {\ntemplate /nowhere/404.html\n}\n}")
	if err := caddy.Load(broken, true); err == nil {
		t.Fatal("the broken config was loaded")
	}
	s.get(t, "http://a.test/x").wantPage(t, "GET", "http://a.test/x", "/app")
}
