package notfound

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestLogEntriesKeepTheirAddresses has a core hold back its entries, as one that writes in batches does, while pages are
// reused.
func TestLogEntriesKeepTheirAddresses(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	h := provision(t, &Handler{})
	h.logger = zap.New(core)
	for i := range 100 {
		if err := serve(h, httptest.NewRecorder(), "GET", fmt.Sprintf("/%d", i), testcaddy.EndOfChain); err != nil {
			t.Fatal(err)
		}
	}
	entries := logged.FilterMessage("wrote the 404 page").All()
	if len(entries) != 100 {
		t.Errorf("got %d entries, want 100", len(entries))
	}
	for i, entry := range entries {
		if got, want := entry.ContextMap()["uri"], fmt.Sprintf("http://a.test/%d", i); got != want {
			t.Errorf("entry %d has the address %v, want %s", i, got, want)
		}
	}
}
