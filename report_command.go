package notfound

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-notfound/notfound/internal/report"
)

func reportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "report [--address <interface>]... [--config <path> [--adapter <name>]] [--limit <n>] [--link own|other|none] " +
			"[--why <outcome>] [--host <host>] [--json|--csv] [--reset] [<file>...]",
		Short: "Prints the report of missing addresses",
		Long: `
Prints which addresses a running Caddy misses most, in a section for each kind
of link that leads to them. Own links are on pages of the same host: correct
the page. Other links are elsewhere: redirect what is frequent. The rest has no
link: what is typed, bookmarked, fetched by a program, or asked for by a
scanner. The handlers that count have the option report.

Unanswered, error and response say why a page was written. A 404 response that
passed is replaceable if 'replace pages' would have replaced it, and else
passed. A range of counts, as in 39-42, means that the address may have taken
over a part of another one's counter. Times are local; those of --csv are UTC.

The report comes from the admin API at the default address, at --address, or
at the one in the config file. Files have reports in JSON (- is standard input).
Several reports become one: give each address once, or it counts twice. If one
of them cannot be read, nothing is printed.

A --host without a port, such as localhost or ::1, is that host on every port.
With --json and --csv, --limit is 0 by default. A report from which addresses
were left out cannot be merged.

With --reset, Caddy starts over, and the whole report up to that moment is
printed, so that no request is lost: files, several addresses, --csv and what
leaves addresses out are refused. What cannot be printed is written to a file,
which the error names.
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
	flags.Bool("reset", false, "Reset the report, and print it whole")
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
	if fl.Bool("reset") {
		return resetReport(addresses[0], fl)
	}
	return printReport(r, filter, fl)
}

// filterOfFlags returns the filter of the flags. With --reset, there is none: what it left out would be lost.
func filterOfFlags(fl caddycmd.Flags) (filter report.Filter, err error) {
	if fl.Bool("csv") && (fl.Bool("json") || fl.Bool("reset")) {
		return filter, errors.New("csv: it cannot be combined with --json or --reset")
	}
	addresses, _ := fl.GetStringArray("address")
	if fl.Bool("reset") && (fl.NArg() > 0 || len(addresses) > 1) {
		return filter, errors.New("reset: it is for one Caddy; leave out files and other addresses")
	}
	for _, name := range []string{"limit", "link", "why", "host"} {
		value := fl.Lookup(name).Value.String()
		switch {
		case fl.Changed(name) && fl.Bool("reset"):
			return filter, fmt.Errorf("reset: it prints the whole report, because what is left out would be lost; leave out --%s", name)
		case !fl.Changed(name) && (name != "limit" || fl.Bool("json") || fl.Bool("csv")), name == "limit" && value == "0":
			continue
		}
		if err := filter.Set(name, value); err != nil {
			return filter, err
		}
	}
	return filter, nil
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
		if r, _, err = readReport("the report in "+file.Name(), file); err != nil {
			return r, err
		}
		reports = append(reports, r)
	}
	if r, err = report.Merge(reports...); err != nil {
		return r, fmt.Errorf("merging the reports: %w", err)
	}
	return r, nil
}

// readReport reads a report, and returns it as it came as well, even if it breaks off.
func readReport(what string, from io.Reader) (r report.Report, body []byte, err error) {
	if body, err = io.ReadAll(from); err == nil {
		r, err = report.Parse(body)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return r, body, err
}

// askReport returns the report of a running Caddy. One that does not answer in time fails.
func askReport(address string) (report.Report, error) {
	const limit = 10 * time.Second
	var r report.Report
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		r, _, err = askAdmin(address, http.MethodGet)
	}()
	select {
	case <-answered:
		return r, err
	case <-time.After(limit):
		return report.Report{}, fmt.Errorf("asking the admin API at %s: no answer for %s", address, limit)
	}
}

// resetReport has a report start over, and prints what it was by then. Nobody else has it any more, so what cannot be read
// or printed is in a file.
func resetReport(address string, fl caddycmd.Flags) error {
	r, body, err := askAdmin(address, http.MethodDelete)
	if err == nil {
		err = printReport(r, report.Filter{}, fl)
	}
	if err == nil || len(body) == 0 {
		return err
	}
	file, saveErr := os.CreateTemp("", "not-found-report-*.json")
	if saveErr == nil {
		_, saveErr = file.Write(body)
		saveErr = errors.Join(saveErr, file.Close())
	}
	if saveErr != nil {
		return fmt.Errorf("%w; saving the report of %s, now that counting has started over: %w", err, address, saveErr)
	}
	return fmt.Errorf("%w; at %s, counting has started over, and what was counted before is in %s", err, address, file.Name())
}

// askAdmin asks a running Caddy's admin API. An error may have the body of its answer, which is JSON if it is the API's, and
// may be anything else.
func askAdmin(address, method string) (r report.Report, body []byte, err error) {
	resp, err := caddycmd.AdminAPIRequest(address, method, reportPath, nil, nil)
	if err != nil {
		var answer caddy.APIError
		if _, rest, ok := strings.Cut(err.Error(), ": {"); ok && json.Unmarshal([]byte("{"+rest), &answer) == nil && answer.Message != "" {
			return r, nil, fmt.Errorf("the admin API at %s: %s", address, report.Printable(answer.Message))
		}
		return r, nil, fmt.Errorf("asking the admin API at %s, which a Caddy with not_found should serve: %s", address, report.Printable(err.Error()))
	}
	defer resp.Body.Close()
	if method == http.MethodDelete {
		signal.Ignore(os.Interrupt, syscall.SIGHUP, syscall.SIGPIPE) // nothing but this process has the report any more
	}
	return readReport("the report of "+address, resp.Body)
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
