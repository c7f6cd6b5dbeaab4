package notfound

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/command"
	"github.com/caddy-notfound/notfound/internal/represent"
)

func init() {
	httpcaddyfile.RegisterDirective("not_found", parseCaddyfile)

	// not_found comes after header and log_append, which apply to a 404 page as to any response, and before everything
	// that can end in a 404: try_files, forward_auth, intercept, handle blocks, the handlers. Above all, it comes before
	// templates, which must never execute a page that echoes what a client sent.
	httpcaddyfile.RegisterDirectiveOrder("not_found", httpcaddyfile.Before, "redir")

	command.Register(checkTemplate)
}

// parseCaddyfile turns a not_found directive into a route.
func parseCaddyfile(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // consume directive name
	args := h.RemainingArgs()
	h.Reset()
	h.Next()
	matcherSet, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, h.WrapErr(err)
	}

	nf := new(Handler)
	if err := nf.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	hasOptions := !reflect.DeepEqual(nf, new(Handler))
	if len(args) > 0 && isPageFile(args[0]) && !hasOptions {
		return nil, h.Errf("%s is a matcher here: not_found would answer at that address alone; for a page of your own in "+
			"the site's root, write the line `template {vars.root}/404.html` into a block of not_found", args[0])
	}
	nf.Group = groupOf(h)

	values := h.NewRoute(matcherSet, nf)
	if h.IsNamedRoute() {
		// Caddy merges routes without a matcher and a route group. If one route is left, a named route keeps only its
		// first handler. An empty route with a group does not merge.
		empty := caddyhttp.Route{Group: nf.Group}
		values = append(values, httpcaddyfile.ConfigValue{Class: "route", Value: empty})
	}
	return values, nil
}

// isPageFile reports whether a matcher is the exact path of an HTML file. In this place, the directives of other
// servers take the file of a page.
func isPageFile(matcher string) bool {
	isExact := strings.HasPrefix(matcher, "/") && !strings.Contains(matcher, "*")
	return isExact && slices.Contains([]string{".html", ".htm"}, path.Ext(matcher))
}

// groupOf returns the name of a directive's block. Of the handlers with this name, only the first that matches takes
// effect. Caddy's own route groups cannot do this: Caddy merges the routes of a group that have the same matcher
// (httpcaddyfile.consolidateRoutes), so a directive from a snippet would replace the site's own, and a named route that
// is invoked twice would only run once.
//
// A block is identified by its BlockState map (httpcaddyfile.Helper), which Caddy copies for each nested block. All
// sites share the State, so blocks of different sites may share a name. That does no harm: a request is for one site.
func groupOf(h httpcaddyfile.Helper) string {
	const key = "not_found.blocks"
	blocks, _ := h.State[key].(map[uintptr]block)
	if blocks == nil {
		blocks = make(map[uintptr]block)
		h.State[key] = blocks
	}
	address := reflect.ValueOf(h.BlockState).Pointer()
	b, ok := blocks[address]
	if !ok {
		b = block{number: len(blocks), state: h.BlockState}
		blocks[address] = b
	}
	name := "not_found"
	if h.IsNamedRoute() {
		name = "not_found_route" // named routes have a State of their own
	}
	return name + strconv.Itoa(b.number)
}

// block is a block of a Caddyfile that contains a not_found directive.
type block struct {
	number int            // in the order of the file
	state  map[string]any // kept, so that no other map gets its address
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	not_found [<matcher>] {
//	    message      <text>
//	    context_path <path>
//	    base_url     <url>
//	    uri          <text>
//	    footer       <text>
//	    formats      <format...>
//	    replace      pages|browsers|all|none
//	    keep         <response matcher>
//	    template     [<format>] <file...>
//	    precompressed [<encoding...>]
//	    report
//	    dry_run
//	}
//
// Every option is optional, and may be given once. keep may be given several times: one match is enough. template may
// be given once for each format.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if d.NextArg() {
		return d.Errf("unexpected argument '%s': not_found takes one matcher, such as /docs/* or @pages, and a block, "+
			"in which each option has a line", d.Val())
	}

	given := make(map[string]int) // the line of each option
	for d.NextBlock(0) {
		option := d.Val()
		if !slices.Contains(optionNames, option) {
			return d.Errf("unknown option '%s'; the options are %s", option, strings.Join(optionNames, ", "))
		}
		if before, ok := given[option]; ok && option != "keep" && option != "template" {
			return d.Errf("option '%s' is given twice, first in line %d; leave one of the two out", option, before)
		}
		given[option] = d.Line()

		if option == "keep" {
			if err := h.addKeep(d.NewFromNextSegment()); err != nil {
				return err
			}
		} else if err := h.setOption(option, d); err != nil {
			return d.Errf("option '%s' %w", option, err)
		}
		if err := h.check(); err != nil {
			return d.WrapErr(err)
		}
	}
	return nil
}

// checkQuotes refuses quotes that a Caddyfile does not know. A single word in typographic quotes may be intended, and
// so is whatever is within a Caddyfile's own quotes.
func checkQuotes(args []caddyfile.Token) error {
	quotes := "'"
	if len(args) > 1 {
		quotes = "'“”„‘’«»"
	}
	for _, arg := range args {
		if !arg.Quoted() && strings.IndexAny(arg.Text, quotes) == 0 {
			return fmt.Errorf("has the quotes of %s, which a Caddyfile does not know; write double quotes or backticks",
				arg.Text)
		}
	}
	return nil
}

// addKeep adds the response matcher on the option's line or in its block.
func (h *Handler) addKeep(d *caddyfile.Dispenser) error {
	matchers := make(map[string]caddyhttp.ResponseMatcher)
	if err := caddyhttp.ParseNamedResponseMatcher(d, matchers); err != nil {
		return fmt.Errorf("keep takes the matchers header and status, as in header X-Error-Page *: %w", err)
	}
	h.Keep = append(h.Keep, matchers["keep"])
	return nil
}

// checkTemplate implements [command.CheckTemplate], with arguments as in a Caddyfile.
func checkTemplate(args []string) (read int, notes []string, err error) {
	h := &Handler{logger: zap.NewNop()} // Check returns the mistakes
	if err := h.addTemplate(expandShorthands(args)); err != nil {
		return 0, nil, fmt.Errorf("the command %w", err)
	}
	if err := h.checkLoaded(); err != nil {
		return 0, nil, err
	}
	representations, err := h.newRepresentations()
	if err != nil {
		return 0, nil, err
	}
	return representations.Check()
}

// setOption sets an option. The error says what is wrong with its arguments.
func (h *Handler) setOption(name string, d *caddyfile.Dispenser) error {
	tokens := d.RemainingArgsAsTokens()
	if d.NextBlock(d.Nesting()) {
		return errors.New("takes no block")
	}
	if err := checkQuotes(tokens); err != nil {
		return err
	}
	args := textsOf(tokens)
	switch name {
	case "template":
		return h.addTemplate(args)
	case "formats":
		h.Formats = args
		if len(args) == 0 {
			return fmt.Errorf("needs at least one of %s", strings.Join(represent.FormatNames(), ", "))
		}
		return nil
	case "precompressed":
		h.Precompressed = args
		if len(args) == 0 {
			h.Precompressed = []string{"br", "zstd", "gzip"} // in the order of file_server
		}
		return nil
	case "report":
		h.Report = true
		return checkFlag(args)
	case "dry_run":
		h.DryRun = true
		return checkFlag(args)
	}
	for _, o := range h.valueOptions() {
		if o.name == name {
			return o.set(args)
		}
	}
	panic("the option " + name + " has neither a row in valueOptions nor a case here")
}

// addTemplate adds the files of a format, which is html unless its name comes first. caddy adapt does not read them.
func (h *Handler) addTemplate(args []string) error {
	format := "html"
	files := args
	if len(args) > 0 && slices.Contains(represent.FormatNames(), args[0]) {
		format = args[0]
		files = args[1:]
	}
	switch {
	case len(files) == 0:
		return errors.New("needs a file, as in template 404.html; for one with the name of a format, write ./ before it")
	case len(files) > 1 && !strings.ContainsAny(files[0], `./\{`):
		return fmt.Errorf("has the unknown format %q; the formats are %s; for a file of that name, write ./%[1]s",
			files[0], strings.Join(represent.FormatNames(), ", "))
	case h.Template[format] != nil:
		return fmt.Errorf("is given twice for %s; write all files of a format in one line", format)
	}
	if h.Template == nil {
		h.Template = make(map[string][]string)
	}
	h.Template[format] = files
	return nil
}

func checkFlag(args []string) error {
	if len(args) > 0 {
		return errors.New("takes no argument, and its line turns it on; to turn it off, leave out the line")
	}
	return nil
}

// set sets the value of an option.
func (o *valueOption) set(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("takes one argument, not %d; a value that has spaces needs double quotes", len(args))
	}
	if args[0] == "" && o.name != "context_path" {
		// JSON omits an empty value, so the default applies. Only for context_path is the default the empty value.
		return errors.New("is empty; give it a value, or leave it out for the default")
	}
	*o.value = args[0]
	return nil
}
