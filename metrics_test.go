package notfound

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestOperatorsSeeTheCause(t *testing.T) {
	s := startCaddy(t, `
http://a.test:0 {
	log
	log_append cause {http.not_found.cause}
	not_found
	error /error "no such thing" 404
	respond /response "theirs" 404
	respond /passed "mine"
}
http://b.test:0 {
	not_found
}
http://metrics.test:0 {
	metrics
}`)
	for _, path := range []string{"/unanswered", "/error", "/response", "/response", "/passed", "/unanswered", "/unanswered"} {
		s.get(t, "http://a.test"+path)
	}
	s.get(t, "http://b.test/unanswered", "Accept: application/json") // handlers share the counter

	t.Run("metrics", func(t *testing.T) {
		metrics := s.get(t, "http://metrics.test/").body
		for _, line := range []string{
			"# TYPE caddy_not_found_pages_total counter",
			`caddy_not_found_pages_total{cause="unanswered"} 4`,
			`caddy_not_found_pages_total{cause="error"} 1`,
			`caddy_not_found_pages_total{cause="response"} 2`,
		} {
			if !strings.Contains(metrics, line+"\n") {
				t.Errorf("the metrics lack %s", line)
			}
		}
	})

	t.Run("access log", func(t *testing.T) {
		want := map[string]string{"/unanswered": "unanswered", "/error": "error", "/response": "response", "/passed": ""}
		for _, entry := range s.logs.waitForHost(t, "handled request", "a.test", 7) {
			uri := entry["request"].(map[string]any)["uri"].(string)
			if entry["cause"] != want[uri] {
				t.Errorf("%s: got the cause %v, want %s", uri, entry["cause"], want[uri])
			}
			if uri != "/passed" && entry["status"] != 404.0 {
				t.Errorf("%s: got the status %v", uri, entry["status"])
			}
		}
		if nops := s.logs.entries(t, "NOP", func(map[string]any) bool { return true }); len(nops) > 0 {
			t.Errorf("a page is logged as no operation: %v", nops)
		}
	})

	t.Run("debug log", func(t *testing.T) {
		entries := s.logs.waitFor(t, "wrote the 404 page", 7)
		if len(entries) != 7 {
			t.Errorf("got %d lines, want one a page", len(entries))
		}
		for _, entry := range entries {
			switch entry["uri"] {
			case "http://a.test/error":
				if err, _ := entry["error"].(string); entry["cause"] != "error" || !strings.Contains(err, "no such thing") {
					t.Errorf("got %v", entry)
				}
			case "http://b.test/unanswered":
				if entry["format"] != "json" || entry["cause"] != "unanswered" || entry["method"] != "GET" || entry["level"] != "debug" || entry["error"] != nil {
					t.Errorf("got %v", entry)
				}
			}
		}
	})
}

func TestNothingIsLoggedAboveDebug(t *testing.T) {
	s := startCaddy(t, "http://a.test:0 {\nnot_found\n}\nhttp://b.test:0 {\nnot_found\n}")
	s.get(t, "http://a.test/x")
	s.get(t, "http://b.test/x")
	for _, entry := range s.logs.waitFor(t, "wrote the 404 page", 2) {
		if entry["level"] != "debug" {
			t.Errorf("got %v", entry)
		}
	}
}

// TestLogEntriesKeepTheirAddresses has a core hold entries back, as one that writes in batches does, while pages are reused.
func TestLogEntriesKeepTheirAddresses(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	h := provision(t, &Handler{})
	h.logger = zap.New(core)
	for i := range 100 {
		if err := serve(h, httptest.NewRecorder(), "GET", fmt.Sprintf("/%d", i), endOfChain); err != nil {
			t.Fatal(err)
		}
	}
	entries := logged.FilterMessage("wrote the 404 page").All()
	if len(entries) != 100 {
		t.Errorf("got %d entries", len(entries))
	}
	for i, entry := range entries {
		if got, want := entry.ContextMap()["uri"], fmt.Sprintf("http://a.test/%d", i); got != want {
			t.Errorf("entry %d has the address %v, want %s", i, got, want)
		}
	}
}
