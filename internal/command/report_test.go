package command

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// runReport runs the command with arguments, and returns what it prints.
func runReport(args ...string) (stdout string, err error) {
	var b strings.Builder
	cmd := reportCommand()
	cmd.SetOut(&b)
	cmd.SetErr(&b)
	cmd.SilenceErrors = true
	cmd.SilenceUsage = true
	cmd.SetArgs(args)
	err = cmd.Execute()
	return b.String(), err
}

func TestMistakesOfTheReportCommand(t *testing.T) {
	for arg, want := range map[string]string{
		"--address=127.0.0.1:2019-2020":      "asking the admin API at 127.0.0.1:2019-2020: invalid admin address",
		"--config=none.json":                 "determining the address of the admin API: ",
		"--address=unix//nowhere/admin.sock": "asking the admin API at unix//nowhere/admin.sock: performing request: ",
	} {
		if _, err := runReport(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want %s", arg, err, want)
		}
	}
}

// TestAnswerOfAnotherServer has something else than a Caddy of today answer at the address. Nothing of its answer acts
// on the terminal.
func TestAnswerOfAnotherServer(t *testing.T) {
	const acts = "\x1b[2J\x1b]0;x\a\u009b31m\u202e\x7f\r\xff\u2028é\n"
	const shown = "?[2J?]0;x??31m???\ufffd?é\n"
	const another = "asking the admin API at ADDRESS: caddy responded with error: HTTP "
	for name, tt := range map[string]struct {
		args   []string
		status int
		body   string
		stdout string
		err    string // empty: none
	}{
		"text": {
			status: http.StatusOK,
			body:   acts,
			stdout: shown,
		},
		"JSON": {
			args:   []string{"--json"},
			status: http.StatusOK,
			body:   "{\"x\":\"\u202e&\"}\n",
			stdout: "{\n\t\"x\": \"?&\"\n}\n",
		},
		"no JSON": {
			args:   []string{"--json"},
			status: http.StatusOK,
			body:   acts,
			err:    `reading the answer of ADDRESS: invalid character '\x1b' looking for beginning of value`,
		},
		"an error": {
			status: http.StatusInternalServerError,
			body:   acts,
			err:    another + "500: " + shown,
		},
		"an older Caddy": {
			status: http.StatusNotFound,
			body:   "404 page not found\n",
			err:    another + "404: 404 page not found\n; has the Caddy at ADDRESS been restarted since the upgrade?",
		},
		"the API's error": {
			status: http.StatusNotFound,
			body:   report.NotBegun,
			err:    another + "404: " + report.NotBegun,
		},
	} {
		address := testcaddy.Backend(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			_, _ = w.Write([]byte(tt.body))
		})
		stdout, err := runReport(append(tt.args, "--address="+address)...)
		if err == nil {
			err = errors.New("")
		}
		if want := strings.ReplaceAll(tt.err, "ADDRESS", address); stdout != tt.stdout || err.Error() != want {
			t.Errorf("%s: got %q and the error %q, want %q and %q", name, stdout, err, tt.stdout, want)
		}
	}
}
