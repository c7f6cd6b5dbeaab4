package notfound

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

func TestUnmarshalCaddyfile(t *testing.T) {
	for name, tt := range map[string]struct {
		input string
		want  Handler
		err   string // a part of it, and the line
	}{
		"nothing":     {input: "not_found"},
		"empty block": {input: "not_found {\n}"},
		"root":        {input: "not_found {\ncontext_path \"\"\n}"},
		"keep in a block": {
			input: "not_found {\nkeep {\nstatus 4xx\nheader X-Error-Page *\nheader Server nginx*\n}\nreplace all\n}",
			want: Handler{Replace: "all", Keep: []caddyhttp.ResponseMatcher{{
				StatusCode: []int{4},
				Headers:    http.Header{"X-Error-Page": {"*"}, "Server": {"nginx*"}},
			}}},
		},
		"several keeps": {
			input: "not_found {\nkeep header X a\nkeep {\nheader Y a\nheader Y b\nheader !Z\nstatus 404\n}\nkeep header X c\n}",
			want: Handler{Keep: []caddyhttp.ResponseMatcher{
				{Headers: http.Header{"X": {"a"}}},
				{StatusCode: []int{404}, Headers: http.Header{"Y": {"a", "b"}, "Z": nil}},
				{Headers: http.Header{"X": {"c"}}},
			}},
		},
		"everything": {
			input: "not_found {\ncontext_path /app\nbase_url https://a.test\nuri /x\nfooter x\nformats xml html\nreplace none\nkeep header X-Designed *\ntemplate 404.html\nreport\n}",
			want: Handler{
				ContextPath: "/app", BaseURL: "https://a.test", URI: "/x", Footer: "x", Formats: []string{"xml", "html"}, Replace: "none",
				Keep: []caddyhttp.ResponseMatcher{{Headers: http.Header{"X-Designed": {"*"}}}}, Template: "404.html", Report: true,
			},
		},

		"message":               {input: "not_found {\nmessage \"Seite {a} nicht gefunden.\"\n}", want: Handler{Message: "Seite {a} nicht gefunden."}},
		"empty block of option": {input: "not_found {\nfooter x {\n}\nreplace all\n}", want: Handler{Footer: "x", Replace: "all"}},
		"placeholders": {
			input: "not_found {\ncontext_path {a}app\nbase_url {a}:x\nfooter \" {a} \"\nuri {a}#x\n}",
			want:  Handler{ContextPath: "{a}app", BaseURL: "{a}:x", Footer: " {a} ", URI: "{a}#x"},
		},

		"stray argument":    {input: "not_found 404.html", err: "unexpected argument '404.html': not_found takes a matcher and a block of options, at Testfile:1"},
		"unknown option":    {input: "not_found {\nstatus 404\n}", err: "unknown option 'status'; the options are message, context_path, base_url, uri, footer, formats, replace, keep, template, report, at Testfile:2"},
		"repeated option":   {input: "not_found {\nfooter x\nfooter y\n}", err: "option 'footer' is given twice, at Testfile:3"},
		"missing argument":  {input: "not_found {\nfooter x\ncontext_path\n}", err: "option 'context_path' takes one argument, not 0, at Testfile:3"},
		"no formats":        {input: "not_found {\nformats\n}", err: "option 'formats' needs at least one of text, html, markdown, json, problem, xml, at Testfile:2"},
		"surplus argument":  {input: "not_found {\nfooter Powered by us\n}", err: "option 'footer' takes one argument, not 3; quote a value that has spaces, at Testfile:2"},
		"surplus mode":      {input: "not_found {\nreplace pages all\n}", err: "option 'replace' takes one argument, not 2, at Testfile:2"},
		"surplus file":      {input: "not_found {\ntemplate our page.html\n}", err: "option 'template' takes one argument, not 2; quote a value that has spaces, at Testfile:2"},
		"template unused":   {input: "not_found {\ntemplate 404.html\nformats json text\nreport\n}", err: "template: 404.html is for the HTML page, and the formats json text have no html; add html to them, or leave the template out, at Testfile:3"},
		"formats first":     {input: "not_found {\nformats json\nreport\ntemplate 404.html\n}", err: "template: 404.html is for the HTML page, and the formats json have no html; add html to them, or leave the template out, at Testfile:4"},
		"empty value":       {input: "not_found {\nfooter \"\"\n}", err: "option 'footer' is empty; give it a value or leave it out, at Testfile:2"},
		"empty keep":        {input: "not_found {\nfooter x\nkeep\n}", err: "keep: the matcher is empty and would keep every 404 response; write one as in header X-Error-Page *, or use replace none, at Testfile:3"},
		"empty keep block":  {input: "not_found {\nkeep {\n}\n}", err: "keep: the matcher is empty and would keep every 404 response; write one as in header X-Error-Page *, or use replace none, at Testfile:2"},
		"keep status 404":   {input: "not_found {\nkeep status 404\n}", err: "keep: the matcher status 404 would keep every 404 response; write one as in header X-Error-Page *, or use replace none, at Testfile:2"},
		"keep status 4xx":   {input: "not_found {\nkeep header X *\nkeep {\nstatus 410 4xx\n}\n}", err: "keep: the matcher status 410 or 4xx would keep every 404 response; write one as in header X-Error-Page *, or use replace none, at Testfile:3"},
		"keep nothing":      {input: "not_found {\nkeep {\nheader X *\nstatus 410 5xx\n}\n}", err: "keep: no 404 response has the status 410 or 5xx; leave the status out, and write one as in header X-Error-Page *, at Testfile:2"},
		"message, context":  {input: "not_found {\nmessage x\nreport\ncontext_path /app\n}", err: "message: it takes the place of the one that names context_path; leave one of the two out, at Testfile:4"},
		"context, message":  {input: "not_found {\ncontext_path /\nmessage x\n}", err: "message: it takes the place of the one that names context_path; leave one of the two out, at Testfile:3"},
		"surplus message":   {input: "not_found {\nmessage Not here\n}", err: "option 'message' takes one argument, not 2; quote a value that has spaces, at Testfile:2"},
		"template varies":   {input: "not_found {\ntemplate {http.request.host}.html\n}", err: `template: "{http.request.host}.html" takes no placeholders; {$NAME} in a Caddyfile is expanded when it is read, at Testfile:2`},
		"keep of a request": {input: "not_found {\nkeep header X {env.NAME}\n}", err: `keep: header X: "{env.NAME}" takes no placeholders; {$NAME} in a Caddyfile is expanded when it is read, at Testfile:2`},
		"keep of a colon":   {input: "not_found {\nkeep header Content-Type: text/html\n}", err: `keep: "Content-Type:" is not the name of a header field; write one as in header X-Error-Page *, at Testfile:2`},
		"keep of a path":    {input: "not_found {\nkeep path /x\n}", err: "keep: unknown matcher 'path'; the matchers are header and status, at Testfile:2"},
		"keep of a typo":    {input: "not_found {\nkeep {\nheader X *\nheaders Y *\n}\n}", err: "keep: unknown matcher 'headers'; the matchers are header and status, at Testfile:4"},
		"keep no status":    {input: "not_found {\nkeep status x\n}", err: `keep: bad status value 'x': strconv.Atoi: parsing "x": invalid syntax, at Testfile:2`},
		"keep half a field": {input: "not_found {\nkeep header X\n}", err: "keep: malformed header matcher: expected both field and value, at Testfile:2"},
		"report of a value": {input: "not_found {\nreport on\n}", err: "option 'report' takes no argument; leave out \"on\", at Testfile:2"},
		"a block of option": {input: "not_found {\nfooter x {\ny\n}\n}", err: "option 'footer' takes no block, at Testfile:3"},
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

// TestMistakesAreRefused loads each mistake as `caddy validate` does, from a Caddyfile and from JSON. The error is the
// same, and it names the line of the Caddyfile if no placeholder or file is needed to find the mistake.
func TestMistakesAreRefused(t *testing.T) {
	t.Setenv("NOT_FOUND_TEST_PORT", "99999")
	workingDirectory, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(t.TempDir(), "none.html")
	unparsable := testcaddy.TempFile(t, "unparsable.html", "<p>{{.URI")
	unknownFunc := testcaddy.TempFile(t, "function.html", "<p>{{uri}}")
	unescapable := testcaddy.TempFile(t, "unescapable.html", "<a href='{{if .URI}}x'{{end}}>")
	unknownField := testcaddy.TempFile(t, "field.html", "<p>\n<p>{{.Uri}}")
	failing := testcaddy.TempFile(t, "failing.html", "<p>\n\n{{index .URI 99999}}")
	empty := testcaddy.TempFile(t, "empty.html", "")
	blank := testcaddy.TempFile(t, "blank.html", " \n\t{{if false}}x{{end}}\n")
	defines := testcaddy.TempFile(t, "defines.html", `{{define "page"}}<p>{{.URI}}{{end}}`)

	for name, tt := range map[string]struct{ option, value, err string }{
		"context path without slash":        {"context_path", "app", `context_path: "app" does not begin with a slash; write it as in "/app"`},
		"context path with a space":         {"context_path", "/my app", `context_path: "/my app" has characters that the path of a URL cannot have; percent-encode them, as in "/my%20app"`},
		"context path with a query":         {"context_path", "/app?x", `percent-encode them, as in "/app%3Fx"`},
		"context path with markup":          {"context_path", "/<b>", `percent-encode them, as in "/%3Cb%3E"`},
		"base URL without scheme":           {"base_url", "www.example.com", `base_url: "www.example.com" is not an absolute http or https URL with a host; write it as in https://www.example.com`},
		"base URL of another scheme":        {"base_url", "ftp://example.com", `base_url: "ftp://example.com" is not an absolute http or https URL`},
		"base URL without host":             {"base_url", "https:///x", `is not an absolute http or https URL with a host`},
		"base URL with a port only":         {"base_url", "https://:8443", `is not an absolute http or https URL with a host`},
		"base URL with a user":              {"base_url", "https://me:secret@example.com", `base_url: "https://me:xxxxx@example.com" has user information`},
		"base URL with a query":             {"base_url", "https://example.com/?x", `has a query or a fragment; leave it out`},
		"base URL with an empty query":      {"base_url", "https://example.com/?", `has a query or a fragment; leave it out`},
		"base URL with a fragment":          {"base_url", "https://example.com/#x", `has a query or a fragment; leave it out`},
		"base URL with a space":             {"base_url", "https://example.com/my app", `percent-encode them, as in "https://example.com/my%20app"`},
		"base URL that is not a URL":        {"base_url", "https://example.com:x", `is not a URL: `},
		"base URL with a large port":        {"base_url", "https://example.com:99999/x", `base_url: "https://example.com:99999/x" has the port 99999; a port is a number from 1 to 65535`},
		"base URL with the port 65536":      {"base_url", "https://[::1]:65536", `has the port 65536; a port is a number from 1 to 65535`},
		"base URL with the port 0":          {"base_url", "https://example.com:0", `has the port 0; a port is a number from 1 to 65535`},
		"base URL with a variable port":     {"base_url", "https://example.com:{env.NOT_FOUND_TEST_PORT}", `base_url: "https://example.com:99999" has the port 99999; a port is a number from 1 to 65535`},
		"base URL of an unset variable":     {"base_url", "{env.NOT_FOUND_TEST_UNSET}", `base_url: "" is not an absolute http or https URL`},
		"URI of another scheme":             {"uri", "ftp://a.test/x", `uri: "ftp://a.test/x" is neither a path nor an absolute http or https URL; write it as in {http.request.header.X-Original-URI}`},
		"URI without scheme":                {"uri", "www.example.com/x", `uri: "www.example.com/x" is neither a path nor an absolute http or https URL`},
		"URI of the name of a field":        {"uri", "X-Original-URI", `is neither a path nor an absolute http or https URL`},
		"URI of an unset variable":          {"uri", "{env.NOT_FOUND_TEST_UNSET}", `uri: "" is neither a path nor an absolute http or https URL`},
		"URI without host":                  {"uri", "https:///x", `uri: "https://" is not an absolute http or https URL with a host`},
		"URI with a user":                   {"uri", "https://me:secret@example.com/x", `uri: "https://me:xxxxx@example.com" has user information, which every visitor would see; leave it out`},
		"URI with a user and a fragment":    {"uri", "https://me:secret@example.com#x", `uri: "https://me:xxxxx@example.com" has user information`},
		"URI with a large port":             {"uri", "https://example.com:99999?x", `uri: "https://example.com:99999" has the port 99999; a port is a number from 1 to 65535`},
		"URI with a host that is none":      {"uri", "https://exa mple.com", `uri: "https://exa mple.com" is not a URL: `},
		"URI with a fragment":               {"uri", "/x#top", `uri: "/x#top" has a fragment, which no client sends; leave it out`},
		"URI with a space":                  {"uri", "https://example.com/my app?x", `uri: "https://example.com/my app?x" has characters that a URL cannot have; percent-encode them, as in "https://example.com/my%20app?x"`},
		"URI that is a path with markup":    {"uri", "/<b>", `percent-encode them, as in "/%3Cb%3E"`},
		"blank message":                     {"message", " \t", `message: " \t" is blank; write one line of text, or leave the option out`},
		"message of two lines":              {"message", "one\ntwo", `message: "one\ntwo" is not one line of text; leave out line breaks and control characters`},
		"blank footer":                      {"footer", " \t", `is blank; write one line of text, or leave the option out`},
		"footer of an unset variable":       {"footer", "{env.NOT_FOUND_TEST_UNSET}", `footer: "" is blank; write one line of text, or leave the option out`},
		"footer of two lines":               {"footer", "one\ntwo", `footer: "one\ntwo" is not one line of text; leave out line breaks and control characters`},
		"footer with a control character":   {"footer", "be\x07ll", `is not one line of text`},
		"footer with another line end":      {"footer", "one\u2028two", `is not one line of text`},
		"unknown format":                    {"formats", "yaml", `formats: unknown format "yaml"; the formats are text, html, markdown, json, problem, xml`},
		"repeated format":                   {"formats", "html text html", `formats: html is given twice; give each format once`},
		"unknown mode":                      {"replace", "some", `replace: unknown mode "some"; the modes are pages, all, none`},
		"missing template":                  {"template", none, "template: reading the file: stat " + none},
		"missing template, relative path":   {"template", "nowhere/404.html", "template: reading the file: stat " + filepath.Join(workingDirectory, "nowhere", "404.html")},
		"template that is a folder":         {"template", filepath.Dir(none), "template: " + filepath.Dir(none) + " is not a regular file"},
		"template that does not parse":      {"template", unparsable, "template: parsing " + unparsable + ": "},
		"template with an unknown function": {"template", unknownFunc, `function "uri" not defined`},
		"template that cannot be escaped":   {"template", unescapable, "template: trying " + unescapable + " on a sample page: "},
		"template with an unknown field":    {"template", unknownField, "template: trying " + unknownField + ` on a sample page: template: field.html:2:5: executing "field.html" at <.Uri>: can't evaluate field Uri in type page.Page; the fields are .Heading, .URI, .Status, .Message, .Footer and .Placeholder "name"`},
		"template that fails":               {"template", failing, "template: trying " + failing + ` on a sample page: template: failing.html:3:2: executing "failing.html" at <index .URI 99999>: error calling index`},
		"empty template":                    {"template", empty, "template: " + empty + " renders a blank page; write the page at the top level of the file, outside of define"},
		"blank template":                    {"template", blank, blank + " renders a blank page"},
		"template of definitions only":      {"template", defines, defines + " renders a blank page"},
	} {
		t.Run(name, func(t *testing.T) {
			value := `"` + strings.ReplaceAll(tt.value, `"`, `\"`) + `"`
			if tt.option == "formats" {
				value = tt.value
			}
			// what a placeholder or a file hides is found in the JSON only
			expands := strings.Contains(tt.value, "{env.") || tt.option == "template"
			fromCaddyfile, err := testcaddy.AdaptErr("http://a.test:0 {\n\thandle {\n\t\tnot_found {\n\t\t\t" + tt.option + " " + value + "\n\t\t}\n\t}\n}")
			switch {
			case expands && err != nil:
				t.Fatal(err)
			case !expands && (err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), ", at Caddyfile:4")):
				t.Errorf("got the error\n%v\nwant one with\n%s, at Caddyfile:4", err, tt.err)
			}
			configs := [][]byte{}
			if expands {
				configs = append(configs, fromCaddyfile)
			}

			var encoded any = tt.value
			if tt.option == "formats" {
				encoded = strings.Fields(tt.value)
			}
			handler, err := json.Marshal(map[string]any{"handler": "not_found", tt.option: encoded})
			if err != nil {
				t.Fatal(err)
			}
			configs = append(configs, []byte(`{"admin":{"disabled":true},"apps":{"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"routes":[{"handle":[`+string(handler)+`]}]}}}}}`))

			for _, config := range configs {
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

	for name, tt := range map[string]struct{ options, err string }{
		"unknown option in JSON": {`"status":404`, `unknown field "status"`},
		"empty keep in JSON":     {`"keep":[{"headers":{"X":["*"]}},{}]`, "keep: the matcher is empty and would keep every 404 response"},
		"keep all in JSON":       {`"keep":[{"status_code":[404],"headers":{}}]`, "keep: the matcher status 404 would keep every 404 response"},
		"keep nothing in JSON":   {`"keep":[{"status_code":[200],"headers":{"X":["*"]}}]`, "keep: no 404 response has the status 200; leave the status out"},
		"no status in JSON":      {`"keep":[{"status_code":[],"headers":{"X":["*"]}}]`, "keep: no 404 response has the status []; leave the status out"},
		"keep a name in JSON":    {`"keep":[{"headers":{"{env.X}":["*"]}}]`, `keep: "{env.X}" is not the name of a header field; write one as in header X-Error-Page *`},
		"keep of a placeholder":  {`"keep":[{"headers":{"X":["*","{env.X}"]}}]`, `keep: header X: "{env.X}" takes no placeholders`},
		"template of an env":     {`"template":"{env.X}.html"`, `template: "{env.X}.html" takes no placeholders; {$NAME} in a Caddyfile`},
		"message and context":    {`"message":"x","context_path":"/"`, "message: it takes the place of the one that names context_path; leave one of the two out"},
		"template unused":        {`"template":"404.html","formats":["json","xml"]`, "template: 404.html is for the HTML page, and the formats json xml have no html; add html to them, or leave the template out"},
	} {
		t.Run(name, func(t *testing.T) {
			var cfg caddy.Config
			if err := json.Unmarshal([]byte(`{"admin":{"disabled":true},"apps":{"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"routes":[{"handle":[{"handler":"not_found",`+tt.options+`}]}]}}}}}`), &cfg); err != nil {
				t.Fatal(err)
			}
			if err := caddy.Validate(&cfg); err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got the error %v, want one with %s", err, tt.err)
			}
		})
	}
}

// TestBlocksHaveGroupsOfTheirOwn adapts a Caddyfile with a directive in each kind of block, twice.
func TestBlocksHaveGroupsOfTheirOwn(t *testing.T) {
	const blocks = `
&(a) {
	not_found
	handle {
		not_found
		not_found /a
	}
}
&(b) {
	not_found
	respond b
}
:80 {
	not_found
	not_found /a
	route {
		not_found
	}
	invoke a
	handle_errors {
		not_found
	}
}
:81 {
	not_found
	invoke b
}`
	config := string(testcaddy.Adapt(t, blocks))
	groups := regexp.MustCompile(`"group":"(not_found[^"]*)"`).FindAllStringSubmatch(config, -1)
	members := make(map[string]int)
	for _, group := range groups {
		members[group[1]]++
	}
	want := map[string]int{
		"not_found_route0": 2, "not_found_route1": 3, "not_found_route2": 2, // in named routes, with an empty route each
		"not_found0": 3, // of the sites, of which a request is for one
		"not_found1": 1, "not_found2": 1,
	}
	if !reflect.DeepEqual(members, want) {
		t.Errorf("got the groups %v, want %v:\n%s", members, want, config)
	}
	if again := string(testcaddy.Adapt(t, blocks)); again != config {
		t.Errorf("adapted a second time, it is\n%s\nwant\n%s", again, config)
	}
}

// TestAdaptReadsNoFile names a template that exists only where the config will run.
func TestAdaptReadsNoFile(t *testing.T) {
	config := testcaddy.Adapt(t, "http://a.test:0 {\nnot_found {\ntemplate /nowhere/404.html\n}\n}")
	if !strings.Contains(string(config), `"template":"/nowhere/404.html"`) {
		t.Errorf("the template is not in %s", config)
	}
}
