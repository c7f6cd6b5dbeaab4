package notfound

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestListsAreThoseInTheCode compares the lists of options, formats, modes, outcomes and kinds of links that people
// read with those in the code. Errors build their lists from the code.
func TestListsAreThoseInTheCode(t *testing.T) {
	// the syntax of the directive, and the JSON of docs/options.md
	var syntax []string
	for line := range strings.Lines(between(t, "caddyfile.go", "not_found [<matcher>] {\n", "//\t}\n")) {
		syntax = append(syntax, strings.Join(strings.Fields(line)[1:], " ")) // without //
	}
	object := between(t, "docs/options.md", "```json\n", "```")
	h := new(Handler)
	if err := json.Unmarshal([]byte(object), h); err != nil {
		t.Errorf("the JSON of docs/options.md: %v", err)
	}
	provision(t, h)
	inObject := slices.DeleteFunc(slices.Clone(optionNames), func(name string) bool { return name == "context_path" }) // see message

	options := table(t, "README.md", "## Options")
	ofFormats := options[slices.Index(optionNames, "formats")]
	ofReplace := options[slices.Index(optionNames, "replace")]
	docOfFormats := between(t, "module.go", "// The representations on offer: ", "Formats []string")
	docOfReplace := between(t, "module.go", "// Which 404 responses of the next handlers", "Replace string")

	// the command
	command, cmd := caddycmd.Commands()["not-found"], new(cobra.Command)
	command.CobraFunc(cmd)
	reportCommand, _, err := cmd.Find([]string{"report"})
	if err != nil {
		t.Fatal(err)
	}
	flags := find(`(?m)^ +(?:-\w, )?--([a-z-]+)`, cmd.Flags().FlagUsages())
	optionFlags := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool {
		return flag == "report" || !slices.Contains(optionNames, strings.ReplaceAll(flag, "-", "_"))
	})
	inHelp := find(`--([a-z-]+)`, between(t, "internal/command/command.go", "whichever the client's Accept header prefers. ", " are the options of the"))

	// the report
	var outcomes, links []string
	for o := range report.NumOutcomes {
		outcomes = append(outcomes, o.String())
	}
	for l := range report.NumLinks {
		links = append(links, l.String())
	}
	var tested []string
	for _, f := range testcaddy.Formats {
		tested = append(tested, f.Name)
	}
	encoded, err := json.Marshal(report.Report{})
	if err != nil {
		t.Fatal(err)
	}
	example := string(encoded)

	for what, tt := range map[string]struct{ got, want []string }{
		"the syntax of UnmarshalCaddyfile":     {find(`(?m)^(\w+)`, strings.Join(syntax, "\n")), optionNames},
		"the modes in it":                      {find(`(?m)^replace (.*)`, strings.Join(syntax, "\n")), []string{strings.Join(judge.Modes, "|")}},
		"the options of the README":            {column(options, 0), syntax},
		"the default of formats in the README": {strings.Fields(strings.Trim(ofFormats[1], "`")), page.Formats()},
		"the default of replace in the README": {[]string{ofReplace[1]}, []string{"`" + judge.Pages + "`"}},
		"the JSON of docs/options.md":          {find(`(?m)^\t"(\w+)":`, object), slices.Concat([]string{"handler"}, inObject, []string{"group"})},
		"the documentation of Formats":         {find("`(\\w+)`", docOfFormats), page.Formats()},
		"the documentation of Replace":         {find("`(\\w+)`: ", docOfReplace), judge.Modes},
		"the default there":                    {find("Default: `(\\w+)`", docOfReplace), []string{judge.Pages}},
		"docs/representations.md":              {column(table(t, "docs/representations.md", "## Formats"), 0), page.Formats()},
		"the usage of the command":             {slices.Sorted(slices.Values(find(`\[--([a-z-]+)`, command.Usage))), flags},
		"the help of the command":              {slices.Sorted(slices.Values(inHelp)), optionFlags},
		"the help of --formats":                {strings.Split(afterColon(cmd.Flag("formats").Usage), ", "), page.Formats()},
		"the outcomes of docs/report.md":       {column(table(t, "docs/report.md", "## What is counted"), 0), outcomes},
		"the kinds of links of docs/report.md": {column(table(t, "docs/report.md", "## Three kinds of links"), 0), links},
		"the kinds of links in JSON":           {find(`"(\w+)":\{"count"`, strings.Replace(example, `"links":{`, "", 1)), links},
		"the outcomes in JSON":                 {find(`"(\w+)":0[,}]`, find(`"outcomes":(\{[^}]*\})`, example)[0]), outcomes},
		"the help of --why":                    {regexp.MustCompile(`, | or `).Split(afterColon(reportCommand.Flag("why").Usage), -1), outcomes},
		"the help of --link":                   {regexp.MustCompile(`, | or `).Split(afterColon(reportCommand.Flag("link").Usage), -1), links},
		"the formats of internal/testcaddy":    {tested, page.Formats()},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s: got\n%q\nwant, as in the code,\n%q", what, tt.got, tt.want)
		}
	}

	// the formats in prose
	words := map[string]string{"text": "plain text", "html": "HTML", "markdown": "Markdown", "json": "JSON", "problem": "problem details", "xml": "XML"}
	var prose []string
	for _, name := range page.Formats() {
		prose = append(prose, words[name])
	}
	last := len(prose) - 1
	want := strings.Join(prose[:last], ", ") + " or " + prose[last]
	for _, file := range []string{"README.md", "module.go", "internal/command/command.go"} {
		text := strings.ReplaceAll(between(t, file, "", ""), "\n//", "")
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%s lacks %q", file, want)
		}
	}
}

// TestMediaTypesOfTheDocumentation asks for the page by each media type of docs/representations.md.
func TestMediaTypesOfTheDocumentation(t *testing.T) {
	s := compile(t, "not_found", nil)
	for _, row := range table(t, "docs/representations.md", "## Formats") {
		for mediaType := range strings.SplitSeq(row[1], ", ") {
			rec := httptest.NewRecorder()
			if err := s.serve(rec, prepare(rec, incoming(t, "/x", "Accept: "+mediaType))); err != nil {
				t.Fatal(err)
			}
			if got := rec.Header().Get("Content-Type"); got != row[2] {
				t.Errorf("%s: got %s, want %s", mediaType, got, row[2])
			}
		}
	}
}

// between returns what a file has between two strings. An empty end is that of the file.
func between(t *testing.T, file, start, end string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(content), start)
	if end != "" && found {
		text, _, found = strings.Cut(text, end)
	}
	if !found {
		t.Fatalf("%s has nothing between %q and %q", file, start, end)
	}
	return text
}

// find returns the first group of each match.
func find(pattern, text string) (found []string) {
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

func afterColon(s string) string {
	_, s, _ = strings.Cut(s, ": ")
	return s
}

// table returns the cells of the first table of a section in Markdown, without its header.
func table(t *testing.T, file, section string) (rows [][]string) {
	t.Helper()
	text := between(t, file, "\n"+section+"\n", "")
	_, text, found := strings.Cut(text, "\n|---")
	_, text, _ = strings.Cut(text, "\n")
	if !found {
		t.Fatalf("%s has no table", section)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		rows = append(rows, strings.Split(strings.Trim(line, "| \n"), " | "))
	}
	return rows
}

// column returns a column of a table, as a reader sees it.
func column(rows [][]string, i int) (cells []string) {
	for _, row := range rows {
		cells = append(cells, strings.ReplaceAll(strings.Trim(row[i], "`"), `\|`, "|"))
	}
	return cells
}

// TestRecorded404s replays the 404s of real applications: to the clients that they were recorded with, to a browser,
// and to a program that names no HTML. What is not in the list is replaced; with `replace all`, everything is. The
// number of them is that of docs/applications.md.
func TestRecorded404s(t *testing.T) {
	const (
		recorded = "recorded"
		browser  = "browser"
		program  = "program"
		everyone = recorded + browser + program
	)
	passes := map[string]string{ // to whom
		// JSON, XML and other types of programs
		"FastAPI, curl GET /":                                                                          everyone,
		"Verdaccio 6.8, curl GET /nix":                                                                 everyone,
		"Verdaccio 6.8, npm GET /-/team/x/y/user?format=cli":                                           everyone,
		"versitygw (S3), curl GET /nix":                                                                everyone,
		"versitygw (S3), none HEAD /cba/nope":                                                          everyone,
		"versitygw (S3), rclone HEAD /bkt-a/p":                                                         everyone,
		"docker-registry 2, curl GET /v2/A/app/manifests/nope":                                         everyone,
		"docker-registry 2, skopeo GET /v2/a/app/manifests/nope":                                       everyone,
		"Jupyter Notebook, Chromium GET /api/contents/nope.txt":                                        everyone,
		"WordPress 6.1, Chromium GET /wp-json/oembed/1.0/embed?url=http://app.example/x":               everyone,
		"MediaWiki 1.39, Chromium GET /rest.php/v1/page/Nopexx":                                        everyone,
		"Next.js 16.4, app router, Chromium GET /nix?_rsc=5CB68i4pnAekjehf":                            everyone,
		"PouchDB Server (express-pouchdb) 4.2.0, PouchDB 9 in Node (node-fetch) GET /db/node-w2/":      everyone,
		"React Router framework mode, react-router-serve, plain HTTP 8.5.1, Chromium GET /post/9.data": everyone,
		"RabbitMQ management 3.10.8, rabbitmqadmin 3.10.8 POST /api/queues/%2F/none/get":               everyone,
		"RabbitMQ management 3.10.8, Chromium 156 GET /api/queues/%2F/none?lengths_age=60&lengths_incr=5&msg_rates_age=60&msg_rates_incr=5&data_rates_age=60&data_rates_incr=5": everyone,
		"Azurite Blob 3.37.0, @azure/storage-blob GET /devstoreaccount1/none?restype=container":                                                                                 everyone,
		"Django REST framework 3.14.0, curl GET /api/items/3/":                                                                                                                  everyone,
		// JSON under another type
		"PouchDB Server (express-pouchdb) 4.2.0, PouchDB 9 in Node (node-fetch) GET /db/node-w2/none/x": recorded + program,
		"PouchDB Server (express-pouchdb) 4.2.0, Chromium 156 GET /db/remote-plain/none":                program,
		"aptly api serve 1.5.0, curl GET /api/repos/nope":                                               recorded + program,
		"Node-RED 4.1.15, editor in Chromium, fetch, http in node GET /item/str":                        recorded + program,
		"Astro with ClientRouter, plain HTTP 7.3.5, Chromium GET /api/x":                                program,
		"SvelteKit, adapter-node, plain HTTP 3.2.0, Chromium GET /api/x?t":                              program,
		"Nuxt, localhost 4.5.2, Chromium GET /api/y":                                                    recorded + program,
		"TanStack Start, plain HTTP 1.169.5, Chromium GET /api/x":                                       program,
		// HTML, text or nothing, to a script
		"FastAPI, Chromium GET /plain/99":                                                                        recorded,
		"Flask with htmx 4 and Turbo 8, Chromium GET /part/99":                                                   recorded,
		"Flask with htmx 4 and Turbo 8, Chromium GET /frame/99":                                                  recorded,
		"Next.js 16.4, app router, Chromium GET /api/x":                                                          recorded,
		"Verdaccio 6.8, Chromium GET /-/verdaccio/data/sidebar/nope-nope":                                        recorded,
		"Prometheus, Chromium GET /api/v1/nope":                                                                  recorded,
		"Rails 6.1, Chromium GET /head":                                                                          recorded,
		"Express 5 with swup 4.10, barba 2.10, Alpine AJAX 0.12.7, localhost, Chromium 156 GET /alpine/missing":  recorded,
		"Express 5 with swup 4.10, barba 2.10, Alpine AJAX 0.12.7, localhost, Chromium 156 POST /alpine/vote/99": recorded,
		"Express 5 with swup 4.10, barba 2.10, Alpine AJAX 0.12.7, localhost, Chromium 156 GET /barba/missing":   recorded,
	}
	seen := make(map[string]bool)
	for _, rec := range testcaddy.Recordings() {
		name := fmt.Sprintf("%s, %s %s %s", rec.Application, rec.Client, rec.Method, rec.Target)
		seen[name] = true
		theirs := httptest.NewRecorder()
		rec.Replay(theirs)
		clients := map[string]http.Header{
			recorded: rec.Request,
			browser:  {"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}},
			program:  {"Accept": {"*/*"}},
		}
		for client, header := range clients {
			for mode, want := range map[string]bool{"": strings.Contains(passes[name], client), judge.All: false} {
				r := httptest.NewRequest(rec.Method, rec.Target, nil)
				r.Header = header.Clone()
				w := httptest.NewRecorder()
				err := provision(t, &Handler{Replace: mode}).ServeHTTP(w, prepare(w, r), caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
					rec.Replay(w)
					return nil
				}))
				got, want404 := w.Header().Clone(), theirs.Header().Clone()
				got.Del("Vary") // which is added if the response passes because of who asks, or of its body
				want404.Del("Vary")
				passed := w.Body.String() == theirs.Body.String() && reflect.DeepEqual(got, want404)
				isPage := w.Header().Get("Content-Location") == "" && strings.Contains(w.Body.String(), "HTTP ERROR 404") == (rec.Method != http.MethodHead)
				if err != nil || passed != want || isPage == want {
					t.Errorf("%s, to %s, replace %q: it passed: %v, it is the page: %v, %v, want it to pass: %v", name, client, mode, passed, isPage, err, want)
				}
			}
		}
	}
	for name := range passes {
		if !seen[name] {
			t.Errorf("%s was not recorded", name)
		}
	}
	between(t, "docs/applications.md", fmt.Sprintf(" %d of their 404s", len(testcaddy.Recordings())), "")
}
