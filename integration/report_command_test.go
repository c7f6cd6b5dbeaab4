package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// reportOf returns a report of one address without a host, in JSON.
func reportOf(count uint64, path string) string {
	return fmt.Sprintf(`{"since":"2026-01-02T03:04:05Z","capacity":1000,"links":{"own":{},"other":{},"none":{"count":%d,"floor":0,"outcomes":{"error":%[1]d}}},"addresses":[`+
		`{"link":"none","path":"%s","count":%[1]d,"outcomes":{"error":%[1]d},"first":"2026-01-02T03:04:06Z","last":"2026-01-02T03:04:07Z"}]}`, count, path)
}

// rows returns the addresses that a report on the terminal has, without their counts and times.
func rows(stdout string) (addresses []string) {
	for _, match := range regexp.MustCompile(`(?m)^ *[\d-]+  \d{4}-\d\d-\d\d \d\d:\d\d  (.+)$`).FindAllStringSubmatch(stdout, -1) {
		addresses = append(addresses, match[1])
	}
	return addresses
}

func reportCommand(t *testing.T, flags ...string) *exec.Cmd {
	return command(t, append([]string{"not-found", "report"}, flags...)...)
}

// indented is JSON as the command prints it.
func indented(t *testing.T, body string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(body), "", "\t"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestReportCommand prints the report of the Caddy that runs in this process.
func TestReportCommand(t *testing.T) {
	s := startReporting(t, "http://:0 {\nnot_found {\nreport\n}\nerror /error 404\n}")
	for i := range 30 {
		s.miss(t, "GET", "http://c.test/"+strconv.Itoa(i))
	}
	s.miss(t, "GET", "http://c.test/29")
	s.miss(t, "GET", "http://b.test/error", "Referer: http://b.test/blog?q")
	s.miss(t, "GET", "http://d.test:81/x", "Referer: https://search.example/?q")
	config := testcaddy.TempFile(t, "Caddyfile", "{\nadmin "+s.admin+"\n}\n")
	const all = 32
	whole := indented(t, s.ask(t, "GET", "/not_found/report").Content)

	for name, tt := range map[string]struct {
		flags []string
		rows  int
	}{
		"limit by default": {nil, 22},
		"no limit":         {[]string{"-n", "0"}, all},
		"filters":          {[]string{"--link=own", "--why=error", "--host=B.test", "--limit=5"}, 1},
		"nothing":          {[]string{"--link=own", "--why=unanswered"}, 0},
		"address":          {[]string{"--address=tcp/" + s.admin, "--limit=1"}, 3},
		"config":           {[]string{"-c", config, "-a", "caddyfile", "-n", "1"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := reportCommand(t, tt.flags...)
			if name != "config" && name != "address" {
				cmd.Env = append(cmd.Env, "CADDY_ADMIN="+s.admin)
			}
			stdout, stderr, code := run(t, cmd)
			got := rows(stdout)
			if code != 0 || len(got) != tt.rows || !strings.HasPrefix(stdout, "33 404s since ") || tt.rows > 0 && got[0] != "b.test/error" {
				t.Errorf("got the exit code %d, %s and\n%s\nwant %d addresses, b.test/error first", code, stderr, stdout, tt.rows)
			}
		})
	}

	t.Run("JSON is whole", func(t *testing.T) {
		stdout, stderr, code := run(t, reportCommand(t, "--address", s.admin, "--json"))
		if code != 0 || stdout != whole || strings.Contains(stdout, "partial") {
			t.Errorf("got the exit code %d, %s and\n%s\nwant\n%s", code, stderr, stdout, whole)
		}
		stdout, stderr, code = run(t, reportCommand(t, "--address", s.admin, "--json", "--limit=1", "--why=unanswered"))
		if want := indented(t, s.ask(t, "GET", "/not_found/report?limit=1&why=unanswered").Content); code != 0 || stdout != want {
			t.Errorf("got the exit code %d, %s and\n%s\nwant\n%s", code, stderr, stdout, want)
		}
	})
	t.Run("CSV", func(t *testing.T) {
		stdout, stderr, code := run(t, reportCommand(t, "--address", s.admin, "--csv", "--limit=1"))
		if code != 0 || strings.Count(stdout, "\n") != 1+3 || !strings.HasPrefix(stdout, "link,host,path,count,") || !strings.Contains(stdout, "\nown,b.test,/error,1,0,0,1,0,0,0,http://b.test/blog,2") {
			t.Errorf("got the exit code %d, %s and\n%s", code, stderr, stdout)
		}
	})

	// fails runs the command, which must say why it fails, and print nothing else.
	fails := func(t *testing.T, cmd *exec.Cmd, why string) {
		t.Helper()
		stdout, stderr, code := run(t, cmd)
		if code != 1 || stdout != "" || !strings.Contains(stderr, why) || strings.ContainsAny(stderr, "\x1b\x00") {
			t.Errorf("got the exit code %d, %q and\n%q\nwant 1 and %s", code, stdout, stderr, why)
		}
	}
	t.Run("mistakes", func(t *testing.T) {
		nobody := "127.0.0.1:" + testcaddy.FreePort(t)
		one, huge := testcaddy.TempFile(t, "one.json", reportOf(1, "/x")), testcaddy.TempFile(t, "huge.json", reportOf(math.MaxUint64, "/x"))
		link := filepath.Join(t.TempDir(), "link.json")
		if err := os.Symlink(one, link); err != nil {
			t.Fatal(err)
		}
		hostile := testcaddy.TempFile(t, "hostile.json", reportOf(1, `/\u001b[2J\u0007\n\u009b`))
		partial := testcaddy.TempFile(t, "partial.json", strings.Replace(reportOf(1, "/x"), "{", `{"partial":true,`, 1))
		t.Cleanup(func() {
			if got := indented(t, s.ask(t, "GET", "/not_found/report").Content); got != whole {
				t.Errorf("after a mistake, the report is\n%s", got)
			}
		})
		for name, tt := range map[string]struct {
			flags []string
			why   string
		}{
			"no Caddy there":   {[]string{"--address=" + nobody}, "asking the admin API at " + nobody + ", which a Caddy with not_found should serve: "},
			"empty address":    {[]string{"--address="}, `address: \"\" is not an address; write it as host:port, or as in unix//run/caddy.sock`},
			"link":             {[]string{"--link=any"}, `link: \"any\" is not a kind of link; it is own, other or none`},
			"reset of a host":  {[]string{"--reset", "--host=c.test"}, "reset: it prints the whole report, because what is left out would be lost; leave out --host"},
			"reset of a file":  {[]string{"--reset", one}, "reset: it is for one Caddy; leave out files and other addresses"},
			"reset of two":     {[]string{"--reset", "--address=" + s.admin, "--address=" + nobody}, "reset: it is for one Caddy"},
			"no report":        {[]string{config}, "the report in " + config + ": invalid character"},
			"partial report":   {[]string{partial}, "the report in " + partial + ": it is partial, because a limit or a filter left addresses out; give the whole report"},
			"hostile report":   {[]string{hostile}, `\"/\\x1b[2J\\a\\n\\u009b\" is not an address as a report has it`},
			"too many":         {[]string{huge, testcaddy.TempFile(t, "two.json", reportOf(1, "/x"))}, "merging the reports: the counts of the reports add up to too large a number"},
			"file twice":       {[]string{one, filepath.Dir(one) + "/./one.json"}, `/./one.json\" is given twice, and would be counted twice; give it once`},
			"file, and a link": {[]string{one, link}, `link.json\" is given twice`},
			"not of not_found": {[]string{"--address=" + testcaddy.Backend(t, http.NotFound)}, "404 page not found"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cmd := reportCommand(t, tt.flags...)
				cmd.Env = append(cmd.Env, "CADDY_ADMIN="+s.admin)
				fails(t, cmd, tt.why)
			})
		}
	})
	t.Run("output that fails", func(t *testing.T) {
		for _, format := range []string{"--json=false", "--json", "--csv"} {
			if stderr, code := runIntoFull(t, reportCommand(t, "--address", s.admin, format)); code != 1 || !strings.Contains(stderr, "no space left on device") || strings.Contains(stderr, ".json") {
				t.Errorf("%s: got the exit code %d and\n%s", format, code, stderr)
			}
		}
	})
	t.Run("no handler reports", func(t *testing.T) {
		s.ask(t, "DELETE", "/not_found/report")
		s.Reload(t, testcaddy.Adapt(t, testcaddy.Caddyfile("http://:0 {\nnot_found\n}", "admin "+s.admin)))
		fails(t, reportCommand(t, "--address", s.admin), "the admin API at "+s.admin+": no not_found handler has report enabled; give one the option report")
	})
}

// TestReportCommandWithReset has what could lose a report.
func TestReportCommandWithReset(t *testing.T) {
	s := startReporting(t, "http://:0 {\nnot_found {\nreport\n}\n}")
	reset := func(t *testing.T, address string, flags ...string) *exec.Cmd {
		return reportCommand(t, append(flags, "--reset", "--address", address)...)
	}
	for i := range 30 {
		s.miss(t, "GET", "http://a.test/"+strconv.Itoa(i))
	}
	stdout, stderr, code := run(t, reset(t, s.admin))
	if code != 0 || len(rows(stdout)) != 30 {
		t.Errorf("got the exit code %d, %s and\n%s\nwant all addresses", code, stderr, stdout)
	}
	if stdout, _, code := run(t, reportCommand(t, "--address", s.admin)); code != 0 || !strings.HasPrefix(stdout, "0 404s since ") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("after it, got the exit code %d and\n%s", code, stdout)
	}
	s.miss(t, "GET", "http://a.test/1")
	want := indented(t, s.ask(t, "GET", "/not_found/report").Content)
	if stdout, stderr, code := run(t, reset(t, s.admin, "--json")); code != 0 || stdout != want {
		t.Errorf("got the exit code %d, %s and\n%s\nwant\n%s", code, stderr, stdout, want)
	}
	s.want(t, "")

	// saves runs the command with an output that fails. The report has to be in a file that the error names.
	saves := func(t *testing.T, address, why, want string, run func(*exec.Cmd) (stderr string, code int)) {
		t.Helper()
		cmd := reset(t, address)
		stderr, code := run(cmd)
		name := regexp.MustCompile(`at ` + regexp.QuoteMeta(address) + `, counting has started over, and what was counted before is in (` + regexp.QuoteMeta(cmd.Dir) + `/not-found-report-\w+\.json)`).FindStringSubmatch(stderr)
		if code != 1 || !strings.Contains(stderr, why) || name == nil {
			t.Fatalf("got the exit code %d and\n%s\nwant 1, %s, and the name of a file", code, stderr, why)
		}
		if saved, err := os.ReadFile(name[1]); err != nil || string(saved) != want {
			t.Errorf("the file has\n%s\n%v, want\n%s", saved, err, want)
		}
	}
	full := func(cmd *exec.Cmd) (string, int) { return runIntoFull(t, cmd) }
	t.Run("full disk", func(t *testing.T) {
		s.miss(t, "GET", "http://a.test/x")
		saves(t, s.admin, "no space left on device", s.ask(t, "GET", "/not_found/report").Content, full)
		s.want(t, "")
	})
	t.Run("broken pipe", func(t *testing.T) {
		s.miss(t, "GET", "http://a.test/x")
		saves(t, s.admin, "broken pipe", s.ask(t, "GET", "/not_found/report").Content, func(cmd *exec.Cmd) (string, int) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			defer w.Close()
			return runInto(t, cmd, w)
		})
	})
	t.Run("nowhere to save it", func(t *testing.T) {
		s.miss(t, "GET", "http://a.test/x")
		cmd := reset(t, s.admin)
		cmd.Env = append(cmd.Env, "TMPDIR=/nowhere")
		if stderr, code := full(cmd); code != 1 || !strings.Contains(stderr, "no space left on device; saving the report of "+s.admin+", now that counting has started over: open /nowhere/") {
			t.Errorf("got the exit code %d and\n%s", code, stderr)
		}
	})
	for name, tt := range map[string]struct {
		get, del string
		why      string
	}{
		"an answer that breaks off":     {reportOf(1, "/x"), `{"count":1,`, "unexpected EOF"},
		"an answer that cannot be read": {reportOf(1, "/x"), `{}`, "it is not a report"},
		"one that cannot be read first": {`{}`, "", "it is not a report"},
	} {
		t.Run(name, func(t *testing.T) {
			address := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodGet:
					io.WriteString(w, tt.get)
				case tt.del == "":
					t.Error("it starts over")
				default:
					io.WriteString(w, tt.del)
					if tt.why == "unexpected EOF" {
						w.(http.Flusher).Flush()
						panic(http.ErrAbortHandler)
					}
				}
			})
			printsNothing := func(cmd *exec.Cmd) (string, int) {
				stdout, stderr, code := run(t, cmd)
				if stdout != "" {
					t.Errorf("it printed %q", stdout)
				}
				return stderr, code
			}
			if tt.del != "" {
				saves(t, address, tt.why, tt.del, printsNothing)
			} else if stderr, code := printsNothing(reset(t, address)); code != 1 || !strings.Contains(stderr, tt.why) {
				t.Errorf("got the exit code %d and\n%s", code, stderr)
			}
		})
	}
}

// TestReportOfManyInstances merges the reports of two processes, a file and standard input.
func TestReportOfManyInstances(t *testing.T) {
	t.Parallel()
	first, second := startNotFound(t, "--report"), startNotFound(t, "--report")
	first.Get(t, "http://a.test/both", "Referer: http://a.test/blog")
	first.Get(t, "http://a.test/both")
	first.Get(t, "http://a.test/first")
	second.Get(t, "http://a.test/both", "Referer: http://a.test/shop")
	second.Get(t, "http://b.test/second", "Referer: https://search.example/?q")
	fullTable := testcaddy.TempFile(t, "full.json", strings.NewReplacer(`"capacity":1000`, `"capacity":1`, `"floor":0`, `"floor":5`).Replace(reportOf(5, "urn:x")))
	report := func(flags ...string) *exec.Cmd {
		cmd := reportCommand(t, append([]string{"--address", first.admin, "--address", second.admin}, flags...)...)
		cmd.Stdin = strings.NewReader(reportOf(1, "urn:y"))
		return cmd
	}
	stdout, stderr, code := run(t, report(fullTable, "-", "--limit=2"))
	if want := []string{"a.test/both", "b.test/second", "a.test/first", "a.test/both"}; code != 0 || !slices.Equal(rows(stdout), want) ||
		!strings.HasPrefix(stdout, "11 404s since ") || !strings.Contains(stdout, "\nOWN LINKS: 2 404s, unanswered\n") || !strings.HasSuffix(stdout, " up to 5 times.\n") {
		t.Errorf("got the exit code %d, %s and\n%s\nwant %q", code, stderr, stdout, want)
	}

	// what is merged is a report to merge, unless something is left out
	merged, stderr, code := run(t, report(fullTable, "-", "--json"))
	if code != 0 {
		t.Fatalf("got the exit code %d and\n%s", code, stderr)
	}
	cmd := reportCommand(t, "--json", "-")
	cmd.Stdin = strings.NewReader(merged)
	if again, stderr, code := run(t, cmd); code != 0 || again != merged {
		t.Errorf("got the exit code %d, %s and\n%s\nwant\n%s", code, stderr, again, merged)
	}
	if partial, _, code := run(t, report("-", "--json", "--limit=1")); code != 0 || !strings.Contains(partial, `"partial": true`) {
		t.Errorf("got the exit code %d and\n%s", code, partial)
	}
	nobody := "127.0.0.1:" + testcaddy.FreePort(t)
	if stdout, stderr, code := run(t, report("--address", nobody)); code != 1 || stdout != "" || !strings.Contains(stderr, "asking the admin API at "+nobody) {
		t.Errorf("got the exit code %d, %q and\n%s", code, stdout, stderr)
	}
}
