package notfound

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-notfound/notfound/internal/report"
)

func reportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "report [--address <interface>]... [--config <path> [--adapter <name>]] [--limit <n>] [--link own|other|none] " +
			"[--why <outcome>] [--host <host>] [--json|--csv] [<file>...]",
		Short: "Prints the report of missing addresses",
		Long: `
Prints which addresses a running Caddy misses most, in a section for each kind
of link that leads to them. Own links are on pages of the same host: correct
the page. Other links are elsewhere: redirect what is frequent. The rest has no
link: what is typed, bookmarked, fetched by a program, or asked for by a
scanner. The handlers that count have the option report.

Unanswered is what no handler answered, and error is a 404 error: the page is
for both. Response is a 404 response that the page replaced. One that passed is
replaceable if only dry_run or 'replace none' kept the page away, and else
passed. A range of counts, as in 39-42, means that the address may have taken
over a part of another one's counter. Times are local; those of --csv are UTC.

The report comes from the admin API at the default address, at --address, or
at the one in the config file. Files have reports in JSON (- is standard input).
Several reports become one: give each address once, or it counts twice. If one
of them cannot be read, nothing is printed.

A --host without a port, such as localhost or ::1, is that host on every port.
With --json and --csv, --limit is 0 by default. A report from which addresses
were left out cannot be merged.

The command only reads. To start over, send a DELETE request for
/not_found/report to the admin API, which returns the whole report.
`,
		Example: "caddy not-found report --link own --limit 10\n" +
			"kubectl exec pod-1 -- caddy not-found report --json | caddy not-found report --address localhost:2019 -",
		Args: cobra.ArbitraryArgs,
		RunE: caddycmd.WrapCommandFuncForCobra(func(fl caddycmd.Flags) (int, error) {
			if err := printMissed(fl); err != nil {
				return caddy.ExitCodeFailedStartup, err
			}
			return caddy.ExitCodeSuccess, nil
		}),
	}
	flags := cmd.Flags()
	flags.StringArray("address", nil, "The address of the administration API, if not the default; may be given several times")
	flags.StringP("config", "c", "", "The configuration file with the address of the administration API")
	flags.StringP("adapter", "a", "", "The name of the config adapter to apply to the configuration file")
	flags.IntP("limit", "n", 20, "How many addresses of each kind of link to print; 0 is all of them")
	flags.String("link", "", "Only addresses that were missed by such a link: own, other or none")
	flags.String("why", "", "Only addresses with such an outcome: unanswered, error, response, passed or replaceable")
	flags.String("host", "", "Only addresses of this host")
	flags.Bool("json", false, "Print JSON instead of text")
	flags.Bool("csv", false, "Print CSV instead of text")
	return cmd
}

// printMissed prints one report of the reports of all Caddy instances and files.
func printMissed(fl caddycmd.Flags) error {
	filter, err := filterOfFlags(fl)
	if err != nil {
		return err
	}
	addresses, err := adminAddresses(fl)
	if err != nil {
		return err
	}
	r, err := readReports(fl, addresses)
	if err != nil {
		return err
	}
	return printReport(r, filter, fl)
}

// filterOfFlags returns the filter of the flags.
func filterOfFlags(fl caddycmd.Flags) (filter report.Filter, err error) {
	if fl.Bool("csv") && fl.Bool("json") {
		return filter, errors.New("csv: it cannot be combined with --json; leave one of the two out")
	}
	limit := fl.Int("limit")
	if !fl.Changed("limit") && (fl.Bool("json") || fl.Bool("csv")) {
		limit = 0
	}
	if limit < 0 {
		return filter, fmt.Errorf("limit: %d is not a number of addresses; write --limit 20, or --limit 0 for all of them", limit)
	}
	if limit > 0 {
		err = filter.Set("limit", strconv.Itoa(limit))
	}
	for _, name := range []string{"link", "why", "host"} {
		if fl.Changed(name) {
			err = errors.Join(err, filter.Set(name, fl.String(name)))
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
	for i, address := range addresses {
		if _, err := parseAddress("address", address); err != nil {
			return nil, err
		}
		if slices.Contains(addresses[:i], address) {
			return nil, fmt.Errorf("address: %q is given twice, and would be counted twice; give it once", address)
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

// readReports returns one report of those of all admin APIs and files.
func readReports(fl caddycmd.Flags, addresses []string) (r report.Report, err error) {
	var reports []report.Report
	for _, address := range addresses {
		if r, err = askReport(address); err != nil {
			return r, err
		}
		reports = append(reports, r)
	}
	var files []os.FileInfo
	for _, name := range fl.Args() {
		file := os.Stdin
		if name != "-" {
			if file, err = os.Open(name); err != nil {
				return r, fmt.Errorf("reading a report: %w", err)
			}
			defer file.Close()
		}
		info, _ := file.Stat() // a file that it fails for cannot be read either
		if slices.ContainsFunc(files, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			return r, fmt.Errorf("%q is given twice, and would be counted twice; give it once", name)
		}
		files = append(files, info)
		if r, err = readReport("the report in "+file.Name(), file); err != nil {
			return r, err
		}
		reports = append(reports, r)
	}
	if r, err = report.Merge(reports...); err != nil {
		return r, fmt.Errorf("merging the reports: %w", err)
	}
	return r, nil
}

// maxReport is the size in bytes of the largest report that is read. Three full tables have 2 MiB.
const maxReport = 64 << 20

func readReport(what string, from io.Reader) (r report.Report, err error) {
	body, err := io.ReadAll(io.LimitReader(from, maxReport+1))
	switch {
	case err != nil:
	case len(body) > maxReport:
		err = errors.New("it has more than 64 MiB, which no report has")
	default:
		r, err = report.Parse(body)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", what, err)
	}
	return r, nil
}

// askReport returns the report of a running Caddy. One that does not answer in time fails.
func askReport(address string) (r report.Report, err error) {
	const limit = 10 * time.Second
	answered := make(chan func() (report.Report, error), 1)
	go func() {
		r, err := askAdmin(address)
		answered <- func() (report.Report, error) { return r, err }
	}()
	select {
	case answer := <-answered:
		return answer()
	case <-time.After(limit):
		return r, fmt.Errorf("asking the admin API at %s: no answer for %s", address, limit)
	}
}

// askAdmin asks a running Caddy's admin API.
func askAdmin(address string) (r report.Report, err error) {
	const another = "name another one with --address, or the config file that has it with --config"
	resp, err := caddycmd.AdminAPIRequest(address, http.MethodGet, reportPath, nil, nil)
	if err == nil {
		defer resp.Body.Close()
		return readReport("the report of "+address, resp.Body)
	}
	why := report.Printable(err.Error())
	var answer caddy.APIError
	if _, rest, ok := strings.Cut(err.Error(), ": {"); ok && json.Unmarshal([]byte("{"+rest), &answer) == nil && answer.Message != "" {
		return r, fmt.Errorf("the admin API at %s: %s", address, report.Printable(answer.Message))
	}
	switch {
	case strings.HasPrefix(why, "performing request: "):
		return r, fmt.Errorf("no admin API answers at %s (%s); start Caddy, or %s", address, why, another)
	case strings.Contains(why, "HTTP 404"):
		return r, fmt.Errorf("the server at %s is not a Caddy with not_found (%s); run the one that has the module, or %s", address, why, another)
	}
	return r, fmt.Errorf("asking the admin API at %s: %s", address, why)
}

// printReport prints what a filter chooses of a report.
func printReport(r report.Report, filter report.Filter, fl caddycmd.Flags) (err error) {
	switch {
	case fl.Bool("json"):
		filter.Apply(&r)
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "\t")
		err = e.Encode(r)
	case fl.Bool("csv"):
		filter.Apply(&r)
		err = r.WriteCSV(os.Stdout)
	default:
		err = r.WriteText(os.Stdout, filter)
	}
	if err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}
