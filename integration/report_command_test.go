package integration

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

func reportCommand(t *testing.T, flags ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, "not-found", "report")
	cmd.Args = append(cmd.Args, flags...)
	return cmd
}

// TestReportCommand prints the report of the Caddy that runs in this process.
func TestReportCommand(t *testing.T) {
	s := startReporting(t, "http://:0 {\nnot_found {\nreport\n}\n}")
	for i := range 30 {
		s.miss(t, "GET", "http://a.test/"+strconv.Itoa(i))
	}
	config := testcaddy.TempFile(t, "Caddyfile", "{\nadmin "+s.admin+"\n}\n")
	for flags, rows := range map[string]int{
		"":                                   20, // at the default address
		"--limit=0 --address=tcp/" + s.admin: 30,
		"-c Caddyfile -a caddyfile --link=none -n 1": 1,
		"--outcome=error --address=" + s.admin:       0,
		"--host=b.test --address=" + s.admin:         0,
	} {
		cmd := reportCommand(t, strings.Fields(flags)...)
		cmd.Dir = filepath.Dir(config)
		if flags == "" {
			cmd.Env = append(cmd.Env, "CADDY_ADMIN="+s.admin)
		}
		output, err := cmd.Output() // Caddy logs to stderr what it reads of a config file
		stdout := string(output)
		if err != nil || !strings.HasPrefix(stdout, "30 404s ") || strings.Count(stdout, "  a.test/") != rows {
			t.Errorf("%s: got %v and\n%s\nwant %d addresses", flags, err, stdout, rows)
		}
	}

	var want bytes.Buffer
	if err := json.Indent(&want, []byte(s.ask(t, "GET").Content), "", "\t"); err != nil {
		t.Fatal(err)
	}
	if got := prints(t, reportCommand(t, "--address", s.admin, "--json")); got != want.String() {
		t.Errorf("got\n%s\nwant the whole report\n%s", got, want.String())
	}
	fails(t, reportCommand(t, "--address", s.admin, "--link=any"), "write one of own, other, none")
	fails(t, reportCommand(t, "--address", s.admin, "--json", "--limit=1"), "the report is always whole")
}
