package notfound

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/represent"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

func TestUnmarshalCaddyfile(t *testing.T) {
	for name, tt := range map[string]struct {
		input string
		want  Handler
	}{
		"nothing":     {input: "not_found"},
		"empty block": {input: "not_found {\n}"},
		"root":        {input: "not_found {\ncontext_path \"\"\n}"},
		"several keeps": {
			input: "not_found {\nkeep header X a\nkeep {\nheader Y a\nheader Y b\nheader !Z\nstatus 404\n}\nkeep header X c\n}",
			want: Handler{Keep: []caddyhttp.ResponseMatcher{
				{Headers: http.Header{"X": {"a"}}},
				{
					StatusCode: []int{404},
					Headers:    http.Header{"Y": {"a", "b"}, "Z": nil},
				},
				{Headers: http.Header{"X": {"c"}}},
			}},
		},
		"flags": {
			input: "not_found {\nreport\ndry_run\n}",
			want:  Handler{Report: true, DryRun: true},
		},

		"templates": {
			input: "not_found {\ntemplate xml 404.xml\ntemplate ./json\ntemplate json json\n}",
			want: Handler{Template: map[string][]string{
				"xml":  {"404.xml"},
				"html": {"./json"},
				"json": {"json"},
			}},
		},
		"a row of files": {
			input: "not_found {\ntemplate {http.vars.root}/404.html a.html\ntemplate text 404.txt html\n}",
			want: Handler{Template: map[string][]string{
				"html": {"{http.vars.root}/404.html", "a.html"},
				"text": {"404.txt", "html"},
			}},
		},

		"empty block of option": {
			input: "not_found {\nfooter x {\n}\nreplace all\n}",
			want:  Handler{Footer: "x", Replace: "all"},
		},
		"placeholders": {
			input: "not_found {\ncontext_path {a}app\nbase_url {a}:x\nfooter \" {a} \"\nuri {a}#x\n}",
			want: Handler{
				ContextPath: "{a}app",
				BaseURL:     "{a}:x",
				Footer:      " {a} ",
				URI:         "{a}#x",
			},
		},

		"quotes in a value": {
			input: "not_found {\nfooter \"'til soon\"\nmessage “Oops”\n}",
			want:  Handler{Footer: "'til soon", Message: "“Oops”"},
		},
		"a value that is a quote": {
			input: "not_found {\nfooter \"'To be'\"\nmessage `'Not to be'`\n}",
			want:  Handler{Footer: "'To be'", Message: "'Not to be'"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h Handler
			if err := h.UnmarshalCaddyfile(caddyfile.NewTestDispenser(tt.input)); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(h, tt.want) {
				t.Errorf("got %+v, want %+v", h, tt.want)
			}
			wantSameInJSON(t, &h)
		})
	}
}

// TestMistakesInACaddyfileAreRefused reads each directive of testdata/mistakes.txt, and the whole error below it.
// OPTIONS stands for the list of the options.
func TestMistakesInACaddyfileAreRefused(t *testing.T) {
	content := strings.TrimSpace(readFile(t, "testdata/mistakes.txt"))
	for mistake := range strings.SplitSeq(content, "\n\n") {
		directive, want, _ := strings.Cut(mistake, "\n----------\n")
		want = strings.ReplaceAll(want, "OPTIONS", strings.Join(optionNames, ", "))
		err := new(Handler).UnmarshalCaddyfile(caddyfile.NewTestDispenser(directive))
		if err == nil || err.Error() != want {
			t.Errorf("%s\ngot the error\n%v\nwant\n%s", directive, err, want)
		}
	}
}

// wantSameInJSON checks that JSON can say what a handler has.
func wantSameInJSON(t *testing.T, h *Handler) {
	t.Helper()
	encoded, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	fromJSON := new(Handler)
	err = caddy.StrictUnmarshalJSON(encoded, fromJSON)
	if err != nil || !reflect.DeepEqual(fromJSON, h) {
		t.Errorf("%s becomes %+v, %v", encoded, fromJSON, err)
	}
}

// TestMistakesInJSONAreRefused has what a Caddyfile cannot say, or is found only when a config is loaded.
func TestMistakesInJSONAreRefused(t *testing.T) {
	for _, tt := range []struct{ config, want string }{
		{
			config: `{"status":404}`,
			want:   `unknown field "status"`,
		},
		{
			config: `{"keep":[{"headers":{"X":["*"]}},{}]}`,
			want:   "keep: a matcher without a header field would keep every 404 response",
		},
		{
			config: `{"keep":[{"status_code":[],"headers":{"X":["*"]}}]}`,
			want:   "keep: a matcher of this status never matches a 404 response; leave the status out",
		},
		{
			config: `{"template":{"html":["/srv/{http.request.body}"]}}`,
			want:   `template: "/srv/{http.request.body}" has {http.request.body}, which may still be on its way`,
		},
		{
			config: `{"base_url":"https://a.test/{http.request.body_base64}"}`,
			want:   `base_url: "https://a.test/{http.request.body_base64}" has {http.request.body_base64}, which may still be`,
		},
		{
			config: `{"template":{"yaml":["404"]}}`,
			want:   `template: the format yaml is not on offer; the formats are text, `,
		},
		{
			config: `{"template":{"json":[]}}`,
			want:   "template: json needs a file",
		},
		{
			config: `{"template":{"json":["{env.NOT_FOUND_TEST_UNSET}"]}}`,
			want:   `template: "{env.NOT_FOUND_TEST_UNSET}" has the placeholder {env.NOT_FOUND_TEST_UNSET}, which is not set`,
		},
		{
			config: `{"template":"404.html"}`,
			want:   "Handler.template of type map[string][]string",
		},
		{
			config: `{"message":"{host} {http.request.uri} {vars.root}"}`,
			want:   `message: "{host} {http.request.uri} {vars.root}" has the shorthand {host}, which only a Caddyfile has; write {http.request.host}`,
		},
		{
			config: `{"template":{"html":["/srv/{host}/404.html"]}}`,
			want:   `template: "/srv/{host}/404.html" has the shorthand {host}, which only a Caddyfile has; write {http.request.host}`,
		},
		{
			config: `{"formats":["html","html"]}`,
			want:   "formats: html is given twice; give each format once",
		},
		{
			config: `{"precompressed":["br","br"],"template":{"html":["{http.vars.root}/404.html"]}}`,
			want:   "precompressed: br is given twice; give each encoding once",
		},
		{
			config: `{"precompressed":["br"]}`,
			want:   "precompressed: only a template whose path has a placeholder of a request has compressed files; ",
		},
		{
			config: `{"precompressed":["br"],"template":{"html":["{env.PATH}/404.html"]}}`,
			want:   "write the directive root and template {vars.root}/404.html, in JSON {http.vars.root}/404.html, or leave this out",
		},
		{
			config: `{"precompressed":["br"],"template":{"html":["/srv/{http.request.host}"]}}`,
			want:   `"/srv/{http.request.host}" ends in a placeholder of a request, and with .br behind it may be another's page; `,
		},
	} {
		h := new(Handler)
		err := caddy.StrictUnmarshalJSON([]byte(tt.config), h)
		if err == nil {
			err = provisionErr(t, h)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got the error\n%v\nwant one with\n%s", tt.config, err, tt.want)
		}
	}
}

// TestAdapt adapts each Caddyfile in testdata/adapt, and compares the JSON or the error with what stands below it.
// Caddy tests its own directives in this format. The JSON is what `caddy adapt --pretty` prints.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("testdata/adapt/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			caddyfile, expected, ok := strings.Cut(readFile(t, file), "\n----------\n")
			if !ok {
				t.Fatal("the line ---------- is missing")
			}
			expected = strings.TrimSpace(expected)

			config, err := testcaddy.AdaptErr(caddyfile)
			if !strings.HasPrefix(expected, "{") {
				if err == nil || err.Error() != expected {
					t.Errorf("got the error\n%v\nwant\n%s", err, expected)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := json.Unmarshal(config, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(expected), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				pretty, _ := json.MarshalIndent(got, "", "\t")
				t.Errorf("got\n%s\nwant\n%s", pretty, expected)
			}
		})
	}
}

// FuzzCaddyfile takes any text after the directive. What is accepted survives JSON, loads unless a placeholder has an
// invalid value, and gives a page.
func FuzzCaddyfile(f *testing.F) {
	f.Add("{\ncontext_path /app/\nbase_url https://a.test/\nuri {http.request.orig_uri}\nfooter \"<us> & you\"\n" +
		"formats html json\nreplace all\ntemplate 404.html\ntemplate json 404.json\n}")
	f.Add("{\nmessage \"{host} <b>\"\nkeep {\nheader X *\nstatus 404\n}\nkeep header Y a\nreport\n}")
	f.Add("{\nfooter \"/{unknown} \\{x\\} {http.request.host}\"\n}")
	f.Add("{\nmessage x\ncontext_path /\n}")
	f.Add("/pages/*")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "file.") { // a placeholder could name any file, such as /dev/zero
			return
		}
		tokens, err := caddyfile.Tokenize([]byte("not_found "+text), "Caddyfile")
		if err != nil {
			return
		}
		h := new(Handler)
		if err := h.UnmarshalCaddyfile(caddyfile.NewDispenser(tokens)); err != nil {
			return
		}
		wantSameInJSON(t, h)
		for format := range h.Template {
			source, _ := represent.BuiltIn(format)
			h.Template[format] = []string{testcaddy.TempFile(t, "404", source)}
		}
		if err := provisionErr(t, h); err != nil {
			values := h.Message + h.ContextPath + h.BaseURL + h.URI + h.Footer
			if !strings.Contains(values, "{") {
				t.Errorf("accepted, but not loaded: %v", err)
			}
			return
		}
		r := httptest.NewRequest(http.MethodGet, "http://a.test/{http.request.host}", nil)
		res := answer(t, inside(h, testcaddy.EndOfChain), r)
		if res.Content == "" {
			t.Errorf("got the status %d and no page", res.StatusCode)
		}
	})
}
