package notfound

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

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
of link that leads to them: own links are on pages of the same host, other
links elsewhere, and the rest has none. The handlers that count have the option
report or dry_run.

Unanswered is what no handler answered, and error is a 404 error: the page is
for both. Response is a 404 response that the page replaced. One that passed is
replaceable if only dry_run or 'replace none' kept the page away, and else
passed. A range of counts, as in 39-42, means that the address may have taken
over a part of another one's counter. Times are local; those of --csv are UTC.

The report comes from the admin API at the default address, at --address, or
at the one in the config file. Files have reports in JSON (- is standard input).
Several reports become one: give each address once, or it counts twice. If one
of them cannot be read, nothing is printed.

The command only reads. To start over, send a DELETE request for
/not_found/report to the admin API, which returns the whole report.
`,
		Example: "caddy not-found report --link own --limit 10\n" +
			"kubectl exec pod-1 -- caddy not-found report --json | caddy not-found report --address localhost:2019 -",
		Args: cobra.ArbitraryArgs,
		RunE: caddycmd.WrapCommandFuncForCobra(cmdReport),
	}
	flags := cmd.Flags()
	flags.StringArray("address", nil, "The address of the administration API, if not the default; may be given several times")
	flags.StringP("config", "c", "", "The configuration file with the address of the administration API")
	flags.StringP("adapter", "a", "", "The name of the config adapter to apply to the configuration file")
	flags.IntP("limit", "n", 20, "How many addresses of each kind of link to print; 0 is all of them, and the default of --json and --csv")
	flags.String("link", "", "Only addresses that were missed by such a link: own, other or none")
	flags.String("why", "", "Only addresses with such an outcome: unanswered, error, response, passed or replaceable")
	flags.String("host", "", "Only addresses of this host; without a port, on every port")
	flags.Bool("json", false, "Print JSON instead of text")
	flags.Bool("csv", false, "Print CSV instead of text")
	return cmd
}

// cmdReport prints one report of the reports of all Caddy instances and files.
func cmdReport(fl caddycmd.Flags) (int, error) {
	filter, err := filterOfFlags(fl)
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	addresses, err := adminAddresses(fl)
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	r, err := readReports(fl, addresses)
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
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
		return caddy.ExitCodeFailedStartup, fmt.Errorf("printing the report: %w", err)
	}
	return caddy.ExitCodeSuccess, nil
}

func filterOfFlags(fl caddycmd.Flags) (filter report.Filter, err error) {
	isText := !fl.Bool("json") && !fl.Bool("csv")
	switch limit := fl.Int("limit"); {
	case fl.Bool("json") && fl.Bool("csv"):
		return filter, errors.New("csv: it cannot be combined with --json; leave one of the two out")
	case limit < 0:
		return filter, fmt.Errorf("limit: %d is not a number of addresses; write --limit 20, or --limit 0 for all of them", limit)
	case limit > 0 && (isText || fl.Changed("limit")):
		err = filter.Set("limit", strconv.Itoa(limit))
	}
	for _, name := range []string{"link", "why", "host"} {
		if fl.Changed(name) {
			err = errors.Join(err, filter.Set(name, fl.String(name)))
		}
	}
	return filter, err
}

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
	_, logger, buffer := caddy.BufferedLog() // reading a config file writes to the log
	address, err := caddycmd.DetermineAdminAPIAddress("", nil, fl.String("config"), fl.String("adapter"))
	buffer.FlushTo(zap.NewNop())
	caddy.UnbufferDefaultLogger(logger)
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

// askReport returns the report of a running Caddy. [caddycmd.AdminAPIRequest] follows redirects, and waits without end.
func askReport(address string) (r report.Report, err error) {
	const another = "name another one with --address, or the config file that has it with --config"
	addr, err := caddy.ParseNetworkAddress(address)
	origin := "http://127.0.0.1" // any host will do for a Unix socket
	if !addr.IsUnixNetwork() {
		origin = "http://" + addr.JoinHostPort(0)
	}
	req, notURL := http.NewRequest(http.MethodGet, origin+reportPath, nil)
	if err != nil || notURL != nil || addr.PortRangeSize() > 1 {
		return r, fmt.Errorf("%q is not the address of an admin API; %s", address, another)
	}
	if !addr.IsUnixNetwork() {
		req.Header.Set("Origin", origin) // for enforce_origin
	}

	const limit = 10 * time.Second
	client := http.Client{
		Timeout:       limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(addr, limit) }},
	}
	resp, err := client.Do(req)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return r, fmt.Errorf("asking the admin API at %s: no answer for %s", address, limit)
	case err != nil:
		return r, fmt.Errorf("no admin API answers at %s (%s); start Caddy, or %s", address, report.Printable(errors.Unwrap(err).Error()), another)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return readReport("the report of "+address, resp.Body)
	}

	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // what was read says enough
	var answer caddy.APIError
	if json.Unmarshal(body, &answer) == nil && answer.Message != "" {
		return r, fmt.Errorf("the admin API at %s: %s", address, report.Printable(answer.Message))
	}
	why := report.Printable(fmt.Sprintf("HTTP %d: %s", resp.StatusCode, bytes.TrimSpace(body)))
	if resp.StatusCode == http.StatusNotFound {
		return r, fmt.Errorf("the server at %s is not a Caddy with not_found (%s); run the one that has the module, or %s", address, why, another)
	}
	return r, fmt.Errorf("asking the admin API at %s: %s", address, why)
}

// parseAddress parses the address of a flag as Caddy does. It refuses a URL, and an address without a port.
func parseAddress(flag, s string) (caddy.NetworkAddress, error) {
	addr, err := caddy.ParseNetworkAddress(s)
	if err != nil {
		return addr, fmt.Errorf("%s: %q is not an address: %w", flag, s, err)
	}
	_, _, port, _ := caddy.SplitNetworkAddress(s)
	if strings.Contains(s, "://") || port == "" && !addr.IsUnixNetwork() && !addr.IsFdNetwork() {
		return addr, fmt.Errorf("%s: %q is not an address; write it as host:port, or as in unix//run/caddy.sock", flag, s)
	}
	return addr, nil
}

func dial(addr caddy.NetworkAddress, timeout time.Duration) (net.Conn, error) {
	host, _, _ := strings.Cut(addr.JoinHostPort(0), "|") // a Unix socket may have permissions
	return net.DialTimeout(addr.Network, host, timeout)
}
