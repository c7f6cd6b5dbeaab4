// Package second is a Caddy plugin of one header field, to show that the manifest takes more than one.
package second

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	caddy.RegisterModule(Handler{})
	httpcaddyfile.RegisterHandlerDirective("second", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return Handler{}, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("second", httpcaddyfile.Before, "respond")
}

// Handler sets X-Second.
type Handler struct{}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.second", New: func() caddy.Module { return new(Handler) }}
}

func (Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	w.Header().Set("X-Second", "yes")
	return next.ServeHTTP(w, r)
}
