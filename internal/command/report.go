package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

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
part of another one's counter. Times are those of the server's clock; those of
--json are UTC. Letters of any script are shown as such; whatever else an
address has percent-encoded stays so, as everything does in --json.

The report comes from the admin API at the default address, at --address, or
at the one in the config file. --json prints it whole.

The command only reads. To start over, send a DELETE request for
/not_found/report to the admin API, which returns the whole report.
`,
		Example: "caddy not-found report --link own --limit 10",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printReport(cmd.OutOrStdout(), caddycmd.Flags{FlagSet: cmd.Flags()})
		},
	}
	flags := cmd.Flags()
	flags.String("address", "", "The address of the administration API, if not the default")
	flags.StringP("config", "c", "", "The configuration file with the address of the administration API")
	flags.StringP("adapter", "a", "", "The name of the config adapter to apply to the configuration file")
	flags.StringP("limit", "n", "20", "How many addresses of each kind of link to print; 0 is all of them")
	flags.String("link", "", "Only addresses that this kind of link led to: own, other or none")
	flags.String("outcome", "", "Only addresses with this outcome: "+strings.Join(report.OutcomeNames(), ", "))
	flags.String("host", "", "Only addresses of this host, with its port unless that is a default one")
	flags.Bool("json", false, "Print the whole report as JSON instead of text")
	return cmd
}

// printReport prints the report of a running Caddy. Its admin API makes the text, and checks the flags that choose.
func printReport(w io.Writer, fl caddycmd.Flags) error {
	config, adapter := fl.String("config"), fl.String("adapter")
	address, err := caddycmd.DetermineAdminAPIAddress(fl.String("address"), nil, config, adapter)
	if err != nil {
		return fmt.Errorf("determining the address of the admin API: %w", err)
	}
	query := make(url.Values)
	for _, name := range report.FilterNames {
		if fl.Changed(name) {
			query.Set(name, fl.String(name))
		}
	}
	path := report.TextPath
	if fl.Bool("json") {
		path = report.Path
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	answer, err := ask(address, path)
	if err != nil {
		return fmt.Errorf("asking the admin API at %s: %s", address, printable(err.Error()))
	}
	if fl.Bool("json") {
		var indented bytes.Buffer
		if err := json.Indent(&indented, answer, "", "\t"); err != nil {
			return fmt.Errorf("reading the answer of %s: %w", address, err)
		}
		answer = indented.Bytes()
	}
	if _, err := io.WriteString(w, printable(string(answer))); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

// ask returns the answer of the admin API.
func ask(address, path string) ([]byte, error) {
	resp, err := caddycmd.AdminAPIRequest(address, http.MethodGet, path, nil, nil)
	if err != nil {
		text := err.Error()
		if strings.Contains(text, "HTTP 404") && !strings.Contains(text, report.NotBegun) {
			err = fmt.Errorf("%w; has the Caddy at %s been restarted since the upgrade?", err, address)
		}
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// printable returns an answer, which may be another server's, with a question mark for each character that would act on
// a terminal.
func printable(answer string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return '?'
	}, answer)
}
