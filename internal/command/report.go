package command

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-notfound/notfound/internal/report"
)

func reportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "report [--address <interface>] [--config <path> [--adapter <name>]] " +
			"[--json | [--limit <n>] [--link own|other|none] [--outcome <outcome>] [--host <host>]]",
		Short: "Prints the report of missing addresses",
		Long: `
Prints which addresses a running Caddy misses most, in a section for each kind
of link that leads to them: own links are on pages of the same host, other links
elsewhere, and the rest has none. A handler counts if it has the option report
or dry_run. A request is by a browser if it opens a page. The outcomes are

  unanswered   no handler answered
  error        a handler returned a 404 error
  response     the page replaced a 404 response
  passed       a 404 response passed
  replaceable  only dry_run or 'replace none' let a 404 response pass

A range of counts, as in 39-42, means that the address may have taken over a
part of another one's counter. Times are local; those of --json are UTC.

The report comes from the admin API at the default address, at --address, or
at the one in the config file. --json prints it whole.

The command only reads. To start over, send a DELETE request for
/not_found/report to the admin API, which returns the whole report.
`,
		Example: "caddy not-found report --link own --limit 10",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printReport(caddycmd.Flags{FlagSet: cmd.Flags()})
		},
	}
	flags := cmd.Flags()
	flags.String("address", "", "The address of the administration API, if not the default")
	flags.StringP("config", "c", "", "The configuration file with the address of the administration API")
	flags.StringP("adapter", "a", "", "The name of the config adapter to apply to the configuration file")
	flags.IntP("limit", "n", 20, "How many addresses of each kind of link to print; 0 is all of them")
	flags.String("link", "", "Only addresses that this kind of link led to: own, other or none")
	flags.String("outcome", "", "Only addresses with this outcome: "+strings.Join(report.OutcomeNames(), ", "))
	flags.String("host", "", "Only addresses of this host, with its port unless that is a default one")
	flags.Bool("json", false, "Print the whole report as JSON instead of text")
	return cmd
}

// printReport prints the report of a running Caddy.
func printReport(fl caddycmd.Flags) error {
	filter, err := filterOfFlags(fl)
	if err != nil {
		return err
	}
	address, err := adminAddress(fl)
	if err != nil {
		return err
	}
	r, err := askReport(address)
	if err != nil {
		return err
	}
	if fl.Bool("json") {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "\t")
		err = e.Encode(r)
	} else {
		err = r.WriteText(os.Stdout, filter)
	}
	if err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

func filterOfFlags(fl caddycmd.Flags) (report.Filter, error) {
	for _, name := range []string{"limit", "link", "outcome", "host"} {
		if fl.Bool("json") && fl.Changed(name) {
			return report.Filter{}, fmt.Errorf("%s: --json prints the whole report; leave --%[1]s out, and choose with jq", name)
		}
	}
	filter := report.Filter{
		Limit:   fl.Int("limit"),
		Link:    fl.String("link"),
		Outcome: fl.String("outcome"),
		Host:    fl.String("host"),
	}
	return filter, filter.Check()
}

// adminAddress returns the address of the admin API: that of --address, of the config file, or the default.
func adminAddress(fl caddycmd.Flags) (string, error) {
	if fl.Changed("address") {
		address := fl.String("address")
		return address, checkAddress(address)
	}
	_, logger, buffer := caddy.BufferedLog() // reading a config file writes to the log
	address, err := caddycmd.DetermineAdminAPIAddress("", nil, fl.String("config"), fl.String("adapter"))
	buffer.FlushTo(zap.NewNop())
	caddy.UnbufferDefaultLogger(logger)
	if err != nil {
		return "", fmt.Errorf("determining the address of the admin API: %w", err)
	}
	return address, nil
}

// maxReport is how many bytes of an answer are read. Three full tables have 3 MiB.
const maxReport = 8 << 20

// askReport returns the report of a running Caddy.
func askReport(address string) (r report.Report, err error) {
	resp, err := caddycmd.AdminAPIRequest(address, http.MethodGet, report.Path, nil, nil)
	if err != nil {
		return r, explain(address, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReport))
	if err == nil {
		r, err = report.Parse(body)
	}
	if err != nil {
		return r, fmt.Errorf("reading the answer of %s: %w", address, err)
	}
	return r, nil
}

// explain says what to do about an error of Caddy's, which may have anything that another server answers.
func explain(address string, err error) error {
	const another = "name another one with --address, or the config file that has it with --config"
	text := report.Printable(err.Error())
	isOfNotFound := strings.Contains(text, report.NotBegun)
	switch {
	case strings.Contains(text, "permission denied"):
		return fmt.Errorf("this user may not open the admin API at %s; run it as root, or as Caddy's user", address)
	case strings.HasPrefix(text, "performing request: "):
		return fmt.Errorf("no admin API answers at %s (%s); start Caddy, or %s", address, text, another)
	case strings.Contains(text, "HTTP 404") && !isOfNotFound:
		return fmt.Errorf("the server at %s is not a Caddy with not_found (%s); "+
			"run the one that has the module, or %s", address, text, another)
	default:
		return fmt.Errorf("asking the admin API at %s: %s", address, text)
	}
}

// checkAddress refuses what Caddy cannot parse, a URL, and an address without a port.
func checkAddress(s string) error {
	const instead = "write it as host:port, or as in unix//run/caddy.sock"
	addr, err := caddy.ParseNetworkAddress(s)
	if err != nil {
		return fmt.Errorf("address: %q is not an address; %s: %w", s, instead, err)
	}
	_, _, port, _ := caddy.SplitNetworkAddress(s)
	needsPort := !addr.IsUnixNetwork() && !addr.IsFdNetwork()
	if strings.Contains(s, "://") || needsPort && port == "" {
		return fmt.Errorf("address: %q is not an address; %s", s, instead)
	}
	return nil
}
