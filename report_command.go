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
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-notfound/notfound/internal/report"
)

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
