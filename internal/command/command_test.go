package command_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/caddy-notfound/notfound"
	"github.com/caddy-notfound/notfound/internal/command"
)

// configOf returns the config that `caddy not-found` would run with arguments, and the options of its handler. The
// handler in the config has none.
func configOf(args ...string) (config *caddy.Config, options [][]string, err error) {
	cmd := new(cobra.Command)
	caddycmd.Commands()["not-found"].CobraFunc(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, nil, err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return nil, nil, err
	}
	handler := func(given [][]string) (any, error) {
		options = given
		return struct{}{}, nil
	}
	config, err = command.ConfigOf(caddycmd.Flags{FlagSet: cmd.Flags()}, handler)
	return config, options, err
}

func TestFlagsAreOptionsOfTheHandler(t *testing.T) {
	_, got, err := configOf("--message=Not here", "--context-path=/app", "--base-url=https://a.test",
		"--uri={host}", "--footer=ours", "--formats=json,text", "--report",
		"--template=404.html", "--template=json=404.json", "--template=a=b.html")
	want := [][]string{
		{"message", "Not here"},
		{"context_path", "/app"},
		{"base_url", "https://a.test"},
		{"uri", "{host}"},
		{"footer", "ours"},
		{"template", "404.html"},
		{"template", "json", "404.json"},
		{"template", "a=b.html"},
		{"formats", "json", "text"},
		{"report"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got the options %q, %v, want %q", got, err, want)
	}
}

// check says what is wrong with the arguments, which have no blanks. Caddy checks the config, too.
func check(args string) error {
	config, _, err := configOf(strings.Fields(args)...)
	if err != nil {
		return err
	}
	return caddy.Validate(config)
}

// TestMistakesInFlagsAreRefused covers the command's own flags. The others are options of the handler.
func TestMistakesInFlagsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"404.html":       `unknown command "404.html"`,
		"--listen=:port": `listen: ":port" is not an address: invalid start port`,
		"--listen=localhost": `listen: "localhost" is not an address; ` +
			`write it as host:port, or as in unix//run/caddy.sock`,
		"--listen=http://localhost:8080": `listen: "http://localhost:8080" is not an address; write it as host:port`,
		"--trusted-proxies=": `trusted-proxies: "" is not an IP range; ` +
			`use CIDR, for example 10.0.0.0/8, or private_ranges`,
		"--trusted-proxies=10.0.0.0/8,::x": `trusted-proxies: "::x" is not an IP range`,
		"--health-path=healthz": `health-path: "healthz" is not the path of a URL, ` +
			`without a query and without wildcards; write it as in /healthz`,
		"--health-path=/a?b":     `health-path: "/a?b" is not the path of a URL`,
		"--health-path=/a*":      `health-path: "/a*" is not the path of a URL`,
		"--admin=localhost:2020": "admin: the admin API only serves the report; add --report, or leave --admin out",
		"--report --admin=off":   `admin: "off" is not an address; write it as host:port`,
	} {
		err := check(args)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want %s", args, err, want)
		}
	}
}

func TestFlagsAreAccepted(t *testing.T) {
	for _, args := range []string{
		"",
		"--context-path=",
		"--context-path=/",
		"--listen=unix//run/x.sock",
		"--listen=[::1]:80",
		"--listen=:80-81",
		"--listen=fd/3",
		"--report --admin=localhost:2020",
		"--report --admin=unix//run/x.sock|0220",
		"--report --admin=fd/3",
		"--trusted-proxies=10.0.0.0/8,private_ranges,2001:db8::1 --report --debug --access-log",
	} {
		if err := check(args); err != nil {
			t.Errorf("%q: got the error %v", args, err)
		}
	}
}

// TestConfigOfTheCommand trusts proxies by range and by name, and listens where Caddy would turn on automatic HTTPS. A
// client that stalls has the 10 seconds of the help text, and 5 once the server has to stop.
func TestConfigOfTheCommand(t *testing.T) {
	config, _, err := configOf("--listen=127.0.0.1:443", "--trusted-proxies=203.0.113.0/24,private_ranges")
	if err != nil {
		t.Fatal(err)
	}
	got := string(config.AppsRaw["http"])
	for _, want := range []string{
		`"trusted_proxies":{"ranges":["203.0.113.0/24","192.168.0.0/16",`,
		`"read_timeout":10000000000,"read_header_timeout":10000000000,`,
		`"grace_period":5000000000,`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got the app %s, want %s in it", got, want)
		}
	}
	ctx, err := caddy.ProvisionContext(config)
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App("http")
	if err != nil {
		t.Fatal(err)
	}
	server := app.(*caddyhttp.App).Servers["not_found"]
	if len(server.TLSConnPolicies) > 0 {
		t.Errorf("it serves TLS: %v", server.TLSConnPolicies)
	}
}
