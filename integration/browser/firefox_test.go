package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// firefox is a Firefox that a test drives by WebDriver BiDi (https://w3c.github.io/webdriver-bidi).
type firefox struct {
	t       *testing.T
	conn    net.Conn
	calls   int
	tab     string
	entries []string // of the console
}

func startFirefox(t *testing.T) *firefox {
	t.Helper()
	profile := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "firefox-esr", "--headless", "--no-remote", "--profile", profile,
		"--remote-debugging-port", "0")
	cmd.Env = append(os.Environ(), "HOME="+profile) // root cannot run Firefox in the home of another user
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the context has killed it by now

	var output strings.Builder
	lines := bufio.NewScanner(stderr)
	address, isListening := "", false
	for !isListening {
		if !lines.Scan() {
			t.Fatalf("Firefox has ended:\n%s", output.String())
		}
		fmt.Fprintln(&output, lines.Text())
		_, address, isListening = strings.Cut(lines.Text(), "WebDriver BiDi listening on ")
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // so that Firefox can write on

	b := &firefox{t: t}
	b.conn, _, _, err = ws.Dial(t.Context(), address+"/session")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.conn.Close() })
	if err := b.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	b.call("session.new", parameters{"capabilities": parameters{}}, nil)
	b.call("session.subscribe", parameters{"events": []string{"log.entryAdded"}}, nil)
	var tabs struct{ Contexts []struct{ Context string } }
	b.call("browsingContext.getTree", parameters{}, &tabs)
	b.tab = tabs.Contexts[0].Context
	return b
}

type parameters map[string]any

// call calls a method. Events that come before its result are entries of the console.
func (b *firefox) call(method string, params parameters, result any) {
	b.t.Helper()
	b.calls++
	command, err := json.Marshal(parameters{"id": b.calls, "method": method, "params": params})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := wsutil.WriteClientText(b.conn, command); err != nil {
		b.t.Fatal(err)
	}
	for {
		data, err := wsutil.ReadServerText(b.conn)
		if err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		var message struct {
			Type   string
			Params struct{ Text string }
			Result json.RawMessage
		}
		if err := json.Unmarshal(data, &message); err != nil {
			b.t.Fatalf("%v: %s", err, data)
		}
		switch message.Type {
		case "event":
			b.entries = append(b.entries, message.Params.Text)
		case "success":
			if result == nil {
				return
			}
			if err := json.Unmarshal(message.Result, result); err != nil {
				b.t.Fatalf("%v: %s", err, data)
			}
			return
		default:
			b.t.Fatalf("%s: %s", method, data)
		}
	}
}

func (b *firefox) open(url string) {
	b.t.Helper()
	b.call("browsingContext.navigate", parameters{"context": b.tab, "url": url, "wait": "complete"}, nil)
}

func (b *firefox) reload() {
	b.t.Helper()
	b.call("browsingContext.reload", parameters{"context": b.tab, "wait": "complete"}, nil)
}

func (b *firefox) eval(expression string) string {
	b.t.Helper()
	var evaluated struct {
		Type             string
		Result           struct{ Value string }
		ExceptionDetails struct{ Text string }
	}
	b.call("script.evaluate", parameters{
		"expression":   expression,
		"target":       parameters{"context": b.tab},
		"awaitPromise": true,
	}, &evaluated)
	if evaluated.Type != "success" {
		b.t.Fatal(evaluated.ExceptionDetails.Text)
	}
	return evaluated.Result.Value
}

func (b *firefox) complaints() []string {
	b.t.Helper()
	b.call("session.status", parameters{}, nil) // its result comes after the events until now
	return b.entries
}
