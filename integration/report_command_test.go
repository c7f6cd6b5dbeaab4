package integration

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

func reportCommand(t *testing.T, flags ...string) *exec.Cmd {
	return command(t, append([]string{"not-found", "report"}, flags...)...)
}

// TestReportCommand prints the report of the Caddy that runs in this process.
func TestReportCommand(t *testing.T) {
	s := startReporting(t, "http://:0 {\nnot_found {\nreport\n}\n}")
	for i := range 30 {
		s.miss(t, "GET", "http://a.test/"+strconv.Itoa(i))
	}
	config := testcaddy.TempFile(t, "Caddyfile", "{\nadmin "+s.admin+"\n}\n")
	atDefault := reportCommand(t)
	atDefault.Env = append(atDefault.Env, "CADDY_ADMIN="+s.admin)
	for _, tt := range []struct {
		cmd  *exec.Cmd
		rows int
	}{
		{cmd: atDefault, rows: 20},
		{cmd: reportCommand(t, "--address=tcp/"+s.admin, "--limit=0"), rows: 30},
		{cmd: reportCommand(t, "-c", config, "-a", "caddyfile", "--link=none", "-n", "1"), rows: 1},
		{cmd: reportCommand(t, "--address="+s.admin, "--why=error"), rows: 0},
	} {
		stdout := prints(t, tt.cmd)
		if !strings.HasPrefix(stdout, "30 404s ") || strings.Count(stdout, "  a.test/") != tt.rows {
			t.Errorf("%s: got\n%s\nwant %d addresses", tt.cmd, stdout, tt.rows)
		}
	}

	var want bytes.Buffer
	if err := json.Indent(&want, []byte(s.ask(t, "GET").Content), "", "\t"); err != nil {
		t.Fatal(err)
	}
	if got := prints(t, reportCommand(t, "--address", s.admin, "--json")); got != want.String() {
		t.Errorf("got\n%s\nwant the whole report\n%s", got, want.String())
	}
}
