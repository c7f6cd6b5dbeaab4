package notfound

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/caddy-notfound/notfound/internal/page"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name: "not-found",
		Usage: "[--listen <addr>] [--message <text>] [--context-path <path>] [--base-url <url>] [--uri <text>] [--footer <text>] [--formats <format,...>] [--template [<format>=]<file>]...\n" +
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

It does not start where something answers already, such as another Caddy. A
request that takes longer than 10 seconds to arrive is not waited for, and a
signal to stop ends every exchange within 5 seconds.
`,
		CobraFunc: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.StringP("listen", "l", ":8080", "The address to which to bind the listener")
			flags.String("message", "", "The message on the page, instead of the one with the context path")
			flags.String("context-path", "", "The path of the application that the page speaks for")
			flags.String("base-url", "", "The URL that the address on the page begins with")
			flags.String("uri", "", "The address on the page, by placeholders of what another proxy sends")
			flags.String("footer", "", "The last line of the page")
			flags.StringSlice("formats", nil, "The representations on offer: "+strings.Join(page.Formats(), ", "))
			flags.StringArray("template", nil, "A template file for the HTML representation, or for another, as in json=404.json")
			flags.StringSlice("trusted-proxies", nil, "The IP ranges of proxies whose X-Forwarded-* header fields count")
			flags.String("health-path", "", "The path of readiness and liveness probes, which get an empty 200")
			flags.Bool("report", false, "Report which addresses are missed, on the admin API")
			flags.String("admin", caddy.DefaultAdminListen, "The address of the admin API, as in unix//run/not-found.sock; only with --report")
			flags.Bool("access-log", false, "Enable the access log")
			flags.BoolP("debug", "v", false, "Enable more verbose debug-level logging")
			cmd.RunE = caddycmd.WrapCommandFuncForCobra(cmdNotFound)
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
			})
		},
	})
}

// A client that stalls in its request gets its page after readTimeout. A stalled client delays the exit of the process by
// gracePeriod, less than `docker stop` and Kubernetes wait.
const (
	readTimeout = 10 * time.Second
	gracePeriod = 5 * time.Second
)

func cmdNotFound(fl caddycmd.Flags) (int, error) {
	caddy.TrapSignals()
	config, err := notFoundConfig(fl)
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
		return caddy.ExitCodeFailedStartup, err
	}
	select {}
}

// checkUnused refuses an address where something answers. Caddy would share it, and clients, `caddy reload` and `caddy
// stop` would reach one or the other.
func checkUnused(flag, address, instead string) error {
	addr, _ := caddy.ParseNetworkAddress(address) // which notFoundConfig has checked
	conn, err := dial(addr, time.Second)
	if err != nil {
		return nil
	}
	conn.Close()
	return fmt.Errorf("%s: at %s, something answers already, such as another Caddy; use another address, as in %s", flag, address, instead)
}

// notFoundConfig returns the config of a server that answers every request with the page.
func notFoundConfig(fl caddycmd.Flags) (*caddy.Config, error) {
	if fl.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q; the options are flags, and the subcommands are report and export-template", fl.Arg(0))
	}
	handler, err := handlerOfFlags(fl)
	if err != nil {
		return nil, err
	}
	server := &caddyhttp.Server{
		Listen:            []string{fl.String("listen")},
		ReadHeaderTimeout: caddy.Duration(readTimeout),
		ReadTimeout:       caddy.Duration(readTimeout),
		AutoHTTPS:         &caddyhttp.AutoHTTPSConfig{Disabled: true},
	}
	if _, err := parseAddress("listen", server.Listen[0]); err != nil {
		return nil, err
	}
	if fl.Changed("admin") && !handler.Report {
		return nil, errors.New("admin: the admin API only serves the report; add --report, or leave --admin out")
	}
	if _, err := parseAddress("admin", fl.String("admin")); handler.Report && err != nil {
		return nil, err
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
			} else if _, err := caddyhttp.CIDRExpressionToPrefix(r); err == nil {
				source.Ranges = append(source.Ranges, r)
			} else {
				return nil, fmt.Errorf("trusted-proxies: %q is not an IP range; use CIDR, for example 10.0.0.0/8, or private_ranges", r)
			}
		}
		server.TrustedProxiesRaw = caddyconfig.JSONModuleObject(source, "source", "static", nil)
	}
	if fl.Changed("health-path") {
		path := fl.String("health-path")
		if path == "" || path[0] != '/' || strings.ContainsAny(path, "?#*{ ") {
			return nil, fmt.Errorf("health-path: %q is not the path of a URL, without a query and without wildcards; write it as in /healthz", path)
		}
		server.Routes = append(server.Routes, caddyhttp.Route{
			MatcherSetsRaw: caddyhttp.RawMatcherSets{{
				"path":   caddyconfig.JSON(caddyhttp.MatchPath{path}, nil),
				"method": caddyconfig.JSON(caddyhttp.MatchMethod{http.MethodGet, http.MethodHead}, nil),
			}},
			HandlersRaw: []json.RawMessage{caddyconfig.JSONModuleObject(caddyhttp.StaticResponse{StatusCode: "200"}, "handler", "static_response", nil)},
		})
	}
	server.Routes = append(server.Routes, caddyhttp.Route{
		HandlersRaw: []json.RawMessage{caddyconfig.JSONModuleObject(handler, "handler", "not_found", nil)},
	})
	if fl.Bool("access-log") {
		server.Logs = new(caddyhttp.ServerLogConfig)
	}

	config := &caddy.Config{
		Admin: &caddy.AdminConfig{
			Disabled: !handler.Report,
			Listen:   fl.String("admin"),
			Config:   &caddy.ConfigSettings{Persist: new(false)},
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

// handlerOfFlags returns a handler with the given options, with the checks of the directive.
func handlerOfFlags(fl caddycmd.Flags) (*Handler, error) {
	h := &Handler{Report: fl.Bool("report")}
	for _, o := range h.valueOptions() {
		if flag := strings.ReplaceAll(o.name, "_", "-"); fl.Changed(flag) {
			if err := h.setOption(o.name, []string{fl.String(flag)}); err != nil {
				return nil, err
			}
		}
	}
	templates, _ := fl.GetStringArray("template")
	for _, template := range templates {
		args := []string{template}
		if format, file, ok := strings.Cut(template, "="); ok && slices.Contains(page.Formats(), format) {
			args = []string{format, file}
		}
		if err := h.setOption("template", args); err != nil {
			return nil, err
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
