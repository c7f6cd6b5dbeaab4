// Package integration tests not_found within a whole Caddy: what its clients, its backends and its operators see. What
// can be tested without a server is tested beside the code.
package integration

import (
	"os"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddy-notfound/notfound" // registers the directive
)

// TestMain runs the tests, or Caddy's own main function where a test starts this program again as caddy.
func TestMain(m *testing.M) {
	if os.Getenv(runsAsCaddy) != "" {
		caddycmd.Main()
		return
	}
	os.Exit(m.Run())
}

const runsAsCaddy = "NOT_FOUND_TEST_RUNS_AS_CADDY"
