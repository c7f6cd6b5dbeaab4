package integration

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// reporting is a Caddy with its admin API. The report belongs to the process, so each one starts over.
type reporting struct {
	*testcaddy.Server
	admin string // the address of the admin API
}

func startReporting(t *testing.T, sites string) *reporting {
	t.Helper()
	option, addr := testcaddy.Admin(t)
	s := &reporting{testcaddy.Start(t, sites, option), addr}
	s.ask(t, "DELETE")
	return s
}

// ask asks the admin API for the report.
func (s *reporting) ask(t *testing.T, method string) testcaddy.Response {
	t.Helper()
	return testcaddy.HTTP11(t, s.admin).Do(t, method, "http://"+s.admin+"/not_found/report")
}

// miss sends a request over its own connection. When Caddy closes that, everything is counted.
func (s *reporting) miss(t *testing.T, method, url string, fields ...string) {
	t.Helper()
	url = strings.TrimPrefix(url, "http://")
	host, path, _ := strings.Cut(url, "/")
	fields = append(fields, "Host: "+host, "Connection: close")
	header := strings.Join(fields, "\r\n")
	s.Only(t, method, fmt.Sprintf("%s /%s HTTP/1.1\r\n%s\r\n\r\n", method, path, header))
}

// report returns what was counted, an address a line, as in "other a.test/x: 3 unanswered, 1 passed; on
// http://b.test/".
func (s *reporting) report(t *testing.T) (lines string) {
	t.Helper()
	var counted struct {
		Addresses []struct {
			Link, Host, Path string
			Outcomes         map[string]uint64
			LastLink         string `json:"last_link"`
		}
	}
	decode(t, []byte(s.ask(t, "GET").Content), &counted)
	for _, a := range counted.Addresses {
		address := a.Host + a.Path
		var outcomes report.Outcomes
		for i, name := range report.OutcomeNames() {
			outcomes[i] = a.Outcomes[name]
		}
		lines += fmt.Sprintf("%s %s: %s; on %s\n", a.Link, address, outcomes, a.LastLink)
	}
	return lines
}

// everyWay ends in the kind of 404 that the query names, or calls the next handler.
func everyWay(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	switch r.URL.RawQuery {
	case "":
		return next.ServeHTTP(w, r)
	case "error":
		return caddyhttp.Error(http.StatusNotFound, nil)
	case "json":
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(http.StatusNotFound)
	_, err := io.WriteString(w, `"theirs"`)
	return err
}

// TestReportSaysWhatIsMissed compares the whole report as sent, except for its times.
func TestReportSaysWhatIsMissed(t *testing.T) {
	s := startReporting(t, "http://www.example.com:0 {\nnot_found {\nreport\n}\n"+testcaddy.Directive(t, everyWay)+"\n}")
	const old = "http://www.example.com/old"
	const html = "Accept: text/html"
	s.miss(t, "GET", old, html)
	s.miss(t, "HEAD", old, "Referer: https://me:secret@www.example.com/first?token=secret")
	s.miss(t, "POST", old+"?error", "Referer: https://www.example.com/blog?token=secret#x", html)
	s.miss(t, "GET", old+"?error", "Referer: https://search.example/?q=token")
	s.miss(t, "GET", old+"?page", "Referer: "+old+"?page") // which is the address itself
	s.miss(t, "GET", old+"?json", "Referer: https://www.example.com/shop")

	const want = `{"since":TIME,"capacity":1000,"links":{` +
		`"none":{"count":3,"floor":0,"outcomes":{"error":0,"passed":1,"replaceable":0,"response":1,"unanswered":1},` +
		`"browsers":1},` +
		`"other":{"count":1,"floor":0,"outcomes":{"error":1,"passed":0,"replaceable":0,"response":0,"unanswered":0},` +
		`"browsers":0},` +
		`"own":{"count":2,"floor":0,"outcomes":{"error":1,"passed":0,"replaceable":0,"response":0,"unanswered":1},` +
		`"browsers":1}},` +
		`"addresses":[` +
		`{"link":"own","host":"www.example.com","path":"/old","query":true,"count":2,"overcount":0,` +
		`"outcomes":{"error":1,"passed":0,"replaceable":0,"response":0,"unanswered":1},"browsers":1,` +
		`"last_link":"https://www.example.com/blog","first":TIME,"last":TIME},` +
		`{"link":"other","host":"www.example.com","path":"/old","query":true,"count":1,"overcount":0,` +
		`"outcomes":{"error":1,"passed":0,"replaceable":0,"response":0,"unanswered":0},"browsers":0,` +
		`"last_link":"https://search.example/","first":TIME,"last":TIME},` +
		`{"link":"none","host":"www.example.com","path":"/old","query":true,"count":3,"overcount":0,` +
		`"outcomes":{"error":0,"passed":1,"replaceable":0,"response":1,"unanswered":1},"browsers":1,` +
		`"last_link":"https://www.example.com/shop","first":TIME,"last":TIME}]}` + "\n"
	times := regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)
	content := s.ask(t, "GET").Content
	if got := times.ReplaceAllString(content, "TIME"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestClientsCannotReadTheReport asks a site for what the admin API has.
func TestClientsCannotReadTheReport(t *testing.T) {
	s := startReporting(t, "http://a.test:0 {\nnot_found {\nreport\n}\n}")
	getPage(t, s.Client, "http://a.test/not_found/report")
	deleted := s.Client.Do(t, "DELETE", "http://a.test/not_found/report")
	deleted.WantPage(t, "DELETE", "http://a.test/not_found/report", "")
	if got := s.report(t); got != "none a.test/not_found/report: unanswered; on \n" {
		t.Errorf("got the report %q", got)
	}
}

// TestReportSurvivesReloads has another handler after each reload, once without report.
func TestReportSurvivesReloads(t *testing.T) {
	admin, addr := testcaddy.Admin(t)
	reload := func(s *reporting, site string) {
		caddyfile := testcaddy.Caddyfile("http://:0 {\n"+site+"\n}", admin, "log default {\noutput discard\n}")
		s.Reload(t, testcaddy.Adapt(t, caddyfile))
		s.miss(t, "GET", "http://a.test/x", "Referer: http://b.test/")
	}
	s := &reporting{new(testcaddy.Server), addr}
	reload(s, "not_found {\nreport\n}")
	s.ask(t, "DELETE")
	for _, step := range []struct{ site, want string }{
		{"not_found {\nreport\n}", "unanswered"},
		{"handle {\nnot_found {\nreport\n}\nerror 404\n}", "1 unanswered, 1 error"},
		{"not_found", "1 unanswered, 1 error"},
		{"not_found {\ndry_run\n}", "2 unanswered, 1 error"},
	} {
		reload(s, step.site)
		want := "other a.test/x: " + step.want + "; on http://b.test/\n"
		if got := s.report(t); got != want {
			t.Errorf("with %s: got\n%swant\n%s", step.site, got, want)
		}
	}
}

// TestReportCountsARequestOnce nests handlers, some of which report.
func TestReportCountsARequestOnce(t *testing.T) {
	const (
		reports    = "not_found {\nreport\n}\n"
		dry        = "not_found {\ndry_run\n}\n"
		theirs404  = "header -Content-Length\nrespond theirs 404\n"
		intercepts = "intercept {\n@404 status 404\nhandle_response @404 {\n" + theirs404 + "}\n}\n"
	)
	theirs := testcaddy.Directive(t, everyWay) + "\n"
	for name, tt := range map[string]struct {
		site string
		want string // the outcome that is counted
	}{
		"only the outer one reports":     {site: reports + "handle {\nnot_found\n}"},
		"only the inner one reports":     {site: "not_found\nhandle {\n" + reports + theirs + "}", want: ": response;"},
		"both report":                    {site: reports + "handle {\n" + reports + theirs + "}", want: ": response;"},
		"a dry run within":               {site: reports + "handle {\n" + dry + theirs + "}", want: ": replaceable;"},
		"a dry run before handle_errors": {site: dry + "error 404\nhandle_errors {\n" + reports + "}", want: ": error;"},
		"in a site and in handle_errors": {site: reports + "error 404\nhandle_errors {\n" + reports + "}", want: ": error;"},
		"a 404 in place of another":      {site: reports + intercepts + "handle {\n" + reports + "}", want: ": unanswered;"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startReporting(t, "http://a.test:0 {\n"+tt.site+"\n}")
			s.miss(t, "GET", "http://a.test/?page")
			got := s.report(t)
			isCounted := got != ""
			if isCounted != (tt.want != "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
