package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// reporting is a Caddy with its admin API. The report belongs to the process, so each one starts over.
type reporting struct {
	*testcaddy.Server
	admin string // the address of the admin API
}

func startReporting(t *testing.T, sites string, options ...string) *reporting {
	t.Helper()
	option, addr := testcaddy.Admin(t)
	s := &reporting{testcaddy.Start(t, sites, append(options, option)...), addr}
	if res := s.ask(t, "DELETE", "/not_found/report"); res.StatusCode != http.StatusOK {
		t.Fatalf("starting the report over: got %s %s", res.Status, res.Content)
	}
	return s
}

// ask sends a request to the admin API. A reload resets connections that wait at the old listener, so ask first waits until an
// exchange succeeds.
func (s *reporting) ask(t *testing.T, method, uri string, fields ...string) testcaddy.Response {
	t.Helper()
	c := testcaddy.HTTP11(t, s.admin)
	for deadline := time.Now().Add(10 * time.Second); ; {
		res, err := c.HTTP.Get("http://" + s.admin + "/config/apps")
		if err == nil {
			testcaddy.ReadBody(t, res, "the config")
			break
		}
		if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	return c.Do(t, method, "http://"+s.admin+uri, fields...)
}

// miss sends a request over its own connection. When Caddy closes that, everything is counted.
func (s *reporting) miss(t *testing.T, method, url string, fields ...string) {
	t.Helper()
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	conn := s.Connect(t)
	defer conn.Close()
	fmt.Fprintf(conn, "%s /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", method, path, host)
	for _, field := range fields {
		fmt.Fprintf(conn, "%s\r\n", field)
	}
	io.WriteString(conn, "\r\n")
	if res, err := io.ReadAll(conn); !strings.HasPrefix(string(res), "HTTP/1.1 404 ") {
		t.Errorf("%s %.100s: got %.200q, %v, want a 404", method, url, res, err)
	}
}

// summary returns an address without its times, as in "other a.test/x: 3 unanswered, 1 passed; on http://b.test/".
func summary(a report.Address) string {
	outcomes := a.Outcomes.String()
	if !strings.Contains(outcomes, ",") {
		outcomes = fmt.Sprint(a.Count, " ", outcomes)
	}
	s := fmt.Sprintf("%s %s%s: %s", a.Link, a.Host, a.Path, outcomes)
	if a.LastLink != "" {
		s += "; on " + a.LastLink
	}
	return s
}

func countOf(r report.Report) uint64 {
	return r.Links.Own.Count + r.Links.Other.Count + r.Links.None.Count
}

// report reads the report.
func (s *reporting) report(t *testing.T, query string) report.Report {
	t.Helper()
	return readReport(t, s.ask(t, "GET", "/not_found/report"+query))
}

func readReport(t *testing.T, res testcaddy.Response) (r report.Report) {
	t.Helper()
	res.WantHeader(t, "Content-Type", "application/json")
	if err := json.Unmarshal([]byte(res.Content), &r); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("got %s %s, %v", res.Status, res.Content, err)
	}
	return r
}

// want checks the summaries of the addresses, in order.
func (s *reporting) want(t *testing.T, query string, want ...string) {
	t.Helper()
	var got []string
	for _, a := range s.report(t, query).Addresses {
		got = append(got, summary(a))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
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
	case "designed":
		w.Header().Set("X-Error-Page", "1")
	}
	w.WriteHeader(http.StatusNotFound)
	_, err := io.WriteString(w, `"theirs"`)
	return err
}

// TestReportSaysWhatIsMissed compares the whole report as sent, except for its times.
func TestReportSaysWhatIsMissed(t *testing.T) {
	way := testcaddy.Directive(t, everyWay)
	s := startReporting(t, "http://www.example.com:0 {\nnot_found {\nreport\n}\n"+way+"\n}\nhttp://none.test:0 {\nnot_found {\nreplace none\nreport\n}\n"+way+"\n}")
	old := "http://www.example.com/old"
	s.miss(t, "GET", old)
	s.miss(t, "HEAD", old, "Referer: https://me:secret@www.example.com/first?token=secret")
	s.miss(t, "POST", old+"?error", "Referer: https://www.example.com/blog?token=secret#x")
	s.miss(t, "GET", old+"?error", "Referer: https://search.example/?q=token")
	s.miss(t, "GET", old+"?page", "Referer: "+old+"?page") // which is the address itself
	s.miss(t, "GET", old+"?json", "Referer: https://www.example.com/shop")
	s.miss(t, "GET", "http://none.test/%3C&?page", "Referer: https://none.test/blog")
	s.Get(t, old) // over a connection that stays

	res := s.ask(t, "GET", "/not_found/report")
	const want = `{"since":TIME,"capacity":1000,"links":{` +
		`"own":{"count":3,"floor":0,"outcomes":{"unanswered":1,"error":1,"response":0,"passed":0,"replaceable":1}},` +
		`"other":{"count":1,"floor":0,"outcomes":{"unanswered":0,"error":1,"response":0,"passed":0,"replaceable":0}},` +
		`"none":{"count":4,"floor":0,"outcomes":{"unanswered":2,"error":0,"response":1,"passed":1,"replaceable":0}}},"addresses":[` +
		`{"link":"own","host":"www.example.com","path":"/old","query":true,"count":2,"overcount":0,` +
		`"outcomes":{"unanswered":1,"error":1,"response":0,"passed":0,"replaceable":0},` +
		`"last_link":"https://www.example.com/blog","first":TIME,"last":TIME},` +
		`{"link":"own","host":"none.test","path":"/%3C\u0026","query":true,"count":1,"overcount":0,` +
		`"outcomes":{"unanswered":0,"error":0,"response":0,"passed":0,"replaceable":1},` +
		`"last_link":"https://none.test/blog","first":TIME,"last":TIME},` +
		`{"link":"other","host":"www.example.com","path":"/old","query":true,"count":1,"overcount":0,` +
		`"outcomes":{"unanswered":0,"error":1,"response":0,"passed":0,"replaceable":0},` +
		`"last_link":"https://search.example/","first":TIME,"last":TIME},` +
		`{"link":"none","host":"www.example.com","path":"/old","query":true,"count":4,"overcount":0,` +
		`"outcomes":{"unanswered":2,"error":0,"response":1,"passed":1,"replaceable":0},` +
		`"last_link":"https://www.example.com/shop","first":TIME,"last":TIME}]}` + "\n"
	if got := regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`).ReplaceAllString(res.Content, "TIME"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestReportParameters has addresses of several hosts and ports. Two of them have a link.
func TestReportParameters(t *testing.T) {
	s := startReporting(t, "http://:0 {\nnot_found {\nreport\n}\nerror /6 404\n}")
	s.miss(t, "GET", "http://[2001:DB8::1]/4")
	s.miss(t, "GET", "http://[2001:db8::1]:8080/5")
	s.miss(t, "GET", "http://localhost:81/6")
	s.miss(t, "GET", "http://a.test/1", "Referer: http://b.test/")
	s.miss(t, "GET", "http://a.test/2")
	s.miss(t, "GET", "http://b.test/3", "Referer: http://b.test/")
	const (
		own3   = "own b.test/3: 1 unanswered; on http://b.test/"
		other1 = "other a.test/1: 1 unanswered; on http://b.test/"
		none2  = "none a.test/2: 1 unanswered"
		none6  = "none localhost:81/6: 1 error"
		none5  = "none [2001:db8::1]:8080/5: 1 unanswered"
		none4  = "none [2001:db8::1]/4: 1 unanswered"
	)
	for query, want := range map[string][]string{
		"":                        {own3, other1, none2, none6, none5, none4},
		"?limit=1":                {own3, other1, none2},
		"?link=own":               {own3},
		"?host=A.test":            {other1, none2},
		"?host=localhost:81":      {none6},
		"?host=2001:DB8::1":       {none5, none4},
		"?why=unanswered&limit=2": {own3, other1, none2, none5},
	} {
		t.Run(query, func(t *testing.T) {
			s.want(t, query, want...)
			if r := s.report(t, query); countOf(r) != 6 || r.Capacity != 1000 || r.Partial != (len(want) < 6) {
				t.Errorf("got %+v, want the count 6, which is that of the whole report, and whether it is partial", r)
			}
		})
	}
	for query, want := range map[string]string{
		"?limit=0":            `limit: "0" is not a number of addresses`,
		"?link=any":           `link: "any" is not a kind of link; it is own, other or none`,
		"?why=none":           `why: "none" is not an outcome; it is one of unanswered, error, response, passed, replaceable`,
		"?host=http://a.test": `host: "http://a.test" is not a host`,
		"?path=/x":            `unknown parameter "path"; the parameters are limit, link, why and host`,
		"?limit=1&limit=2":    "limit is given 2 times",
	} {
		t.Run(query, func(t *testing.T) {
			wantError(t, s.ask(t, "GET", "/not_found/report"+query), http.StatusBadRequest, want)
		})
	}
	wantError(t, s.ask(t, "DELETE", "/not_found/report?host=a.test"), http.StatusBadRequest,
		`DELETE takes no parameters, not "host=a.test": it returns the whole report and starts over`)
	if r := s.report(t, ""); countOf(r) != 6 {
		t.Errorf("DELETE with a parameter left %+v", r)
	}
}

// wantError checks an error of the admin API.
func wantError(t *testing.T, res testcaddy.Response, status int, reason string) {
	t.Helper()
	res.WantHeader(t, "Content-Type", "application/json")
	var e struct{ Error string }
	if err := json.Unmarshal([]byte(res.Content), &e); err != nil || res.StatusCode != status || !strings.Contains(e.Error, reason) {
		t.Errorf("got %s %s, want %d with %s", res.Status, res.Content, status, reason)
	}
}

// TestReportMethods asks the admin API, and first a site, which has a page at that address.
func TestReportMethods(t *testing.T) {
	s := startReporting(t, "http://:0 {\nnot_found {\nreport\n}\n}")
	s.miss(t, "GET", "http://a.test/not_found/report")
	s.miss(t, "DELETE", "http://a.test/not_found/report")
	s.want(t, "", "none a.test/not_found/report: 2 unanswered")
	before := s.report(t, "")
	for _, method := range []string{"POST", "PURGE"} {
		res := s.ask(t, method, "/not_found/report")
		wantError(t, res, http.StatusMethodNotAllowed, "use GET or DELETE")
		res.WantHeader(t, "Allow", "GET, DELETE")
	}
	if got := readReport(t, s.ask(t, "DELETE", "/not_found/report")); !reflect.DeepEqual(got, before) {
		t.Errorf("DELETE: got %+v, want %+v as with GET", got, before)
	}
	if got := s.report(t, ""); countOf(got) != 0 || got.Addresses == nil || len(got.Addresses) != 0 || !got.Since.After(before.Since) {
		t.Errorf("after DELETE: got %+v, want an empty report that begins later", got)
	}
}

// TestReportSurvivesReloads has another handler after each reload, once without report.
func TestReportSurvivesReloads(t *testing.T) {
	admin, addr := testcaddy.Admin(t)
	config := func(site string) []byte {
		return testcaddy.Adapt(t, testcaddy.Caddyfile("http://:0 {\n"+site+"\n}", admin, "log default {\noutput discard\n}"))
	}
	s := &reporting{testcaddy.StartConfig(t, config("not_found {\nreport\n}")), addr}
	s.ask(t, "DELETE", "/not_found/report") // of other tests
	since := s.report(t, "").Since
	s.miss(t, "GET", "http://a.test/x", "Referer: http://b.test/1")
	s.Reload(t, config("handle {\nnot_found {\nreport\ncontext_path /app\n}\nerror 404\n}"))
	s.miss(t, "GET", "http://a.test/x", "Referer: http://b.test/2")
	s.want(t, "", "other a.test/x: 1 unanswered, 1 error; on http://b.test/2")

	s.Reload(t, config("not_found"))
	s.miss(t, "GET", "http://a.test/x")
	s.want(t, "", "other a.test/x: 1 unanswered, 1 error; on http://b.test/2")

	s.Reload(t, config("not_found {\nreport\n}"))
	s.miss(t, "GET", "http://a.test/x")
	s.want(t, "", "other a.test/x: 1 unanswered, 1 error; on http://b.test/2", "none a.test/x: 1 unanswered")
	if got := s.report(t, "").Since; !got.Equal(since) {
		t.Errorf("after the reloads it is the report since %s, want %s", got, since)
	}
}

// TestReportCountsARequestOnce nests handlers, some of which report.
func TestReportCountsARequestOnce(t *testing.T) {
	const intercepts = "intercept {\n@404 status 404\nhandle_response @404 {\nrespond theirs 404\n}\n}\n"
	const reports, none, dry = "not_found {\nreport\n}\n", "not_found {\nreport\nreplace none\n}\n", "not_found {\ndry_run\n}\n"
	inner := func(directives string) string { return "handle {\n" + directives + "}\n" }
	cases := map[string]struct{ site, query, want string }{
		"a site that reports":                          {reports, "", "1 unanswered"},
		"a site that does not":                         {"not_found\n", "", ""},
		"a site that does not, passed":                 {"not_found\nWAY\n", "json", ""},
		"only the matching one reports":                {"not_found /other {\nreport\n}\nnot_found\n", "", ""},
		"both report, response":                        {reports + inner(reports+"WAY\n"), "page", "1 response"},
		"both report, passed":                          {reports + inner(reports+"WAY\n"), "json", "1 passed"},
		"both report, the inner one replaces none":     {reports + inner(none+"WAY\n"), "page", "1 replaceable"},
		"both report, the inner one replaces":          {none + inner(reports+"WAY\n"), "page", "1 response"},
		"both report, intercept makes another 404":     {reports + intercepts + inner(reports), "", "1 unanswered"},
		"only the outer one reports":                   {reports + inner("not_found\n"), "", ""},
		"only the outer one reports, passed":           {reports + inner("not_found\nWAY\n"), "json", "1 passed"},
		"only the inner one reports":                   {"not_found\n" + inner(reports), "", "1 unanswered"},
		"only the outer one reports, none is replaced": {reports + inner("not_found {\nreplace none\n}\nWAY\n"), "page", "1 passed"},
		"only the outer one reports, one is kept":      {reports + inner("not_found {\nkeep header X-Error-Page *\n}\nWAY\n"), "designed", "1 passed"},
		"a dry run of none":                            {"not_found {\ndry_run\nreplace none\n}\nWAY\n", "page", "1 replaceable"},
		"a dry run within":                             {reports + inner(dry+"WAY\n"), "page", "1 replaceable"},
		"a dry run around":                             {dry + inner(reports+"WAY\n"), "page", "1 response"},
		"a dry run around one that does not report":    {dry + inner("not_found\nWAY\n"), "page", ""},
		"a dry run around one that lets it pass":       {dry + inner("not_found {\nreplace none\n}\nWAY\n"), "page", "1 passed"},
		"a dry run before handle_errors":               {dry + "error 404\nhandle_errors {\n" + reports + "}\n", "", "1 error"},
		"a dry run in handle_errors":                   {"error 404\nhandle_errors {\n" + dry + "}\n", "", "1 error"},
		"a dry run in handle_errors, response":         {"error 404\nhandle_errors {\n" + dry + "WAY\n}\n", "page", "1 replaceable"},
		"a dry run before intercept":                   {dry + "intercept {\nhandle_response {\nrespond no\n}\n}\n", "", "1 unanswered"},
		"a dry run before templates":                   {dry + "templates\n", "", "1 unanswered"},
		"in a site and in handle_errors":               {reports + "error 404\nhandle_errors {\n" + reports + "}\n", "", "1 error"},
	}
	sites, hosts, way := "", make(map[string]string), testcaddy.Directive(t, everyWay)
	for name, tt := range cases {
		hosts[name] = fmt.Sprintf("site%d.test", len(hosts))
		sites += "http://" + hosts[name] + ":0 {\n" + strings.ReplaceAll(tt.site, "WAY", way) + "}\n"
	}
	s := startReporting(t, sites)
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			if res, err := s.HTTP.Get("http://" + hosts[name] + "/?" + tt.query); err == nil { // without an answer, Caddy breaks off
				res.Body.Close()
			}
			if tt.want == "" {
				s.want(t, "?host="+hosts[name])
			} else {
				s.want(t, "?host="+hosts[name], "none "+hosts[name]+"/: "+tt.want)
			}
		})
	}
}

// TestReportOfHostileRequests sends requests that would harm a careless reader of the report.
func TestReportOfHostileRequests(t *testing.T) {
	s := startReporting(t, "http://:0 {\nnot_found {\nreport\n}\n}\nhttp://base.test:0 {\nnot_found {\nreport\nbase_url https://base.test\n}\n}", "metrics", "servers {\nmax_header_size 256KB\n}")
	long := strings.Repeat("x", 16<<10)
	requests := map[string]string{ // the summary
		"GET /<script>alert(1)</script>?<b> HTTP/1.1\r\nHost: a.test\r\nReferer: https://b.test/<script>?x": "other a.test/%3Cscript%3Ealert(1)%3C/script%3E: 1 unanswered; on https://b.test/%3Cscript%3E",
		"GET /\xff\"\\{{.}}` HTTP/1.1\r\nHost: a.test\r\nReferer: https://b.test/\xff\t\"\\{{.}}":           "other a.test/%FF%22%5C%7B%7B.%7D%7D%60: 1 unanswered; on https://b.test/%FF%09%22%5C%7B%7B.%7D%7D",
		"GET /" + long + " HTTP/1.1\r\nHost: a.test\r\nReferer: https://b.test/" + long:                     "other a.test/" + long[:232] + ": 1 unanswered; on https://b.test/" + long[:225],
		"GET /long HTTP/1.1\r\nHost: " + long + "\r\nReferer: https://" + long + "/":                        "none " + long[:239] + ": 1 unanswered",
		"GET foo:me:secret@b.test/x?y HTTP/1.1\r\nHost: a.test":                                             "none foo:b.test/x: 1 unanswered",
		"GET /frag#access_token=secret HTTP/1.1\r\nHost: a.test\r\nReferer: https://b.test/%23token=secret": "other a.test/frag: 1 unanswered; on https://b.test/",
		"GET x:/me:secret@b.test/?y=@ HTTP/1.1\r\nHost: base.test":                                          "none base.test/b.test/: 1 unanswered",
	}
	var got []string
	for request := range requests {
		method, _, _ := strings.Cut(request, " ")
		s.Only(t, method, request+"\r\nConnection: close\r\n\r\n")
	}
	for _, a := range s.report(t, "").Addresses {
		got = append(got, summary(a))
	}
	slices.Sort(got)
	if want := slices.Sorted(maps.Values(requests)); !slices.Equal(got, want) {
		t.Errorf("got\n\t%.2000s\nwant\n\t%.2000s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	if report := s.ask(t, "GET", "/not_found/report").Content; strings.ContainsFunc(strings.TrimSuffix(report, "\n"), isControl) || strings.ContainsAny(report, "<>`\x7f") {
		t.Errorf("the report has control characters or markup:\n%.2000q", report)
	}
	if metrics := s.ask(t, "GET", "/metrics").Content; !strings.Contains(metrics, "caddy_not_found_pages_total") || strings.Contains(metrics, "test/") || strings.Contains(metrics, "long") {
		t.Errorf("the metrics lack the counter of pages, or have an address:\n%s", metrics)
	}
}
