package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
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

// rows returns the addresses of a printed report.
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
	for i := range 31 {
		s.miss(t, "GET", "http://c.test/"+strconv.Itoa(i%30))
	}
	s.miss(t, "GET", "http://b.test/error", "Referer: http://b.test/blog?q")
	s.miss(t, "GET", "http://d.test:81/x", "Referer: https://search.example/?q")
	config := testcaddy.TempFile(t, "Caddyfile", "{\nadmin "+s.admin+"\n}\n")
	file := testcaddy.TempFile(t, "one.json", reportOf(1, "urn:x"))
	whole := indented(t, s.ask(t, "GET", "/not_found/report").Content)

	for name, tt := range map[string]struct {
		flags []string
		rows  int
		begin string
	}{
		"limit by default":   {nil, 22, "33 404s since "},
		"no limit":           {[]string{"-n", "0"}, 32, "33 404s since "},
		"filters":            {[]string{"--link=own", "--why=error", "--host=B.test", "--limit=5"}, 1, "33 404s in all since "},
		"nothing":            {[]string{"--link=own", "--why=unanswered"}, 0, "33 404s in all since "},
		"address":            {[]string{"--address=tcp/" + s.admin, "--limit=1"}, 3, "33 404s since "},
		"config":             {[]string{"-c", config, "-a", "caddyfile", "-n", "1"}, 3, "33 404s since "},
		"config, and a file": {[]string{"-c", config, "-a", "caddyfile", "-n", "0", file}, 33, "34 404s since "},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := reportCommand(t, tt.flags...)
			if !strings.HasPrefix(name, "config") && name != "address" {
				cmd.Env = append(cmd.Env, "CADDY_ADMIN="+s.admin)
			}
			stdout := prints(t, cmd)
			if got := rows(stdout); len(got) != tt.rows || !strings.HasPrefix(stdout, tt.begin) || tt.rows > 0 && got[0] != "b.test/error" {
				t.Errorf("got\n%s\nwant %s and %d addresses, b.test/error first", stdout, tt.begin, tt.rows)
			}
		})
	}

	t.Run("JSON is whole", func(t *testing.T) {
		if got := prints(t, reportCommand(t, "--address", s.admin, "--json")); got != whole || strings.Contains(got, "partial") {
			t.Errorf("got\n%s\nwant\n%s", got, whole)
		}
		want := indented(t, s.ask(t, "GET", "/not_found/report?limit=1&why=unanswered").Content)
		if got := prints(t, reportCommand(t, "--address", s.admin, "--json", "--limit=1", "--why=unanswered")); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("CSV", func(t *testing.T) {
		got, all := prints(t, reportCommand(t, "--address", s.admin, "--csv", "--limit=1")), prints(t, reportCommand(t, "--address", s.admin, "--csv"))
		if strings.Count(got, "\n") != 1+3 || strings.Count(all, "\n") != 1+32 ||
			!strings.HasPrefix(got, "link,host,path,query,count,") || !strings.Contains(got, "\nown,b.test,/error,false,1,0,0,1,0,0,0,http://b.test/blog,2") {
			t.Errorf("got\n%s\nand\n%s", got, all)
		}
	})

	t.Run("mistakes", func(t *testing.T) {
		nobody := "127.0.0.1:" + testcaddy.FreePort(t)
		link := filepath.Join(t.TempDir(), "link.json")
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		huge := testcaddy.TempFile(t, "huge.json", "")
		if err := os.Truncate(huge, 1<<40); err != nil { // sparse
			t.Fatal(err)
		}
		hostile := testcaddy.TempFile(t, "hostile.json", reportOf(1, `/\u001b[2J\u0007\n\u009b`))
		t.Cleanup(func() {
			if got := indented(t, s.ask(t, "GET", "/not_found/report").Content); got != whole {
				t.Errorf("after a mistake, the report is\n%s", got)
			}
		})
		for name, tt := range map[string]struct {
			flags []string
			why   string
		}{
			"no Caddy there":   {[]string{"--address=" + nobody}, "no admin API answers at " + nobody + " (dial tcp "},
			"empty address":    {[]string{"--address="}, `address: \"\" is not an address; write it as host:port, or as in unix//run/caddy.sock`},
			"address twice":    {[]string{"--address=" + s.admin, "--address=" + s.admin}, `is given twice, and would be counted twice; give it once`},
			"a range of ports": {[]string{"--address=127.0.0.1:2019-2020"}, "is not the address of an admin API; name another one with --address"},
			"no such file":     {[]string{link + "x"}, "reading a report: open " + link + "x"},
			"JSON and CSV":     {[]string{"--json", "--csv"}, "csv: it cannot be combined with --json; leave one of the two out"},
			"a negative limit": {[]string{"--limit=-1"}, "limit: -1 is not a number of addresses; write --limit 20, or --limit 0 for all of them"},
			"no report":        {[]string{config}, "the report in " + config + ": invalid character"},
			"hostile report":   {[]string{hostile}, `\"/\\x1b[2J\\a\\n\\u009b\" is not an address as a report has it`},
			"file, and a link": {[]string{file, link}, `link.json\" is given twice, and would be counted twice; give it once`},
			"not of not_found": {[]string{"--address=" + testcaddy.Backend(t, http.NotFound)}, "is not a Caddy with not_found (HTTP 404: 404 page not found"},
			"a huge file":      {[]string{huge}, "the report in " + huge + ": it has more than 64 MiB, which no report has"},
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
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			t.Skip("only Linux has /dev/full")
		}
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		for _, format := range []string{"--json=false", "--json", "--csv"} {
			cmd := reportCommand(t, "--address", s.admin, format)
			cmd.Stdout = full
			if stderr := fails(t, cmd, "no space left on device"); strings.Contains(stderr, ".json") {
				t.Errorf("%s: got\n%s", format, stderr)
			}
		}
	})
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
	stdout := prints(t, report(fullTable, "-", "--limit=2"))
	if want := []string{"a.test/both", "b.test/second", "a.test/first", "a.test/both"}; !slices.Equal(rows(stdout), want) ||
		!strings.HasPrefix(stdout, "11 404s since ") || !strings.Contains(stdout, "\nOWN LINKS: 2 404s, unanswered\n") || !strings.HasSuffix(stdout, " up to 5 times.\n") {
		t.Errorf("got\n%s\nwant %q", stdout, want)
	}

	// a merged report can be merged again, unless it is partial
	merged := prints(t, report(fullTable, "-", "--json"))
	cmd := reportCommand(t, "--json", "-")
	cmd.Stdin = strings.NewReader(merged)
	if again := prints(t, cmd); again != merged {
		t.Errorf("got\n%s\nwant\n%s", again, merged)
	}
	partial := prints(t, report("-", "--json", "--limit=1"))
	cmd = reportCommand(t, "-")
	cmd.Stdin = strings.NewReader(partial)
	if stdout := prints(t, cmd); !strings.Contains(partial, `"partial": true`) || !strings.Contains(stdout, "\nThe report is partial: ") || len(rows(stdout)) != 3 {
		t.Errorf("got\n%s, printed as\n%s", partial, stdout)
	}

	// all must answer
	silent := testcaddy.AcceptTCP(t, func(conn net.Conn) { io.Copy(io.Discard, conn) })
	fails(t, report("--address", silent), "asking the admin API at "+silent+": no answer for 10s")
}
