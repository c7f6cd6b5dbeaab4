// Package integration tests not_found in a whole Caddy, as clients, backends and operators see it. What needs no
// server is tested beside the code.
package integration

import (
	"log"
	"os"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddy-notfound/notfound" // registers the directive
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestMain runs the tests, or Caddy's main function where a test starts this program as caddy.
func TestMain(m *testing.M) {
	if os.Getenv(runsAsCaddy) != "" {
		caddycmd.Main()
		return
	}
	if err := checkOpenFiles(); err != nil {
		log.Fatal("the tests need 1,000 open files at once; raise ulimit -n: ", err)
	}
	discardLog()
	os.Exit(m.Run())
}

// discardLog has the log of Caddy go nowhere while no config has another place for it, or a test that fails would print
// it. Panics and races are still printed: the runtime does not use os.Stderr.
func discardLog() {
	caddy.BufferedLog() // the one before the first config
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		log.Fatal(err)
	}
	os.Stderr = null
}

// checkOpenFiles opens as many files as the tests do. Without them, Caddy would wait for a connection to be closed.
func checkOpenFiles() error {
	for range 1000 {
		file, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		defer file.Close()
	}
	return nil
}

const runsAsCaddy = "NOT_FOUND_TEST_RUNS_AS_CADDY"

// eventually waits until something has come.
func eventually(t *testing.T, what string, hasCome func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !hasCome(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in 10 seconds, there came no %s", what)
		}
	}
}

// getPage asks for a URL, and checks that the response is the page as plain text.
func getPage(t *testing.T, c *testcaddy.Client, url string, fields ...string) testcaddy.Response {
	t.Helper()
	res := c.Get(t, url, fields...)
	res.WantPage(t, "GET", url, "")
	return res
}

// writeFile writes a file, which becomes readable for every user.
func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// startSite runs a Caddy with the site a.test until the test ends.
func startSite(t *testing.T, directives string, options ...string) *testcaddy.Server {
	t.Helper()
	return testcaddy.Start(t, "http://a.test:0 {\n"+directives+"\n}", options...)
}
