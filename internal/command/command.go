// Package command has `caddy not-found`, a server that answers every request with the page, and its subcommands.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/caddy-notfound/notfound/internal/page"
)

// NewHandler returns a not_found handler with options, each of which is its name and its arguments, as in a Caddyfile.
type NewHandler func(options [][]string) (any, error)

// Register registers the command. checkTemplate checks the file of a template, perhaps after its format.
func Register(newHandler NewHandler, checkTemplate func(args []string) error) {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name: "not-found",
		Usage: "[--listen <addr>] [--message <text>] [--context-path <path>] [--base-url <url>] [--uri <text>]\n" +
			"    [--footer <text>] [--formats <format,...>] [--template [<format>=]<file>]...\n" +
			"    [--trusted-proxies <range,...>] [--health-path <path>] [--report [--admin <address>]] [--access-log] [--debug]",
		Short: "Spins up a server that answers every request with a 404 page",
		Long: `
An HTTP server that answers every request with one 404 page: the default
backend of an ingress or a load balancer, or a test double.

The page is plain text, HTML, Markdown, JSON, problem details or XML,
whichever the client's Accept header prefers. --message, --context-path,
--base-url, --uri, --footer, --formats and --template are the options of the
not_found directive; --formats takes a comma-separated list. --template may be
repeated, with the format before the file, as in --template json=404.json.

The address on the page is that of the request. X-Forwarded-Proto and
X-Forwarded-Host count if the request comes from one of the --trusted-proxies
(CIDRs, or private_ranges). Where another proxy asks for the page under an
address of its own, --uri says where the visitor's address is, as in
--uri {http.request.uri.query.url}.

The admin API is disabled, unless --report has it serve the report of missing
addresses, which 'caddy not-found report' prints.

The command does not start if another server, such as another Caddy, answers
at its address. A client has 10 seconds to send its request. A signal to stop
ends every exchange within 5 seconds.
`,
		CobraFunc: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.StringP("listen", "l", ":8080", "The address to which to bind the listener")
			flags.String("message", "", "The message on the page, instead of the one with the context path")
			flags.String("context-path", "", "The path of the application that the page speaks for")
			flags.String("base-url", "", "The URL that the address on the page begins with")
			flags.String("uri", "", "The address on the page, as a placeholder for what another proxy sends")
			flags.String("footer", "", "The last line of the page")
			flags.StringSlice("formats", nil, "The representations on offer: "+strings.Join(page.Formats(), ", "))
			flags.StringArray("template", nil,
				"A template file for the HTML representation, or for another, as in json=404.json")
			flags.StringSlice("trusted-proxies", nil, "The IP ranges of proxies whose X-Forwarded-* header fields count")
			flags.String("health-path", "", "The path of readiness and liveness probes, which get an empty 200")
			flags.Bool("report", false, "Report which addresses are missed, on the admin API")
			flags.String("admin", caddy.DefaultAdminListen,
				"The address of the admin API, as in unix//run/not-found.sock; only with --report")
			flags.Bool("access-log", false, "Enable the access log")
			flags.BoolP("debug", "v", false, "Enable more verbose debug-level logging")
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				return serve(caddycmd.Flags{FlagSet: cmd.Flags()}, newHandler)
			}
			cmd.AddCommand(reportCommand(), &cobra.Command{
				Use:     "export-template [<format>]",
				Short:   "Exports the built-in page, in HTML or another format, as a starting point for a template",
				Example: "caddy not-found export-template > 404.html",
				Args:    cobra.MaximumNArgs(1),
				RunE: func(cmd *cobra.Command, args []string) error {
					source, err := page.BuiltIn(append(args, "html")[0])
					if err != nil {
						return err
					}
					_, err = io.WriteString(cmd.OutOrStdout(), source)
					return err
				},
			}, &cobra.Command{
				Use:     "check-template [<format>] <file>",
				Short:   "Checks a template for HTML or another format, as a reload of the config does",
				Example: "caddy not-found check-template 404.html",
				Args:    cobra.RangeArgs(1, 2),
				RunE: func(cmd *cobra.Command, args []string) error {
					err := checkTemplate(args)
					if err == nil {
						fmt.Fprintln(cmd.OutOrStdout(), "Valid template")
					}
					return err
				},
			})
		},
	})
}

// A client that stalls in its request gets its page after readTimeout. A stalled client delays the exit of the
// process by gracePeriod, less than `docker stop` and Kubernetes wait.
const (
	readTimeout = 10 * time.Second
	gracePeriod = 5 * time.Second
)

// serve runs the server.
func serve(fl caddycmd.Flags, newHandler NewHandler) error {
	caddy.TrapSignals()
	config, err := configOf(fl, newHandler)
	if err == nil {
		err = checkUnused("listen", fl.String("listen"), "--listen :8081")
	}
	if err == nil && !config.Admin.Disabled {
		err = checkUnused("admin", config.Admin.Listen, "--admin localhost:2020 or --admin unix//run/not-found.sock")
	}
	if err == nil {
		err = caddy.Run(config)
	}
	if err != nil {
		return err
	}
	select {}
}

// checkUnused refuses an address where something answers. Caddy would share it, and clients, `caddy reload` and `caddy
// stop` would reach one or the other.
func checkUnused(flag, address, instead string) error {
	addr, _ := caddy.ParseNetworkAddress(address)        // which configOf has checked
	host, _, _ := strings.Cut(addr.JoinHostPort(0), "|") // a Unix socket may have permissions
	conn, err := net.DialTimeout(addr.Network, host, time.Second)
	if err != nil {
		return nil
	}
	conn.Close()
	return fmt.Errorf("%s: at %s, something answers already, such as another Caddy; use another address, as in %s",
		flag, address, instead)
}

// configOf returns the config of a server that answers every request with the page.
func configOf(fl caddycmd.Flags, newHandler NewHandler) (*caddy.Config, error) {
	server, err := serverOf(fl, newHandler)
	if err != nil {
		return nil, err
	}
	admin, err := adminOf(fl)
	if err != nil {
		return nil, err
	}
	http := caddyhttp.App{
		Servers:     map[string]*caddyhttp.Server{"not_found": server},
		GracePeriod: caddy.Duration(gracePeriod),
	}
	tls := &caddytls.TLS{DisableStorageClean: true} // nothing is stored, so the file system may be read-only
	config := &caddy.Config{
		Admin: admin,
		AppsRaw: caddy.ModuleMap{
			"http": caddyconfig.JSON(http, nil),
			"tls":  caddyconfig.JSON(tls, nil),
		},
	}
	if fl.Bool("debug") {
		log := &caddy.CustomLog{BaseLog: caddy.BaseLog{Level: "DEBUG"}}
		config.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": log}}
	}
	return config, nil
}

// adminOf returns the admin API, which is disabled without a report.
func adminOf(fl caddycmd.Flags) (*caddy.AdminConfig, error) {
	reports := fl.Bool("report")
	if !reports && fl.Changed("admin") {
		return nil, errors.New("admin: the admin API only serves the report; add --report, or leave --admin out")
	}
	if reports { // without a report, it may be an unused CADDY_ADMIN
		if _, err := parseAddress("admin", fl.String("admin")); err != nil {
			return nil, err
		}
	}
	return &caddy.AdminConfig{
		Disabled: !reports,
		Listen:   fl.String("admin"),
		Config:   &caddy.ConfigSettings{Persist: new(false)},
	}, nil
}

func serverOf(fl caddycmd.Flags, newHandler NewHandler) (*caddyhttp.Server, error) {
	listen := fl.String("listen")
	server := &caddyhttp.Server{
		Listen:            []string{listen},
		ReadHeaderTimeout: caddy.Duration(readTimeout),
		ReadTimeout:       caddy.Duration(readTimeout),
		AutoHTTPS:         &caddyhttp.AutoHTTPSConfig{Disabled: true},
	}
	handler, err := newHandler(optionsOf(fl))
	if err != nil {
		return nil, err
	}
	if _, err := parseAddress("listen", listen); err != nil {
		return nil, err
	}
	if fl.Changed("trusted-proxies") {
		ranges, _ := fl.GetStringSlice("trusted-proxies")
		source, err := rangesOf(ranges)
		if err != nil {
			return nil, err
		}
		server.TrustedProxiesRaw = caddyconfig.JSONModuleObject(source, "source", "static", nil)
	}
	if fl.Changed("health-path") {
		route, err := healthRoute(fl.String("health-path"))
		if err != nil {
			return nil, err
		}
		server.Routes = append(server.Routes, route)
	}
	server.Routes = append(server.Routes, routeOf(handler, "not_found"))
	if fl.Bool("access-log") {
		server.Logs = new(caddyhttp.ServerLogConfig)
	}
	return server, nil
}

// rangesOf returns the IP ranges of trusted proxies.
func rangesOf(ranges []string) (*caddyhttp.StaticIPRange, error) {
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
			return nil, fmt.Errorf("trusted-proxies: %q is not an IP range; "+
				"use CIDR, for example 10.0.0.0/8, or private_ranges", r)
		}
		source.Ranges = append(source.Ranges, r)
	}
	return source, nil
}

// healthRoute returns the route of probes, which get an empty 200.
func healthRoute(path string) (caddyhttp.Route, error) {
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#*{ ") {
		return caddyhttp.Route{}, fmt.Errorf("health-path: %q is not the path of a URL, "+
			"without a query and without wildcards; write it as in /healthz", path)
	}
	methods := caddyhttp.MatchMethod{http.MethodGet, http.MethodHead}
	route := routeOf(caddyhttp.StaticResponse{StatusCode: "200"}, "static_response")
	route.MatcherSetsRaw = caddyhttp.RawMatcherSets{{
		"path":   caddyconfig.JSON(caddyhttp.MatchPath{path}, nil),
		"method": caddyconfig.JSON(methods, nil),
	}}
	return route, nil
}

// routeOf returns a route with one handler.
func routeOf(handler any, name string) caddyhttp.Route {
	raw := caddyconfig.JSONModuleObject(handler, "handler", name, nil)
	return caddyhttp.Route{HandlersRaw: []json.RawMessage{raw}}
}

// optionFlags are the flags that are options of the handler with one value.
var optionFlags = []string{"message", "context-path", "base-url", "uri", "footer"}

// optionsOf returns the options that flags give to the handler.
func optionsOf(fl caddycmd.Flags) (options [][]string) {
	for _, flag := range optionFlags {
		if fl.Changed(flag) {
			name := strings.ReplaceAll(flag, "-", "_")
			options = append(options, []string{name, fl.String(flag)})
		}
	}
	templates, _ := fl.GetStringArray("template")
	for _, template := range templates {
		option := []string{"template", template}
		format, file, ok := strings.Cut(template, "=")
		if ok && slices.Contains(page.Formats(), format) {
			option = []string{"template", format, file}
		}
		options = append(options, option)
	}
	if fl.Changed("formats") {
		formats, _ := fl.GetStringSlice("formats")
		options = append(options, append([]string{"formats"}, formats...))
	}
	if fl.Bool("report") {
		options = append(options, []string{"report"})
	}
	return options
}
