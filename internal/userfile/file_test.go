package userfile

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddyserver/caddy/v2"
)

// text is the format of the tests. Its pages are strings. A text that begins with "broken" is none.
var text = Format{
	Name: "text",
	Parse: func(name string, text []byte) (any, error) {
		page := string(text)
		if strings.HasPrefix(page, "broken") {
			return nil, errors.New(name + " is " + page)
		}
		return page, nil
	},
}

// values are those of placeholders, by name.
type values map[string]string

// placeholders returns those of a request, as Caddy has them.
func placeholders(known values) *caddy.Replacer {
	repl := caddy.NewReplacer()
	for name, value := range known {
		repl.Set(name, value)
	}
	return repl
}

const host, variable = "http.request.host", "http.vars.site"

// noSuchFile is in the words of the system.
var noSuchFile = syscall.ENOENT.Error()

// take returns a file in the format text, which logs to a logger.
func take(t testing.TB, path string, logger *zap.Logger) *File {
	t.Helper()
	f, err := Take(path, text, new(OnceAMinute), logger)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// observed returns a logger and what it logs.
func observed() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.DebugLevel)
	return zap.New(core), logs
}

// wantError checks that an error has a text. A failure names what was refused.
func wantError(t *testing.T, what string, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got the error\n%v\nwant one with\n%s", what, err, text)
	}
}
