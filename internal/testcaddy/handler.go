package testcaddy

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// HandlerFunc is a function that handles requests as a Caddy plugin does.
type HandlerFunc func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error

// Directive returns a Caddyfile directive that runs a function as a handler, until the test ends. It is ordered
// before invoke, and so before the handlers that respond.
func Directive(t testing.TB, f HandlerFunc) string {
	name := fmt.Sprintf("%s %p", t.Name(), &f)
	handlersByName.Store(name, f)
	t.Cleanup(func() { handlersByName.Delete(name) })
	return "go " + strconv.Quote(name)
}

// EndOfChain is the handler that Caddy has at the end of each chain.
func EndOfChain(_ http.ResponseWriter, r *http.Request) error {
	caddyhttp.SetVar(r.Context(), "unhandled", true)
	return nil
}

var handlersByName sync.Map

// goHandler is the module that runs a function.
type goHandler struct {
	Name string `json:"name"`
}

func init() {
	caddy.RegisterModule(goHandler{})
	httpcaddyfile.RegisterHandlerDirective("go", parseGo)
	httpcaddyfile.RegisterDirectiveOrder("go", httpcaddyfile.Before, "invoke")
}

func parseGo(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(goHandler)
	h.Next() // consume directive name
	if !h.AllArgs(&handler.Name) {
		return nil, h.ArgErr()
	}
	return handler, nil
}

func (goHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.go",
		New: func() caddy.Module { return new(goHandler) },
	}
}

func (h *goHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	f, ok := handlersByName.Load(h.Name)
	if !ok {
		return fmt.Errorf("no function %q", h.Name)
	}
	return f.(HandlerFunc)(w, r, next)
}

// Interface guards
var _ caddyhttp.MiddlewareHandler = (*goHandler)(nil)
