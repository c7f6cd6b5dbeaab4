package testcaddy

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Logs holds what a Caddy logs.
type Logs struct {
	Output string // the line of a log block that has Caddy write here

	mu      sync.Mutex
	entries []Entry
}

// Entry is an entry of a log, as it is in JSON.
type Entry map[string]any

// Host returns the host of the request that an entry is about.
func (e Entry) Host() string {
	request, _ := e["request"].(map[string]any)
	host, _ := request["host"].(string)
	return host
}

// NewLogs returns logs that a Caddyfile can have Caddy write to, until the test ends.
func NewLogs(t testing.TB) *Logs {
	l := new(Logs)
	name := fmt.Sprintf("%s %p", t.Name(), l)
	l.Output = "output test " + strconv.Quote(name)
	logsByName.Store(name, l)
	t.Cleanup(func() { logsByName.Delete(name) })
	return l
}

// Write adds an entry, which is a line of JSON.
func (l *Logs) Write(line []byte) (int, error) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		panic(fmt.Sprintf("log line %q: %v", line, err))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	return len(line), nil
}

// Select returns the entries so far for which a function returns true.
func (l *Logs) Select(_ testing.TB, match func(Entry) bool) (entries []Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
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
	return l.wait(t, n, message, func(e Entry) bool { return e["msg"] == message })
}

// WaitForHost waits until there are n entries with a message about requests to a host, and returns all of them.
func (l *Logs) WaitForHost(t testing.TB, message, host string, n int) []Entry {
	t.Helper()
	return l.wait(t, n, message, func(e Entry) bool { return e["msg"] == message && e.Host() == host })
}

func (l *Logs) wait(t testing.TB, n int, message string, match func(Entry) bool) []Entry {
	t.Helper()
	entries := l.Select(t, match)
	for deadline := time.Now().Add(timeout); len(entries) < n; entries = l.Select(t, match) {
		if time.Now().After(deadline) {
			t.Fatalf("got %d log entries %q, want %d", len(entries), message, n)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return entries
}

var logsByName sync.Map

// logWriter is the module that writes to Logs.
type logWriter struct {
	Name string `json:"name"`
}

func init() {
	caddy.RegisterModule(logWriter{})
}

func (logWriter) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.logging.writers.test", New: func() caddy.Module { return new(logWriter) }}
}

func (w *logWriter) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume writer name
	if !d.AllArgs(&w.Name) {
		return d.ArgErr()
	}
	return nil
}

func (w *logWriter) String() string    { return w.Name }
func (w *logWriter) WriterKey() string { return w.Name }

func (w *logWriter) OpenWriter() (io.WriteCloser, error) {
	l, ok := logsByName.Load(w.Name)
	if !ok {
		return nil, fmt.Errorf("no logs %q", w.Name)
	}
	return nopCloser{l.(*Logs)}, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// Interface guards
var (
	_ caddy.WriterOpener    = (*logWriter)(nil)
	_ caddyfile.Unmarshaler = (*logWriter)(nil)
)
