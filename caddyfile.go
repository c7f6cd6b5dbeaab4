package notfound

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/caddyserver/caddy/v2"
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
		return nil, h.WrapErr(err)
	}

	nf := new(Handler)
	if err := nf.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}

	block := blockOf(h)
	if block.exact && slices.ContainsFunc(block.matchers, func(m caddy.ModuleMap) bool { return reflect.DeepEqual(m, matcherSet) }) {
		h.Reset()
		h.Next() // to name the line of the directive
		return nil, h.Err("a second not_found with the same matcher in one block; put the options of both into one, or give it another matcher")
	}
	block.matchers = append(block.matchers, matcherSet)

	values := h.NewRoute(matcherSet, nf)
	for i := range values {
		if route, ok := values[i].Value.(caddyhttp.Route); ok {
			route.Group = block.group
			values[i].Value = route
		}
	}
	return values, nil
}

// block is a block of directives under parsing, with the not_found directives in it so far.
type block struct {
	id       reflect.Value
	exact    bool // the id is that of one block only
	group    string
	matchers []caddy.ModuleMap
}

// blockOf returns the block that h stands in, with a name for its route group. That name is our own: Caddy counts its
// groups from zero again for named routes, so one of its names may stand for two groups of the same request.
//
// Nothing that Helper exports tells one block from another, for all sites share a BlockState. But each block has a map of
// named matchers to itself. Should a later Caddy keep it elsewhere, sites share a group, and repeated directives are
// not found.
func blockOf(h httpcaddyfile.Helper) *block {
	id := reflect.ValueOf(h).FieldByName("matcherDefs")
	exact := id.IsValid()
	if !exact {
		id = reflect.ValueOf(h.BlockState)
	}

	const key = "not_found.blocks"
	blocks, _ := h.State[key].([]*block)
	for _, b := range blocks {
		if b.id.Pointer() == id.Pointer() { // b.id holds on to the map, so no other takes its place
			return b
		}
	}
	name := "not_found"
	if h.IsNamedRoute() {
		name = "not_found_route" // named routes have a State of their own
	}
	b := &block{id: id, exact: exact, group: name + strconv.Itoa(len(blocks))}
	h.State[key] = append(blocks, b)
	return b
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

		args := d.RemainingArgs()
		if d.NextBlock(d.Nesting()) {
			return d.Errf("option '%s' takes no block", option)
		}
		if err := h.setOption(option, args); err != nil {
			return d.WrapErr(err)
		}
	}
	return nil
}

// setOption sets an option to its arguments. What is wrong with them, and can be told before placeholders are replaced,
// is told here, where the line is known.
func (h *Handler) setOption(option string, args []string) error {
	if option == "formats" {
		if len(args) == 0 {
			return errors.New("option 'formats' needs at least one of text, html, markdown, json, problem and xml")
		}
		h.Formats = args
		if _, err := parseFormats(args); err != nil {
			return fmt.Errorf("formats: %w", err)
		}
		return nil
	}

	var value *string
	check := func(text) (string, error) { return "", nil }
	switch option {
	case "context_path":
		value, check = &h.ContextPath, parseContextPath
	case "base_url":
		value, check = &h.BaseURL, parseBaseURL
	case "footer":
		value, check = &h.Footer, parseFooter
	case "replace":
		value, check = &h.Replace, func(t text) (string, error) { return "", checkReplace(t.value) }
	case "template":
		value = &h.Template // which caddy adapt does not read
	default:
		return fmt.Errorf("unknown option '%s'; the options are context_path, base_url, footer, formats, replace and template", option)
	}
	switch {
	case len(args) != 1:
		return fmt.Errorf("option '%s' takes one argument, not %d; quote a value that has spaces", option, len(args))
	case args[0] == "" && option != "context_path":
		// it would be taken for an absent one; only the root context is empty
		return fmt.Errorf("option '%s' is empty; give it a value or leave it out", option)
	}
	*value = args[0]
	if _, err := check(literal(args[0])); err != nil {
		return fmt.Errorf("%s: %w", option, err)
	}
	return nil
}
