package command

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

func TestMistakesOfTheReportCommand(t *testing.T) {
	for args, want := range map[string]string{
		"--limit=-1": "limit: -1 is not a number of addresses; " +
			"write --limit 20, or --limit 0 for all of them",
		"--link=any": `link: "any" is unknown; write one of own, other, none`,
		"--outcome=none": `outcome: "none" is unknown; ` +
			`write one of unanswered, error, response, passed, replaceable`,
		"--json --limit=1":       "limit: --json prints the whole report; leave --limit out, and choose with jq",
		"--json --link=own":      "link: --json prints the whole report",
		"--json --outcome=error": "outcome: --json prints the whole report",
		"--json --host=a.test":   "host: --json prints the whole report",
		"--host=http://a.test":   `host: "http://a.test" is not a host; write --host www.example.com`,
		"--address=": `address: "" is not an address; ` +
			`write it as host:port, or as in unix//run/caddy.sock`,
		"--address=127.0.0.1:2019-2020":      "asking the admin API at 127.0.0.1:2019-2020: invalid admin address",
		"--config=none.json":                 "determining the address of the admin API: ",
		"--address=unix//nowhere/admin.sock": "no admin API answers at unix//nowhere/admin.sock (performing request: ",
	} {
		cmd := reportCommand()
		cmd.SilenceErrors = true
		cmd.SilenceUsage = true
		cmd.SetArgs(strings.Fields(args))
		err := cmd.Execute()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want %s", args, err, want)
		}
	}
}

// TestErrorOfAnAdminAPIIsPrintable has an admin API answer with bytes that act on a terminal, or with a redirect to
// itself.
func TestErrorOfAnAdminAPIIsPrintable(t *testing.T) {
	const acts = "\x1b[2J\x1b]0;x\x07\u009b31m"
	for name, tt := range map[string]struct {
		status int
		body   string
		begins string
	}{
		"an error": {
			status: http.StatusInternalServerError,
			body:   acts,
			begins: "asking the admin API at ADDRESS: caddy responded with error: HTTP 500: ?[2J",
		},
		"the API's error": {
			status: http.StatusBadRequest,
			body:   `{"error":"\u001b[2J\u009b"}`,
			begins: "asking the admin API at ADDRESS: caddy responded with error: HTTP 400: {",
		},
		"not a report": {
			status: http.StatusOK,
			body:   acts,
			begins: "reading the answer of ADDRESS: this is not a report of not_found: invalid character",
		},
		"JSON of its own": {
			status: http.StatusOK,
			body:   `{"since":"2026-01-02T03:04:05Z","capacity":0}`,
			begins: "reading the answer of ADDRESS: this is not a report of not_found: it has no start or no capacity",
		},
		"another's 404": {
			status: http.StatusNotFound,
			body:   "{}",
			begins: "the server at ADDRESS is not a Caddy with not_found (caddy responded with error: HTTP 404: {})",
		},
		"a redirect": {
			status: http.StatusFound,
			begins: "no admin API answers at ADDRESS (performing request: ",
		},
	} {
		address := testcaddy.Backend(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/not_found/reports")
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		})
		_, err := askReport(address)
		if err == nil {
			t.Fatalf("%s: got no error", name)
		}
		begins := strings.ReplaceAll(tt.begins, "ADDRESS", address)
		if !strings.HasPrefix(err.Error(), begins) {
			t.Errorf("%s: got the error %q, want one that begins with %s", name, err, begins)
		}
		if strings.ContainsFunc(err.Error(), isNotPrintable) {
			t.Errorf("%s: the error %q acts on a terminal", name, err)
		}
	}
}

func isNotPrintable(r rune) bool { return r < ' ' || r > '~' }

// TestLongAnswerTakesLittleMemory has an admin API answer with a string that is longer when it is quoted, or with more
// addresses than a report has.
func TestLongAnswerTakesLittleMemory(t *testing.T) {
	const mebibyte = 1 << 20
	for name, tt := range map[string]struct {
		begins, filler, ends string
		mebibytes            int
	}{
		"a string":       {begins: `{"since":"`, filler: `\u0000`, ends: `"}`, mebibytes: 1},
		"an endless one": {begins: `{"since":"`, filler: `\u0000`, mebibytes: 60},
		"many addresses": {
			begins:    `{"since":"2026-01-02T03:04:05Z","capacity":1,"addresses":[{}`,
			filler:    `,{}`,
			ends:      `]}`,
			mebibytes: 7,
		},
	} {
		filler := strings.Repeat(tt.filler, mebibyte/len(tt.filler))
		address := testcaddy.Backend(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, tt.begins)
			for range tt.mebibytes {
				fmt.Fprint(w, filler)
			}
			fmt.Fprint(w, tt.ends)
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := askReport(address)
		runtime.ReadMemStats(&after)
		took := after.TotalAlloc - before.TotalAlloc
		if err == nil && len(r.Addresses) != 3000 || len(fmt.Sprint(err)) > 1000 {
			t.Errorf("%s: got %d addresses, and the error %.2000v", name, len(r.Addresses), err)
		}
		if took > 128*mebibyte {
			t.Errorf("%s takes %d MiB of memory", name, took/mebibyte)
		}
	}
}
