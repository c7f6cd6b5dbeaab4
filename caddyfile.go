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
	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/page"
)

func init() {
	httpcaddyfile.RegisterDirective("not_found", parseCaddyfile)

	// After header and log_append, which apply to a 404 page as to any response, and before everything that can
	// end in a 404: try_files, forward_auth, intercept, handle blocks, the handlers. Before templates above all,
	// which must never execute a page that echoes what a client sent.
	httpcaddyfile.RegisterDirectiveOrder("not_found", httpcaddyfile.Before, "redir")

	command.Register(checkTemplate)
}

// parseCaddyfile makes the route of a not_found directive.
func parseCaddyfile(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // consume directive name
	args := h.RemainingArgs()
	if len(args) > 1 {
		return nil, h.WrapErr(errArguments(args))
	}
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
	if len(args) > 0 && isPageFile(args[0]) {
		const mistake = "%s is a matcher here: not_found would answer at that address alone; %s"
		switch {
		case reflect.DeepEqual(nf, new(Handler)): // there are no options
			return nil, h.Errf(mistake, args[0], useTemplate)
		case nf.hasFile(path.Base(args[0])):
			return nil, h.Errf(mistake, args[0], "leave it out")
		}
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

// isPageFile reports whether a matcher is the exact path of a file of HTML. Other servers take the page's file there.
func isPageFile(matcher string) bool {
	isExact := strings.HasPrefix(matcher, "/") && !strings.Contains(matcher, "*")
	extension := path.Ext(matcher)
	return isExact && (extension == ".html" || extension == ".htm")
}

// hasFile reports whether a file of the HTML page has this name.
func (h *Handler) hasFile(name string) bool {
	return slices.ContainsFunc(h.Template["html"], func(file string) bool { return path.Base(file) == name })
}

// errArguments says what to write in place of arguments that are not one matcher.
func errArguments(args []string) error {
	last := args[len(args)-1]
	if last == "" {
		return errors.New(`an argument is empty, as "{$NAME}" is if the variable is not set; ` +
			"not_found takes one matcher and a block of options")
	}
	hint := fmt.Sprintf(useMatcher, "not path /api/*") // an example
	isOneName := len(args) == 1 && last[0] != '!'
	switch {
	case slices.Contains(optionNames, args[0]):
		hint = fmt.Sprintf("%s is an option, which has a line of its own in the block, between { and }", args[0])
	case isOneName && strings.HasSuffix(last, "/*"): // its slash is missing
		hint = fmt.Sprintf(useMatcher, "path /"+last)
	case isOneName || isPageFile("/"+last):
		hint = useTemplate
	case strings.HasPrefix(args[0], "/"):
		hint = fmt.Sprintf(useMatcher, "path "+strings.Join(args, " "))
	}
	return fmt.Errorf("unexpected argument '%s': not_found takes one matcher and a block of options; %s", last, hint)
}

// What to write instead. A hint is one line, because a log in JSON has it, too.
const (
	useTemplate = "for a page of your own in the site's root, write the line `template {vars.root}/404.html` " +
		"into a block of not_found"
	useMatcher = "name the matcher in a line before it, `@pages %s`, and write `not_found @pages`"
)

// groupOf returns the name of a directive's block. Of the handlers with this name, only the first that matches takes
// effect. Caddy's own route groups would do the same, but Caddy (httpcaddyfile.consolidateRoutes) merges the routes of
// a group that have the same matcher, so a directive from a snippet would take effect in place of the site's own. They
// also silence a named route that is invoked twice, and cost each proxied request 1.3 to 1.9 %. A block is identified
// by its BlockState map (httpcaddyfile.Helper): each nested block has its own copy. All sites have the State as
// theirs, and so one name: a request is for one site.
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

// block is a block of a Caddyfile with a directive in it.
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
//	    report
//	    dry_run
//	}
//
// Every option is optional, and may be given once. keep may be given several times: one match is enough. template may
// be given once for each format.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if args := d.RemainingArgs(); len(args) > 0 {
		return d.WrapErr(errArguments(args))
	}

	given := make(map[string]int) // the line of each option
	for d.NextBlock(0) {
		option := d.Val()
		if !slices.Contains(optionNames, option) {
			return d.WrapErr(errUnknown(option))
		}
		if option == "keep" {
			if err := h.addKeep(d.NewFromNextSegment()); err != nil {
				return err
			}
			continue
		}
		if before, ok := given[option]; ok && option != "template" {
			return d.Errf("option '%s' is given twice, first in line %d; leave one of the two out", option, before)
		}
		given[option] = d.Line()

		args := d.RemainingArgsAsTokens()
		if d.NextBlock(d.Nesting()) {
			return d.Errf("option '%s' takes no block", option)
		}
		err := checkQuotes(option, args)
		if err == nil {
			err = h.setOption(option, textsOf(args))
		}
		if err != nil {
			return d.WrapErr(err)
		}
	}
	return nil
}

func textsOf(tokens []caddyfile.Token) []string {
	var texts []string
	for _, token := range tokens {
		texts = append(texts, token.Text)
	}
	return texts
}

// checkQuotes refuses quotes that a Caddyfile does not treat as such: around several words, and single ones around one.
// Quotes within a Caddyfile's own are part of the value.
func checkQuotes(option string, args []caddyfile.Token) error {
	args = slices.DeleteFunc(slices.Clone(args), caddyfile.Token.Quoted)
	value := strings.Join(textsOf(args), " ")
	quotes := "'"
	if len(args) > 1 {
		quotes = "'“”„‘’«»" // one word in others may be meant so
	}
	text := strings.Trim(value, quotes)
	isQuoted := !strings.HasSuffix(value, text) && !strings.HasPrefix(value, text)
	written := `"` + text + `"`
	if option == "template" { // has a format and several paths, of which any may be quoted
		isQuoted = strings.Contains(" "+value, " '")
		written = strings.ReplaceAll(value, "'", `"`)
	}
	switch {
	case value != "" && text == "":
		return fmt.Errorf("option '%s': %s is no value, but quotes that a Caddyfile does not know; "+
			"write a value in double quotes, or leave the option out", option, value)
	case isQuoted:
		return fmt.Errorf("option '%s': the quotes in %s are not those of a Caddyfile; write %s, or use backticks",
			option, value, written)
	}
	return nil
}

// addKeep adds a response matcher, on the option's line or in its block.
func (h *Handler) addKeep(d *caddyfile.Dispenser) error {
	matchers := make(map[string]caddyhttp.ResponseMatcher)
	if err := caddyhttp.ParseNamedResponseMatcher(d, matchers); err != nil {
		if strings.Contains(err.Error(), "unrecognized response matcher") {
			return fmt.Errorf("keep takes the matchers header and status; "+
				"for a path, write `replace none` into the block of a `not_found /path/*`: %w", err)
		}
		return fmt.Errorf("keep takes the matchers header and status, as in header X-Error-Page *: %w", err)
	}
	if err := judge.CheckKeep(matchers["keep"]); err != nil {
		d.Reset()
		d.Next() // the error names the option's line
		return d.Errf("keep: %v", err)
	}
	h.Keep = append(h.Keep, matchers["keep"])
	return nil
}

// checkTemplate checks the files of a template, whose arguments are as in a Caddyfile. It returns the paths of the
// files that it has read, and those that only a request names.
func checkTemplate(args []string) (read, ofRequests []string, err error) {
	h := &Handler{logger: zap.NewNop()} // the mistakes are returned
	if err := h.addTemplate(expandShorthands(args)); err != nil {
		return nil, nil, err
	}
	m, err := page.NewMaker(h.pageOptions())
	if err != nil {
		return nil, nil, err
	}
	return m.Check()
}

// fullName returns the full name of a placeholder, which may be a shorthand.
func fullName(name string) string {
	return strings.Trim(expandShorthands([]string{"{" + name + "}"})[0], "{}")
}

// expandShorthands expands the Caddyfile's shorthands of placeholders.
func expandShorthands(args []string) []string {
	var segment caddyfile.Segment
	for _, arg := range args {
		segment = append(segment, caddyfile.Token{Text: arg})
	}
	httpcaddyfile.NewShorthandReplacer().ApplyToSegment(&segment)
	return textsOf(segment)
}

// setOption sets an option. It checks a value without placeholders, so that the error has a line.
func (h *Handler) setOption(name string, args []string) error {
	switch name {
	case "template":
		return h.addTemplate(args)
	case "formats":
		return h.setFormats(args)
	case "report":
		h.Report = true
		return checkFlag(name, args)
	case "dry_run":
		h.DryRun = true
		return checkFlag(name, args)
	}
	for _, o := range h.valueOptions() {
		if o.name == name {
			return h.setValue(&o, args)
		}
	}
	panic("the option " + name + " has neither a row in valueOptions nor a case here")
}

func errUnknown(name string) error {
	return fmt.Errorf("unknown option '%s'; the options are %s; "+
		"if it is a directive of the site, a } is missing before it", name, strings.Join(optionNames, ", "))
}

// addTemplate adds the row of files of a format, perhaps after its name. caddy adapt does not read them.
func (h *Handler) addTemplate(args []string) error {
	format := "html"
	files := args
	if len(args) > 0 && slices.Contains(page.Formats(), args[0]) {
		format = args[0]
		files = args[1:]
	}
	switch {
	case len(args) == 0:
		return errors.New("option 'template' needs a file, as in template 404.html")
	case len(files) > 1 && !strings.ContainsAny(files[0], `./\{`):
		return fmt.Errorf("template: unknown format %q; the formats are %s; for a file of that name, write ./%[1]s",
			files[0], strings.Join(page.Formats(), ", "))
	case len(files) == 0:
		return fmt.Errorf("template %s needs a file; for a file of that name, write ./%[1]s", format)
	case h.Template[format] != nil:
		return fmt.Errorf("option 'template' is given twice for %s; write all files of a format in one line", format)
	}
	if h.Template == nil {
		h.Template = make(map[string][]string)
	}
	h.Template[format] = files
	return h.checkTogether()
}

func (h *Handler) setFormats(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("option 'formats' needs at least one of %s", strings.Join(page.Formats(), ", "))
	}
	h.Formats = args
	if err := page.CheckFormats(args); err != nil {
		return fmt.Errorf("formats: %w", err)
	}
	return h.checkTogether()
}

func checkFlag(name string, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("option '%s' takes no argument, and its line turns it on; to turn it off, leave out the line", name)
	}
	return nil
}

func (h *Handler) setValue(o *valueOption, args []string) error {
	switch {
	case len(args) > 1 && !o.placeholders: // one of a few words
		return fmt.Errorf("%s: %w", o.name, o.check(strings.Join(args, " ")))
	case len(args) > 1:
		return fmt.Errorf("option '%s' takes one argument, not %d; quote a value that has spaces", o.name, len(args))
	case len(args) == 0:
		return fmt.Errorf("option '%s' takes one argument, not 0; "+
			"{$NAME} gives no argument if the variable is empty or not set", o.name)
	case args[0] == "" && o.name != "context_path":
		// JSON omits an empty value, and only for the root context that means the same
		return fmt.Errorf("option '%s' is empty; give it a value, or leave it out for the default", o.name)
	}
	if err := page.CheckNoBody(args[0]); err != nil {
		return fmt.Errorf("%s: %w", o.name, err)
	}
	*o.value = args[0]
	if !o.placeholders || !strings.Contains(args[0], "{") {
		if err := o.check(args[0]); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return h.checkTogether()
}
