package integration

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestOperatorsSeeTheCause looks for the causes of pages in the metrics, the access log and the debug log. One site has a dry run,
// and the values of its options are invalid.
func TestOperatorsSeeTheCause(t *testing.T) {
	s := testcaddy.Start(t, `
http://a.test:0 {
	log
	log_append cause {http.not_found.cause}
	not_found
	error /error "no such thing" 404
	header /response Content-Type "text/html; charset=theirs"
	respond /response "theirs" 404
	respond /passed "mine"
}
http://errors.test:0 {
	log
	error "no such thing" 404
	handle_errors {
		log_append cause {http.not_found.cause}
		not_found
		respond "theirs" 404
	}
}
http://outside.test:0 {
	log
	log_append cause {http.not_found.cause}
	error "no such thing" 404
	handle_errors {
		not_found
	}
}
http://b.test:0 {
	not_found
}
http://evil.test:0 {
	not_found /dry {
		dry_run
	}
	not_found {
		context_path {http.request.header.X-Evil}
		base_url {http.request.header.X-Evil}
		uri {http.request.header.X-Evil}
		footer {http.request.header.X-Evil}
	}
	respond /dry "theirs" 404
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
	s.Get(t, "http://evil.test/dry", "X-Evil: \xff<script>").Want(t, 404, "theirs")
	s.Get(t, "http://evil.test/x", "X-Evil: \xff<script>")
	for _, tt := range []struct{ url, referer string }{
		{"http://b.test/own", "http://b.test/page"},
		{"http://b.test/own", "https://B.test:443/page?x#y"}, // a proxy in front may have changed the scheme
		{"http://base.test/own", "https://www.base.test/page"},
		{"http://base.test/own", "http://base.test/page"},
		{"http://b.test/other", "http://a.test/page"},
		{"http://b.test/itself", "http://b.test/itself"},
		{"http://a.test/response", "http://a.test/page"},
		{"http://a.test/passed", "http://a.test/page"},
		{"http://errors.test/own", "http://errors.test/page"},
		{"http://outside.test/other", "http://a.test/page"},
	} {
		s.Get(t, tt.url, "Referer: "+tt.referer)
	}

	t.Run("metrics", func(t *testing.T) {
		metrics := s.Get(t, "http://metrics.test/").Content
		for _, line := range []string{
			"# TYPE caddy_not_found_pages_total counter",
			`caddy_not_found_pages_total{cause="unanswered",link="own"} 4`,
			`caddy_not_found_pages_total{cause="unanswered",link="other"} 1`,
			`caddy_not_found_pages_total{cause="unanswered",link="none"} 6`,
			`caddy_not_found_pages_total{cause="error",link="own"} 0`,
			`caddy_not_found_pages_total{cause="error",link="other"} 1`,
			`caddy_not_found_pages_total{cause="error",link="none"} 1`,
			`caddy_not_found_pages_total{cause="response",link="own"} 2`,
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
		want := map[string]any{
			"/unanswered": "unanswered", "/error": "error", "/response": "response", "/passed": "",
			"/own":   "response", // of errors.test
			"/other": nil,        // of outside.test, whose own chain has returned by then
		}
		for host, n := range map[string]int{"a.test": 9, "errors.test": 1, "outside.test": 1} {
			for _, entry := range s.Logs.WaitForHost(t, "handled request", host, n) {
				uri := entry["request"].(map[string]any)["uri"].(string)
				if entry["cause"] != want[uri] || uri != "/passed" && entry["status"] != 404.0 {
					t.Errorf("%s%s: got the cause %v and the status %v, want %v", host, uri, entry["cause"], entry["status"], want[uri])
				}
			}
		}
		if nops := s.Logs.Select(t, func(e testcaddy.Entry) bool { return e["msg"] == "NOP" }); len(nops) > 0 {
			t.Errorf("a page is logged as a NOP: %v", nops)
		}
	})

	t.Run("debug log", func(t *testing.T) {
		entries := s.Logs.WaitFor(t, "wrote the 404 page", 17)
		if len(entries) != 17 {
			t.Errorf("got %d entries, want one for each page", len(entries))
		}
		if above := s.Logs.Select(t, func(e testcaddy.Entry) bool { return e["logger"] == "http.handlers.not_found" && e["level"] != "debug" }); len(above) > 0 {
			t.Errorf("above debug, there is %v", above)
		}
		for _, entry := range entries {
			switch err, _ := entry["error"].(string); entry["uri"] {
			case "http://a.test/error", "http://errors.test/own":
				if !strings.Contains(err, "no such thing") {
					t.Errorf("got %v", entry)
				}
			case "http://a.test/response":
				if entry["replaced_content_type"] != "text/html; charset=theirs" {
					t.Errorf("got %v", entry)
				}
			case "http://b.test/unanswered":
				if entry["replaced_content_type"] != nil || entry["format"] != "json" || entry["cause"] != "unanswered" || entry["method"] != "GET" || entry["level"] != "debug" || entry["error"] != nil {
					t.Errorf("got %v", entry)
				}
			}
		}
	})
}

// TestTracesHaveTheCause has Caddy's `tracing` send the spans of a page and of another response to a collector.
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
	s := testcaddy.Start(t, "http://a.test:0 {\ntracing {\nspan_attributes {\ncause {http.not_found.cause}\n}\n}\nnot_found\nrespond /passed mine\n}")
	for path, attribute := range map[string]string{"/unanswered": "\n\x05cause\x12\x0c\n\x0aunanswered", "/passed": "\n\x05cause\x12\x02\n\x00"} { // as protobuf has it
		s.Get(t, "http://a.test"+path)
		eventually(t, "a span of "+path+" has the cause", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(spans.String(), attribute)
		})
	}
}
