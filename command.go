package notfound

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/caddy-notfound/notfound/internal/page"
	"github.com/caddy-notfound/notfound/internal/report"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name: "not-found",
		Usage: "[--listen <addr>] [--context-path <path>] [--base-url <url>] [--uri <text>] [--footer <text>] [--formats <format,...>] [--template <file>]\n" +
			"    [--trusted-proxies <range,...>] [--health-path <path>] [--report [--admin <address>]] [--access-log] [--debug]",
		Short: "Spins up a server that answers every request with a 404 page",
		Long: `
An HTTP server that answers every request with one 404 page: the default
backend of an ingress or a load balancer, a stub while a site is down for
maintenance, or a test double.

The page is plain text, HTML, Markdown, JSON, problem details or XML,
whichever the client's Accept header prefers. --context-path, --base-url,
--uri, --footer, --formats and --template are the options of the not_found
directive; --formats takes a comma-separated list.

The scheme and the host of the address on the page are those of the request.
With --trusted-proxies, X-Forwarded-Proto and X-Forwarded-Host count if the
request comes from one of these IP ranges (CIDRs, or private_ranges). The path
and the query are those of the request, too, unless another proxy asks for the
page under an address of its own. Then --uri says where the visitor's address
is, as in --uri {http.request.uri.query.url}.

With --health-path, GET requests for that path get an empty 200, for
readiness and liveness probes.

The admin API is disabled, unless --report counts which addresses are
missed: then it serves the report, which 'caddy not-found report' prints. It
listens at Caddy's default address, or at --admin, which may be a Unix socket,
as in unix//run/not-found.sock. Where something answers already, such as
another Caddy, it does not start.

A request that takes longer than 10 seconds to arrive is not waited for, and
a signal to stop ends every exchange within 5 seconds.
`,
		CobraFunc: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.StringP("listen", "l", ":8080", "The address to which to bind the listener")
			flags.String("context-path", "", "The path of the application that the page speaks for")
			flags.String("base-url", "", "The URL that the address on the page begins with")
			flags.String("uri", "", "The address on the page, by placeholders; it believes whoever sends it")
			flags.String("footer", "", "The last line of the page")
			flags.StringSlice("formats", nil, "The representations on offer: "+strings.Join(page.Formats(), ", "))
			flags.String("template", "", "An html/template file for the HTML representation")
			flags.StringSlice("trusted-proxies", nil, "The IP ranges of proxies whose X-Forwarded-* header fields count")
			flags.String("health-path", "", "The path of a health check, which gets an empty 200")
			flags.Bool("report", false, "Report which addresses are missed, on the admin API")
			flags.String("admin", "", "The address of the admin API, if not the default; only with --report")
			flags.Bool("access-log", false, "Enable the access log")
			flags.BoolP("debug", "v", false, "Enable more verbose debug-level logging")
			cmd.RunE = caddycmd.WrapCommandFuncForCobra(cmdNotFound)
			cmd.AddCommand(reportCommand(), exportCommand())
		},
	})
}

func reportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report [--address <interface>]... [--config <path> [--adapter <name>]] [--limit <n>] [--link own|other|any] [--host <host>] [--json] [--reset] [<file>...]",
		Short: "Prints the report of missing addresses",
		Long: `
Prints which addresses a running Caddy misses most: how often, why, how many
requests came from links on pages of the same host, which are broken links of
your own, how many from other links, and the last of the own links, or of the
others if there are none. The handlers that count have the option report.

Unanswered, error and response are the causes of the pages that were written.
A 404 response that passed is replaceable if 'replace pages' would have
replaced it, and else passed.

The report comes from Caddy's admin API, at the default address, at
--address, or at the one in the config file. A range of counts, as in 39-42,
means that the address may have taken over a part of another one's counter.

With several --address flags, or files with reports in JSON (- is standard
input), the reports of many Caddys become one. If one of them cannot be read,
nothing is printed. A report from which --limit, --link or --host left
addresses out cannot be merged; write a whole one with --json --limit 0.

With --link own, only addresses that an own link led to are printed; a --link
may also be other or any. A --host without a port, such as localhost or ::1, is
that host on every port.

With --reset, counting begins again, once every Caddy has been asked. No
request is lost: what is printed is the whole report up to that moment, and so
--limit, --link, --host and files are refused. What cannot be printed is
written to a file for each Caddy, which the error names.
`,
		Example: "caddy not-found report --link own --limit 10\n" +
			"kubectl exec pod-1 -- caddy not-found report --json --limit 0 | caddy not-found report --address localhost:2019 -",
		Args: cobra.ArbitraryArgs,
		RunE: caddycmd.WrapCommandFuncForCobra(cmdReport),
	}
	flags := cmd.Flags()
	flags.StringArray("address", nil, "The address of the administration API, if not the default; may be given several times")
	flags.StringP("config", "c", "", "The configuration file with the address of the administration API")
	flags.StringP("adapter", "a", "", "The name of the config adapter to apply to the configuration file")
	flags.IntP("limit", "n", 20, "How many addresses to print; 0 is all of them")
	flags.String("link", "", "Only addresses that such a link led to: own, other or any")
	flags.String("host", "", "Only addresses of this host")
	flags.Bool("json", false, "Print JSON instead of a table")
	flags.Bool("reset", false, "Reset the report after printing it, whole")
	return cmd
}

func exportCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "export-template",
		Short:   "Exports the built-in HTML page, as a starting point for a template",
		Example: "caddy not-found export-template > 404.html",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), page.BuiltIn)
			return err
		},
	}
}

// A client that stalls in its request gets its page after readTimeout, and one that stalls in anything holds up the exit of
// the process for gracePeriod, which is less than `docker stop` and Kubernetes wait.
const (
	readTimeout = 10 * time.Second
	gracePeriod = 5 * time.Second
)

func cmdNotFound(fl caddycmd.Flags) (int, error) {
	caddy.TrapSignals()
	config, err := notFoundConfig(fl)
	if err == nil && !config.Admin.Disabled {
		err = checkUnused(config.Admin.Listen)
	}
	if err == nil {
		err = caddy.Run(config)
	}
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	select {}
}

// checkUnused refuses an address where something answers. Caddy would listen there as well, and `caddy reload` and
// `caddy stop` would reach the one or the other.
func checkUnused(admin string) error {
	addr, err := parseAddress(admin)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	host, _, _ := strings.Cut(addr.JoinHostPort(0), "|") // a Unix socket may have permissions
	conn, err := net.DialTimeout(addr.Network, host, time.Second)
	if err != nil {
		return nil
	}
	conn.Close()
	return fmt.Errorf("admin: at %s, something answers already, such as another Caddy; "+
		"use another address, as in --admin localhost:2020 or --admin unix//run/not-found.sock", admin)
}

// parseAddress parses an address as Caddy does, but neither one without a port nor a URL.
func parseAddress(s string) (caddy.NetworkAddress, error) {
	addr, err := caddy.ParseNetworkAddress(s)
	if err != nil {
		return addr, fmt.Errorf("%q is not an address: %w", s, err)
	}
	_, _, port, _ := caddy.SplitNetworkAddress(s)
	if strings.Contains(s, "://") || port == "" && !addr.IsUnixNetwork() && !addr.IsFdNetwork() {
		return addr, fmt.Errorf("%q is not an address; write it as host:port, or as in unix//run/caddy.sock", s)
	}
	return addr, nil
}

// notFoundConfig returns the config of a server that answers every request with the page.
func notFoundConfig(fl caddycmd.Flags) (*caddy.Config, error) {
	if fl.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q; all options are flags", fl.Arg(0))
	}
	handler, err := handlerOfFlags(fl)
	if err != nil {
		return nil, err
	}
	server := &caddyhttp.Server{
		Listen:            []string{fl.String("listen")},
		ReadHeaderTimeout: caddy.Duration(readTimeout),
		ReadTimeout:       caddy.Duration(readTimeout),
		IdleTimeout:       caddy.Duration(30 * time.Second),
		AutoHTTPS:         &caddyhttp.AutoHTTPSConfig{Disabled: true},
	}
	if _, err := parseAddress(server.Listen[0]); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	admin := caddy.DefaultAdminListen
	if fl.Changed("admin") {
		if !handler.Report {
			return nil, errors.New("admin: the admin API only serves the report; add --report, or leave --admin out")
		}
		admin = fl.String("admin")
		if _, err := parseAddress(admin); err != nil {
			return nil, fmt.Errorf("admin: %w", err)
		}
	}
	if fl.Changed("trusted-proxies") {
		ranges, _ := fl.GetStringSlice("trusted-proxies")
		if len(ranges) == 0 {
			ranges = []string{""} // which is refused
		}
		source := new(caddyhttp.StaticIPRange)
		for _, r := range ranges {
			if r == "private_ranges" {
				source.Ranges = append(source.Ranges, caddyhttp.PrivateRangesCIDR()...)
				continue
			}
			if _, err := caddyhttp.CIDRExpressionToPrefix(r); err != nil {
				return nil, fmt.Errorf("trusted-proxies: %q is not an IP range; use CIDR, for example 10.0.0.0/8, or private_ranges", r)
			}
			source.Ranges = append(source.Ranges, r)
		}
		server.TrustedProxiesRaw = caddyconfig.JSONModuleObject(source, "source", "static", nil)
	}
	if fl.Changed("health-path") {
		path := fl.String("health-path")
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("health-path: %q does not begin with a slash; write it as in /healthz", path)
		}
		server.Routes = append(server.Routes, caddyhttp.Route{
			MatcherSetsRaw: caddyhttp.RawMatcherSets{{
				"path":   caddyconfig.JSON(caddyhttp.MatchPath{path}, nil),
				"method": caddyconfig.JSON(caddyhttp.MatchMethod{http.MethodGet, http.MethodHead}, nil),
			}},
			HandlersRaw: []json.RawMessage{caddyconfig.JSONModuleObject(caddyhttp.StaticResponse{StatusCode: "200"}, "handler", "static_response", nil)},
			Terminal:    true,
		})
	}
	server.Routes = append(server.Routes, caddyhttp.Route{
		HandlersRaw: []json.RawMessage{caddyconfig.JSONModuleObject(handler, "handler", "not_found", nil)},
	})
	if fl.Bool("access-log") {
		server.Logs = new(caddyhttp.ServerLogConfig)
	}

	persist := false
	config := &caddy.Config{
		Admin: &caddy.AdminConfig{
			Disabled: !handler.Report,
			Listen:   admin,
			Config:   &caddy.ConfigSettings{Persist: &persist},
		},
		AppsRaw: caddy.ModuleMap{
			"http": caddyconfig.JSON(caddyhttp.App{
				Servers:     map[string]*caddyhttp.Server{"not_found": server},
				GracePeriod: caddy.Duration(gracePeriod),
			}, nil),
			// nothing is stored, so the file system may be read-only
			"tls": caddyconfig.JSON(&caddytls.TLS{DisableStorageClean: true}, nil),
		},
	}
	if fl.Bool("debug") {
		config.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{
			"default": {BaseLog: caddy.BaseLog{Level: zapcore.DebugLevel.CapitalString()}},
		}}
	}
	return config, nil
}

// handlerOfFlags returns the handler with the options that are given, checked as those of the directive are.
func handlerOfFlags(fl caddycmd.Flags) (*Handler, error) {
	h := &Handler{Report: fl.Bool("report")}
	for _, flag := range []string{"context-path", "base-url", "uri", "footer", "template"} {
		if fl.Changed(flag) {
			if err := h.setOption(strings.ReplaceAll(flag, "-", "_"), []string{fl.String(flag)}); err != nil {
				return nil, err
			}
		}
	}
	if fl.Changed("formats") {
		formats, _ := fl.GetStringSlice("formats")
		if err := h.setOption("formats", formats); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func cmdReport(fl caddycmd.Flags) (int, error) {
	if err := printMissed(fl); err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	return caddy.ExitCodeSuccess, nil
}

// printMissed prints one report of the reports of all Caddys and files. With --reset, every Caddy has been asked before the
// first one begins again.
func printMissed(fl caddycmd.Flags) error {
	filter, err := filterOfFlags(fl)
	if err != nil {
		return err
	}
	addresses, err := adminAddresses(fl)
	if err != nil {
		return err
	}
	sources := slices.Concat(addresses, fl.Args())
	for i, source := range sources {
		if slices.Contains(sources[:i], source) {
			return fmt.Errorf("%q is given twice, and would be counted twice; give it once", source)
		}
	}

	var reports []report.Report
	for _, address := range addresses {
		r, _, err := askReport(address, http.MethodGet)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	for _, file := range fl.Args() {
		r, err := readReport(file)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	r, err := report.Merge(reports...)
	if err != nil {
		return fmt.Errorf("merging the reports: %w", err)
	}
	if fl.Bool("reset") {
		return printAndReset(addresses, fl.Bool("json"))
	}
	filter.Apply(&r)
	return printReport(r, fl.Bool("json"), terminalWidth())
}

// filterOfFlags returns the filter of the flags. With --reset, there is none: what it left out would be lost.
func filterOfFlags(fl caddycmd.Flags) (filter report.Filter, err error) {
	limit, reset := fl.Int("limit"), fl.Bool("reset")
	if limit < 0 {
		return filter, fmt.Errorf("limit: %d is negative; 0 is all addresses", limit)
	}
	if reset && fl.NArg() > 0 {
		return filter, fmt.Errorf("reset: %q is a file, which cannot begin again; leave it out", fl.Arg(0))
	}
	if reset && (fl.Changed("limit") && limit > 0 || fl.Changed("link") || fl.Changed("host")) {
		return filter, errors.New("reset: it prints the whole report, because what it left out would be lost; leave out --limit, --link and --host")
	}
	if limit > 0 {
		err = filter.Set("limit", strconv.Itoa(limit))
	}
	for _, name := range []string{"link", "host"} {
		if err == nil && fl.Changed(name) {
			err = filter.Set(name, fl.String(name))
		}
	}
	return filter, err
}

// adminAddresses returns the addresses of the admin APIs that are asked.
func adminAddresses(fl caddycmd.Flags) ([]string, error) {
	addresses, _ := fl.GetStringArray("address")
	if fl.Changed("address") && len(addresses) == 0 {
		addresses = []string{""} // which is refused
	}
	for _, address := range addresses {
		if _, err := parseAddress(address); err != nil {
			return nil, fmt.Errorf("address: %w", err)
		}
	}
	if len(addresses) > 0 || fl.NArg() > 0 && !fl.Changed("config") {
		return addresses, nil
	}
	address, err := caddycmd.DetermineAdminAPIAddress("", nil, fl.String("config"), fl.String("adapter"))
	if err != nil {
		return nil, fmt.Errorf("determining the address of the admin API: %w", err)
	}
	return []string{address}, nil
}

// readReport reads the report in a file, or in standard input.
func readReport(file string) (report.Report, error) {
	var body []byte
	var err error
	if file == "-" {
		file = "standard input"
		body, err = io.ReadAll(os.Stdin)
	} else {
		body, err = os.ReadFile(file)
	}
	if err != nil {
		return report.Report{}, fmt.Errorf("reading a report: %w", err)
	}
	r, err := report.Parse(body)
	if err != nil {
		return report.Report{}, fmt.Errorf("the report in %s: %w", file, err)
	}
	return r, nil
}

// printAndReset has the reports begin again, and prints what they were by then. What it cannot print is in files of its own.
func printAndReset(addresses []string, asJSON bool) error {
	var reports []report.Report
	bodies := make(map[string][]byte) // by address
	err := func() error {
		for _, address := range addresses {
			r, body, err := askReport(address, http.MethodDelete)
			signal.Ignore(os.Interrupt, syscall.SIGPIPE) // nothing but this process has the report any more
			bodies[address] = body
			if err != nil {
				return err
			}
			reports = append(reports, r)
		}
		r, err := report.Merge(reports...)
		if err != nil {
			return fmt.Errorf("merging the reports: %w", err)
		}
		return printReport(r, asJSON, 0)
	}()
	if err == nil {
		return nil
	}
	for _, address := range addresses {
		if len(bodies[address]) == 0 {
			continue
		}
		file, saveErr := saveReport(bodies[address])
		if saveErr != nil {
			err = fmt.Errorf("%w; saving the report of %s, now that counting has begun again: %w", err, address, saveErr)
		} else {
			err = fmt.Errorf("%w; at %s, counting has begun again, and what was counted before is in %s", err, address, file)
		}
	}
	return err
}

// saveReport writes a report to a file of its own.
func saveReport(body []byte) (name string, err error) {
	f, err := os.CreateTemp("", "not-found-report-*.json")
	if err != nil {
		return "", err
	}
	_, err = f.Write(body)
	return f.Name(), errors.Join(err, f.Close())
}

// askReport gets the report of a running Caddy, parsed and as it came.
func askReport(address, method string) (r report.Report, body []byte, err error) {
	body, err = askAdmin(address, method)
	if err != nil {
		return r, body, err
	}
	if r, err = report.Parse(body); err != nil {
		err = fmt.Errorf("the report of %s: %w", address, err)
	}
	return r, body, err
}

// askAdmin asks a running Caddy's admin API. If its answer breaks off, it returns what has come of it, too.
func askAdmin(addr, method string) ([]byte, error) {
	resp, err := caddycmd.AdminAPIRequest(addr, method, reportPath, nil, nil)
	if err != nil {
		// the error ends with the body of the response, which is JSON if it is the API's
		var answer caddy.APIError
		if _, body, ok := strings.Cut(err.Error(), ": {"); ok && json.Unmarshal([]byte("{"+body), &answer) == nil && answer.Message != "" {
			return nil, fmt.Errorf("the admin API at %s: %s", addr, report.Printable(answer.Message))
		}
		return nil, fmt.Errorf("asking the admin API at %s, which a Caddy with not_found should serve: %w", addr, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		err = fmt.Errorf("reading the report of %s: %w", addr, err)
	}
	return body, err
}

// terminalWidth returns the width of the terminal in columns. Where there is no terminal, nothing is cut.
func terminalWidth() int {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// printReport prints a report in one piece, or fails.
func printReport(r report.Report, asJSON bool, width int) (err error) {
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "\t")
		err = e.Encode(r)
	} else {
		err = r.WriteTable(os.Stdout, width)
	}
	if err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}
