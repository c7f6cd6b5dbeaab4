package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutputOfLoad reads what wrk 4.1.0 and h2load 1.52.0 printed.
func TestOutputOfLoad(t *testing.T) {
	for file, tc := range map[string]struct {
		status  int
		want    sample
		wantErr string
	}{
		"wrk-404.txt":        {status: 404, want: sample{rate: 19843.90, median: 0.628, p99: 13.46}},
		"wrk-slow.txt":       {status: 404, want: sample{rate: 21.26, median: 1100, p99: 1110}},
		"wrk-200.txt":        {status: 200, want: sample{rate: 29445.87, median: 0.565, p99: 15.14}},
		"wrk-mixed.txt":      {status: 404, wantErr: "not every response has status 404"},
		"wrk-broken.txt":     {status: 404, wantErr: "Socket errors: connect 0, read 38, write 11584, timeout 0"},
		"h2load-404.txt":     {status: 404, want: sample{rate: 12535}},
		"h2load-200.txt":     {status: 200, want: sample{rate: 23605}},
		"h2load-mixed.txt":   {status: 404, wantErr: "not every response has status 404"},
		"h2load-refused.txt": {status: 404, wantErr: "no responses"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			out, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			parse := parseWrk
			if strings.HasPrefix(file, "h2load") {
				parse = parseH2load
			}
			got, err := parse(string(out), tc.status)
			if tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr {
					t.Fatalf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("read %+v, want %+v", got, tc.want)
			}
			wrongStatus := 604 - tc.status // 200 for 404, and the other way round
			if _, err := parse(string(out), wrongStatus); err == nil {
				t.Errorf("taken for responses with status %d", wrongStatus)
			}
		})
	}
}

// TestOutputWithoutFigures is about output that breaks off, or is none.
func TestOutputWithoutFigures(t *testing.T) {
	whole, err := os.ReadFile("testdata/wrk-200.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{
		"",
		"unable to connect to 127.0.0.1:1 Connection refused\n",
		strings.Replace(string(whole), "29445.87", "0.00", 1),
		strings.Replace(string(whole), " 50% ", "", 1),
		strings.Replace(string(whole), " 99% ", "", 1),
		strings.Replace(string(whole), "Requests/sec: ", "", 1),
	} {
		if got, err := parseWrk(out, 200); err == nil {
			t.Errorf("wrk: read %+v of %q", got, out)
		}
		if got, err := parseH2load(out, 200); err == nil {
			t.Errorf("h2load: read %+v of %q", got, out)
		}
	}
}
