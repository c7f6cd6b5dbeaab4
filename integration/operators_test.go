package integration

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestOperatorsSeeTheCause looks for the causes of pages in the metrics, in the access log and in the debug log.
func TestOperatorsSeeTheCause(t *testing.T) {
	s := testcaddy.Start(t, `
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
}
http://base.test:0 {
	not_found {
		base_url https://www.base.test
	}
	request_header -Referer
}`)
	for _, path := range []string{"/unanswered", "/error", "/response", "/response", "/passed", "/unanswered", "/unanswered"} {
		s.Get(t, "http://a.test"+path)
	}
	s.Get(t, "http://b.test/unanswered", "Accept: application/json") // counted with those of the other handler
	for _, tt := range []struct{ url, referer string }{
		{"http://b.test/own", "http://b.test/page"},
		{"http://b.test/own", "https://B.test:443/page?x#y"}, // a proxy in front may have changed the scheme
		{"http://base.test/own", "https://www.base.test/page"},
		{"http://base.test/own", "http://base.test/page"},
		{"http://b.test/other", "http://a.test/page"},
		{"http://b.test/itself", "http://b.test/itself"},
		{"http://b.test/none", "about:blank"},
	} {
		s.Get(t, tt.url, "Referer: "+tt.referer)
	}
	s.Get(t, "http://a.test/response", "Referer: http://a.test/page")
	s.Get(t, "http://a.test/passed", "Referer: http://a.test/page")

	t.Run("metrics", func(t *testing.T) {
		metrics := s.Get(t, "http://metrics.test/").Content
		for _, line := range []string{
			"# TYPE caddy_not_found_pages_total counter",
			`caddy_not_found_pages_total{cause="unanswered",link="own"} 4`,
			`caddy_not_found_pages_total{cause="unanswered",link="other"} 1`,
			`caddy_not_found_pages_total{cause="unanswered",link="none"} 6`,
			`caddy_not_found_pages_total{cause="error",link="none"} 1`,
			`caddy_not_found_pages_total{cause="response",link="own"} 1`,
			`caddy_not_found_pages_total{cause="response",link="none"} 2`,
		} {
			if !strings.Contains(metrics, line+"\n") {
				t.Errorf("the metrics lack %s", line)
			}
		}
		if series := strings.Count(metrics, "caddy_not_found_pages_total{"); series != 9 {
			t.Errorf("got %d series, want one for each cause and kind of link", series)
		}
	})

	t.Run("access log", func(t *testing.T) {
		want := map[string]string{"/unanswered": "unanswered", "/error": "error", "/response": "response", "/passed": ""}
		for _, entry := range s.Logs.WaitForHost(t, "handled request", "a.test", 9) {
			uri := entry["request"].(map[string]any)["uri"].(string)
			if entry["cause"] != want[uri] {
				t.Errorf("%s: got the cause %v, want %s", uri, entry["cause"], want[uri])
			}
			if uri != "/passed" && entry["status"] != 404.0 {
				t.Errorf("%s: got the status %v", uri, entry["status"])
			}
		}
		isNOP := func(e testcaddy.Entry) bool { return e["msg"] == "NOP" }
		if nops := s.Logs.Select(t, isNOP); len(nops) > 0 {
			t.Errorf("a page is logged as a NOP: %v", nops)
		}
	})

	t.Run("debug log", func(t *testing.T) {
		entries := s.Logs.WaitFor(t, "wrote the 404 page", 15)
		if len(entries) != 15 {
			t.Errorf("got %d entries, want one for each page", len(entries))
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

// TestLogAppendStandsInTheErrorRoutes has log_append beside a not_found in handle_errors, and at site level. Caddy runs the
// error routes once the site's own chain has returned, and log_append looks the value up on the way back.
func TestLogAppendStandsInTheErrorRoutes(t *testing.T) {
	s := testcaddy.Start(t, `
http://inside.test:0 {
	log
	error 404
	handle_errors {
		log_append cause {http.not_found.cause}
		not_found
	}
}
http://outside.test:0 {
	log
	log_append cause {http.not_found.cause}
	error 404
	handle_errors {
		not_found
	}
}`)
	for host, want := range map[string]any{"inside.test": "error", "outside.test": nil} {
		s.Get(t, "http://"+host+"/x").WantPage(t, "GET", "http://"+host+"/x", "")
		entry := s.Logs.WaitForHost(t, "handled request", host, 1)[0]
		if got, ok := entry["cause"]; !ok || got != want {
			t.Errorf("%s: got the cause %v, want %v", host, got, want)
		}
	}
}

// TestTracesHaveTheCause has Caddy's `tracing` send the spans of pages, and of a request that got none, to a collector.
func TestTracesHaveTheCause(t *testing.T) {
	var (
		mu    sync.Mutex
		spans strings.Builder
	)
	collector := testcaddy.Backend(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&spans, r.Body)
	})
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+collector)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10") // ms
	s := testcaddy.Start(t, `
http://a.test:0 {
	tracing {
		span_attributes {
			not_found.cause {http.not_found.cause}
		}
	}
	not_found
	error /error 404
	respond /response "theirs" 404
	respond /passed "mine"
}`)
	for path, cause := range map[string]string{"/unanswered": "unanswered", "/error": "error", "/response": "response", "/passed": ""} {
		s.Get(t, "http://a.test"+path)
		field := func(number int, value string) string {
			return string([]byte{byte(number<<3 | 2), byte(len(value))}) + value
		}
		attribute := field(1, "not_found.cause") + field(2, field(1, cause)) // as protobuf has it
		eventually(t, "a span of "+path+" has the cause "+cause, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(spans.String(), attribute)
		})
	}
}

// TestNothingIsLoggedAboveDebug asks for pages of every cause, and of a site whose values a client makes invalid.
func TestNothingIsLoggedAboveDebug(t *testing.T) {
	s := testcaddy.Start(t, `
http://a.test:0 {
	not_found {
		context_path {http.request.header.X-Evil}
		base_url {http.request.header.X-Evil}
		footer {http.request.header.X-Evil}
	}
	error /error 404
	respond /response "theirs" 404
}`)
	for _, path := range []string{"/unanswered", "/error", "/response"} {
		s.Get(t, "http://a.test"+path, "X-Evil: \xff<script>")
	}
	s.Logs.WaitFor(t, "wrote the 404 page", 3)
	entries := s.Logs.Select(t, func(e testcaddy.Entry) bool { return e["logger"] == "http.handlers.not_found" })
	if len(entries) != 3 {
		t.Errorf("got %d log entries, want one for each page", len(entries))
	}
	for _, entry := range entries {
		if entry["level"] != "debug" {
			t.Errorf("got the log entry %v", entry)
		}
	}
}
