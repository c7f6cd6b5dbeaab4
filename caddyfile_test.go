package notfound

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

func TestUnmarshalCaddyfile(t *testing.T) {
	for name, tt := range map[string]struct {
		input string
		want  Handler
		err   string
	}{
		"nothing":     {input: "not_found"},
		"empty block": {input: "not_found {\n}"},
		"root":        {input: "not_found {\ncontext_path \"\"\n}"},
		"several keeps": {
			input: "not_found {\nkeep header X a\nkeep {\nheader Y a\nheader Y b\nheader !Z\nstatus 404\n}\nkeep header X c\n}",
			want: Handler{Keep: []caddyhttp.ResponseMatcher{
				{Headers: http.Header{"X": {"a"}}},
				{StatusCode: []int{404}, Headers: http.Header{"Y": {"a", "b"}, "Z": nil}},
				{Headers: http.Header{"X": {"c"}}},
			}},
		},

		"templates": {
			input: "not_found {\ntemplate xml 404.xml\ntemplate ./json\ntemplate json json\n}",
			want:  Handler{Template: map[string]string{"xml": "404.xml", "html": "./json", "json": "json"}},
		},

		"empty block of option": {
			input: "not_found {\nfooter x {\n}\nreplace all\n}",
			want:  Handler{Footer: "x", Replace: "all"},
		},
		"placeholders": {
			input: "not_found {\ncontext_path {a}app\nbase_url {a}:x\nfooter \" {a} \"\nuri {a}#x\n}",
			want:  Handler{ContextPath: "{a}app", BaseURL: "{a}:x", Footer: " {a} ", URI: "{a}#x"},
		},

		"stray argument":   {input: "not_found 404.html", err: "unexpected argument '404.html': not_found takes a matcher and a block of options; for a page of your own, write not_found { template 404.html }, at Testfile:1"},
		"single quotes":    {input: "not_found {\nmessage 'No page here'\n}", err: `option 'message': 'No page here' is not in quotes that a Caddyfile has; write "No page here", or use backticks, at Testfile:2`},
		"one word in them": {input: "not_found {\nmessage 'Oops'\n}", err: `option 'message': 'Oops' is not in quotes that a Caddyfile has; write "Oops", or use backticks, at Testfile:2`},
		"curly quotes":     {input: "not_found {\nfooter “Powered by us”\n}", err: `option 'footer': “Powered by us” is not in quotes that a Caddyfile has; write "Powered by us", or use backticks, at Testfile:2`},
		"an apostrophe": {
			input: "not_found {\nfooter \"'til soon\"\nmessage “Oops”\n}",
			want:  Handler{Footer: "'til soon", Message: "“Oops”"},
		},
		"a matcher as path": {input: "not_found {\ncontext_path /shop/*\n}", err: `context_path: "/shop/*" is a matcher, and context_path is a path; write it as in "/app", at Testfile:2`},
		"brace forgotten":   {input: "not_found {\nfooter x\nfile_server {\nbrowse\n}\n}", err: "unknown option 'file_server'; the options are message, context_path, base_url, uri, footer, formats, replace, keep, template, report, dry_run; if it is a directive of the site, a } is missing before it, at Testfile:3"},
		"matcher in block":  {input: "not_found {\n@x path /x\n}", err: "unknown option '@x'; the options are message, context_path, base_url, uri, footer, formats, replace, keep, template, report, dry_run; if it is a directive of the site, a } is missing before it, at Testfile:2"},
		"unknown option":    {input: "not_found {\nstatus 404\n}", err: "unknown option 'status'; the options are message, context_path, base_url, uri, footer, formats, replace, keep, template, report, dry_run; if it is a directive of the site, a } is missing before it, at Testfile:2"},
		"repeated option":   {input: "not_found {\nfooter x\nfooter y\n}", err: "option 'footer' is given twice, first at Testfile:2; leave one of the two out, at Testfile:3"},
		"missing argument":  {input: "not_found {\nfooter x\ncontext_path\n}", err: "option 'context_path' takes one argument, not 0; {$NAME} is none if the variable is empty or not set, at Testfile:3"},
		"no formats":        {input: "not_found {\nformats\n}", err: "option 'formats' needs at least one of text, html, markdown, json, problem, xml, at Testfile:2"},
		"surplus argument":  {input: "not_found {\nfooter Powered by us\n}", err: "option 'footer' takes one argument, not 3; quote a value that has spaces, at Testfile:2"},
		"surplus mode":      {input: "not_found {\nreplace pages all\n}", err: "option 'replace' takes one argument, not 2; quote a value that has spaces, at Testfile:2"},
		"template unused":   {input: "not_found {\ntemplate 404.html\nformats json text\nreport\n}", err: "template: the format html is not on offer; the formats are json, text, at Testfile:3"},
		"formats first":     {input: "not_found {\nformats text\nreport\ntemplate json 404\n}", err: "template: the format json is not on offer; the formats are text, at Testfile:4"},
		"no file":           {input: "not_found {\ntemplate json\n}", err: "template json needs a file; for a file of that name, write ./json, at Testfile:2"},
		"an empty file":     {input: "not_found {\ntemplate json \"\"\n}", err: "template: json needs a file, at Testfile:2"},
		"no template":       {input: "not_found {\ntemplate\n}", err: "option 'template' takes a file, perhaps after its format, and not 0 arguments; quote a name that has spaces, at Testfile:2"},
		"unknown template":  {input: "not_found {\ntemplate yaml 404\n}", err: `template: the format yaml is not on offer; the formats are text, html, markdown, json, problem, xml, at Testfile:2`},
		"repeated template": {input: "not_found {\ntemplate 404.html\nreport\ntemplate html x\n}", err: "option 'template' is given twice for html; leave one of the two out, at Testfile:4"},
		"base URL":          {input: "not_found {\nfooter x\nbase_url https://a.test/?\n}", err: `base_url: "https://a.test/?" has a query or a fragment; leave it out, at Testfile:3`},
		"unknown format":    {input: "not_found {\nformats yaml\n}", err: `formats: unknown format "yaml"; the formats are text, html, markdown, json, problem, xml, at Testfile:2`},
		"unknown mode":      {input: "not_found {\nreplace some\n}", err: `replace: unknown mode "some"; the modes are pages, browsers, all, none, at Testfile:2`},
		"empty value":       {input: "not_found {\nfooter \"\"\n}", err: "option 'footer' is empty; give it a value or leave it out, at Testfile:2"},
		"empty keep":        {input: "not_found {\nfooter x\nkeep\n}", err: "keep: a matcher without a header field would keep every 404 response; write one as in header X-Error-Page *, or use replace none, at Testfile:3"},
		"keep status 4xx":   {input: "not_found {\nkeep header X *\nkeep {\nstatus 410 4xx\n}\n}", err: "keep: a matcher without a header field would keep every 404 response; write one as in header X-Error-Page *, or use replace none, at Testfile:3"},
		"keep nothing":      {input: "not_found {\nkeep {\nheader X *\nstatus 410 5xx\n}\n}", err: "keep: no 404 response has one of the statuses [410 5]; leave the status out, and write one as in header X-Error-Page *, at Testfile:2"},
		"message, context":  {input: "not_found {\nmessage x\nreport\ncontext_path /app\n}", err: "message: with a message of your own, context_path has no effect; leave one of the two out, at Testfile:4"},
		"template varies":   {input: "not_found {\ntemplate {http.request.host}.html\n}", err: `template: "{http.request.host}.html" takes no placeholders; {$NAME} in a Caddyfile is expanded when it is read, at Testfile:2`},
		"keep of a request": {input: "not_found {\nkeep header X {env.NAME}\n}", err: `keep: header X: "{env.NAME}" takes no placeholders; {$NAME} in a Caddyfile is expanded when it is read, at Testfile:2`},
		"keep of a colon":   {input: "not_found {\nkeep header Content-Type: text/html\n}", err: `keep: "Content-Type:" is not the name of a header field; write one as in header X-Error-Page *, at Testfile:2`},
		"keep of a path":    {input: "not_found {\nkeep path /x\n}", err: "keep takes the matchers header and status; for a path, write not_found /path/* { replace none }: unrecognized response matcher path, at Testfile:2"},
		"keep of a typo":    {input: "not_found {\nkeep {\nheader X *\nheaders Y *\n}\n}", err: "keep takes the matchers header and status; for a path, write not_found /path/* { replace none }: unrecognized response matcher headers, at Testfile:4"},
		"keep no status":    {input: "not_found {\nkeep status x\n}", err: `keep takes the matchers header and status: bad status value 'x': strconv.Atoi: parsing "x": invalid syntax, at Testfile:2`},
		"keep half a field": {input: "not_found {\nkeep header X\n}", err: "keep takes the matchers header and status: malformed header matcher: expected both field and value, at Testfile:2"},
		"report of a value": {input: "not_found {\nreport on\n}", err: "option 'report' takes no argument, and its line turns it on; to turn it off, leave out the line, at Testfile:2"},
		"dry_run off":       {input: "not_found {\ndry_run off\n}", err: "option 'dry_run' takes no argument, and its line turns it on; to turn it off, leave out the line, at Testfile:2"},
		"a block of option": {
			input: "not_found {\nfooter x {\ny\n}\n}",
			err:   "option 'footer' takes no block, at Testfile:3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h Handler
			err := h.UnmarshalCaddyfile(caddyfile.NewTestDispenser(tt.input))
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got the error\n%v\nwant\n%s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(h, tt.want) {
				t.Errorf("got %+v, want %+v", h, tt.want)
			}
			wantSameInJSON(t, &h)
		})
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
	if err := caddy.StrictUnmarshalJSON(encoded, fromJSON); err != nil || !reflect.DeepEqual(fromJSON, h) {
		t.Errorf("%s becomes %+v, %v", encoded, fromJSON, err)
	}
}

// TestMistakesInJSONAreRefused has what a Caddyfile cannot say, or is found only when a config is loaded.
func TestMistakesInJSONAreRefused(t *testing.T) {
	for config, want := range map[string]string{
		`{"status":404}`:                                      `unknown field "status"`,
		`{"keep":[{"headers":{"X":["*"]}},{}]}`:               "keep: a matcher without a header field would keep every 404 response",
		`{"keep":[{"status_code":[],"headers":{"X":["*"]}}]}`: "keep: no 404 response has one of the statuses []; leave the status out",
		`{"template":{"html":"{env.X}.html"}}`:                `template: "{env.X}.html" takes no placeholders; {$NAME} in a Caddyfile`,
		`{"template":{"yaml":"404"}}`:                         `template: the format yaml is not on offer; the formats are text, `,
		`{"template":{"json":""}}`:                            "template: json needs a file",
		`{"template":"404.html"}`:                             "Handler.template of type map[string]string",
		`{"message":"x","context_path":"/"}`:                  "message: with a message of your own, context_path has no effect; leave one of the two out",
		`{"formats":["yaml"]}`:                                `formats: unknown format "yaml"; the formats are text, `,
		`{"replace":"some"}`:                                  `replace: unknown mode "some"; the modes are pages, browsers, all, none`,
	} {
		h := new(Handler)
		err := caddy.StrictUnmarshalJSON([]byte(config), h)
		if err == nil {
			err = provisionErr(t, h)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error\n%v\nwant one with\n%s", config, err, want)
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
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddyfiletest"), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			caddyfile, expected, ok := strings.Cut(string(content), "\n----------\n")
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

// FuzzCaddyfile takes any text for the options. Accepted ones survive JSON, load unless a placeholder has an invalid
// value, and give a page.
func FuzzCaddyfile(f *testing.F) {
	f.Add("context_path /app/\nbase_url https://a.test/\nuri {http.request.orig_uri}\nfooter \"<us> & you\"\nformats html json\nreplace all\ntemplate 404.html\ntemplate json 404.json")
	f.Add("message \"{host} <b>\"\nkeep {\nheader X *\nstatus 404\n}\nkeep header Y a\nreport")
	f.Add("footer \"/{unknown} \\{x\\} {http.request.host}\"")
	f.Add("message x\ncontext_path /")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "file.") { // a placeholder could name any file, such as /dev/zero
			return
		}
		tokens, err := caddyfile.Tokenize([]byte("not_found {\n"+text+"\n}"), "Caddyfile")
		if err != nil {
			return
		}
		h := new(Handler)
		if err := h.UnmarshalCaddyfile(caddyfile.NewDispenser(tokens)); err != nil {
			return
		}
		wantSameInJSON(t, h)
		for format := range h.Template {
			source, _ := page.BuiltIn(format)
			h.Template[format] = testcaddy.TempFile(t, "404", source)
		}
		if err := provisionErr(t, h); err != nil {
			if !strings.Contains(h.Message+h.ContextPath+h.BaseURL+h.URI+h.Footer, "{") {
				t.Errorf("accepted, but not loaded: %v", err)
			}
			return
		}
		w := httptest.NewRecorder()
		err = serve(h, w, "GET", "http://a.test/{http.request.host}", testcaddy.EndOfChain)
		if err != nil || w.Body.Len() == 0 {
			t.Errorf("got %d %q, %v", w.Code, w.Body, err)
		}
	})
}
