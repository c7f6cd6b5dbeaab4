package testcaddy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Logs is what a Caddy logs to a file.
type Logs struct {
	Output string // the lines of a log block that write there
	file   string
}

// Entry is an entry of a log, as it is in JSON.
type Entry map[string]any

// Host returns the host of the request that an entry is about.
func (e Entry) Host() string {
	request, _ := e["request"].(map[string]any)
	host, _ := request["host"].(string)
	return host
}

// NewLogs returns logs that a Caddyfile can have Caddy write to, until the test ends. Caddy never closes the file, so
// Windows does not remove it.
func NewLogs(t testing.TB) *Logs {
	t.Helper()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "log")
	return &Logs{"output file " + Quote(file) + " {\nroll_disabled\n}", file}
}

// Select returns the entries so far for which a function returns true.
func (l *Logs) Select(t testing.TB, match func(Entry) bool) (entries []Entry) {
	t.Helper()
	content, err := os.ReadFile(l.file)
	if err != nil {
		t.Fatal(err)
	}
	written := bytes.LastIndexByte(content, '\n') + 1 // the rest is being written
	for line := range bytes.Lines(content[:written]) {
		var e Entry
		err := json.Unmarshal(line, &e)
		if err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if match(e) {
			entries = append(entries, e)
		}
	}
	return entries
}

// WaitFor waits until there are n entries with a message, and returns all of them. Caddy writes to its logs after
// the client has its response.
func (l *Logs) WaitFor(t testing.TB, message string, n int) []Entry {
	t.Helper()
	return l.WaitForHost(t, message, "", n)
}

// WaitForHost waits until there are n entries with a message about requests to a host, and returns all of them.
func (l *Logs) WaitForHost(t testing.TB, message, host string, n int) (entries []Entry) {
	t.Helper()
	isMeant := func(e Entry) bool {
		return e["msg"] == message && (host == "" || e.Host() == host)
	}
	retry(t, func() error {
		entries = l.Select(t, isMeant)
		if len(entries) < n {
			return fmt.Errorf("got %d log entries %q, want %d", len(entries), message, n)
		}
		return nil
	})
	return entries
}
