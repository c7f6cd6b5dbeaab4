package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
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
	for name, tt := range map[string]struct {
		flags []string
		rows  int
	}{
		"limit by default": {flags: nil, rows: 20},
		"no limit":         {flags: []string{"-n", "0"}, rows: 30},
		"outcome":          {flags: []string{"--why=error"}, rows: 0},
		"address":          {flags: []string{"--address=tcp/" + s.admin, "--link=none", "--limit=1"}, rows: 1},
		"config":           {flags: []string{"-c", config, "-a", "caddyfile", "-n", "1"}, rows: 1},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := reportCommand(t, tt.flags...)
			if name != "address" && name != "config" {
				cmd.Env = append(cmd.Env, "CADDY_ADMIN="+s.admin)
			}
			stdout := prints(t, cmd)
			if !strings.HasPrefix(stdout, "30 404s ") || strings.Count(stdout, "  a.test/") != tt.rows {
				t.Errorf("got\n%s\nwant %d addresses", stdout, tt.rows)
			}
		})
	}

	t.Run("JSON", func(t *testing.T) {
		var want bytes.Buffer
		if err := json.Indent(&want, []byte(s.ask(t, "GET").Content), "", "\t"); err != nil {
			t.Fatal(err)
		}
		if got := prints(t, reportCommand(t, "--address", s.admin, "--json")); got != want.String() {
			t.Errorf("got\n%s\nwant the whole report\n%s", got, want.String())
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
		cmd := reportCommand(t, "--address", s.admin)
		cmd.Stdout = full
		fails(t, cmd, "printing the report: write /dev/stdout: no space left on device")
	})
}
