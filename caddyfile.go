package notfound

import (
	"reflect"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	httpcaddyfile.RegisterDirective("not_found", parseCaddyfile)

	// Inside header and log_append, whose work a 404 page shares, and outside everything that can
	// end in a 404: try_files, forward_auth, intercept, handle blocks, the handlers. Outside
	// templates above all, which must never execute a page that echoes what a client sent.
	httpcaddyfile.RegisterDirectiveOrder("not_found", httpcaddyfile.Before, "redir")
}

// parseCaddyfile makes the route of one not_found directive. The directives of one block share a
// group, so that only the most specific one that matches works, as with handle and rewrite.
func parseCaddyfile(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // consume directive name
	matcherSet, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}

	nf := new(Handler)
	if err := nf.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}

	values := h.NewRoute(matcherSet, nf)
	for i := range values {
		if route, ok := values[i].Value.(caddyhttp.Route); ok {
			route.Group = groupOfBlock(h)
			values[i].Value = route
		}
	}
	return values, nil
}

// groupOfBlock returns the name of the route group of the block that h stands in. BlockState is where
// sibling directives share state, but a nested block begins with a copy of it; the map itself tells
// one block from another, as no two blocks under parsing have the same.
func groupOfBlock(h httpcaddyfile.Helper) string {
	type blockGroup struct {
		block uintptr
		name  string
	}
	const key = "not_found.group"

	block := reflect.ValueOf(h.BlockState).Pointer()
	if g, ok := h.BlockState[key].(blockGroup); ok && g.block == block {
		return g.name
	}

	// GroupRoutes is the only way to a fresh group name, and names only groups of two
	pair := []httpcaddyfile.ConfigValue{{Value: caddyhttp.Route{}}, {Value: caddyhttp.Route{}}}
	h.GroupRoutes(pair)
	g := blockGroup{block, pair[0].Value.(caddyhttp.Route).Group}
	h.BlockState[key] = g
	return g.name
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	not_found [<matcher>] {
//	    context_path <path>
//	    base_url     <url>
//	    footer       <text>
//	    formats      <format...>
//	    replace      pages|all|none
//	    template     <file>
//	}
//
// Every option may be left out, and given once.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if d.NextArg() {
		return d.Errf("unexpected argument '%s': not_found takes a matcher and a block of options", d.Val())
	}

	given := make(map[string]bool)
	for d.NextBlock(0) {
		option := d.Val()
		if given[option] {
			return d.Errf("option '%s' is given twice", option)
		}
		given[option] = true

		var value *string // of an option that has one
		switch option {
		case "context_path":
			value = &h.ContextPath
		case "base_url":
			value = &h.BaseURL
		case "footer":
			value = &h.Footer
		case "replace":
			value = &h.Replace
		case "template":
			value = &h.Template
		case "formats":
		default:
			return d.Errf("unknown option '%s'; the options are context_path, base_url, footer, formats, replace and template", option)
		}

		args := d.RemainingArgs()
		switch {
		case d.NextBlock(d.Nesting()):
			return d.Errf("option '%s' takes no block", option)
		case value == nil:
			if len(args) == 0 {
				return d.Errf("option '%s' needs at least one of text, html, json, problem and xml", option)
			}
			h.Formats = args
		case len(args) != 1:
			return d.Errf("option '%s' takes one argument, not %d; quote a value that has spaces", option, len(args))
		case args[0] == "" && option != "context_path":
			// it would be taken for an absent one; only the root context is empty
			return d.Errf("option '%s' is empty; give it a value or leave it out", option)
		default:
			*value = args[0]
		}
	}
	return nil
}
