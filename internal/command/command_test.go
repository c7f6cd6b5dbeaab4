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

// uncheckedConfig returns the config that `caddy not-found` would run with arguments. Its handler has no options.
func uncheckedConfig(args ...string) (*caddy.Config, error) {
	config, _, err := configAndOptions(args...)
	return config, err
}

// configAndOptions also returns the options of the handler.
func configAndOptions(args ...string) (config *caddy.Config, options [][]string, err error) {
	cmd := new(cobra.Command)
	caddycmd.Commands()["not-found"].CobraFunc(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, nil, err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return nil, nil, err
	}
	config, err = command.ConfigOf(caddycmd.Flags{FlagSet: cmd.Flags()}, func(given [][]string) (any, error) {
		options = given
		return struct{}{}, nil
	})
	return config, options, err
}

func TestFlagsAreOptionsOfTheHandler(t *testing.T) {
	_, got, err := configAndOptions("--message=Not here", "--context-path=/app", "--base-url=https://a.test",
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

// configOfFlags is uncheckedConfig with Caddy's own check, which removes the apps from the config.
func configOfFlags(t *testing.T, args ...string) (*caddy.Config, error) {
	t.Helper()
	config, err := uncheckedConfig(args...)
	if err == nil {
		err = caddy.Validate(config)
	}
	return config, err
}

// TestMistakesInFlagsAreRefused covers the command's own flags. The others are options of the handler.
func TestMistakesInFlagsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"404.html":                         `unknown command "404.html"`,
		"--listen=:port":                   `listen: ":port" is not an address: invalid start port`,
		"--listen=localhost":               `listen: "localhost" is not an address; write it as host:port, or as in unix//run/caddy.sock`,
		"--listen=http://localhost:8080":   `listen: "http://localhost:8080" is not an address; write it as host:port`,
		"--trusted-proxies=":               `trusted-proxies: "" is not an IP range; use CIDR, for example 10.0.0.0/8, or private_ranges`,
		"--trusted-proxies=10.0.0.0/8,::x": `trusted-proxies: "::x" is not an IP range`,
		"--health-path=healthz":            `health-path: "healthz" is not the path of a URL, without a query and without wildcards; write it as in /healthz`,
		"--health-path=/a?b":               `health-path: "/a?b" is not the path of a URL`,
		"--health-path=/a*":                `health-path: "/a*" is not the path of a URL`,
		"--admin=localhost:2020":           "admin: the admin API only serves the report; add --report, or leave --admin out",
		"--report --admin=off":             `admin: "off" is not an address; write it as host:port`,
	} {
		t.Run(args, func(t *testing.T) {
			if _, err := configOfFlags(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got the error %v, want %s", err, want)
			}
		})
	}
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
		if _, err := configOfFlags(t, strings.Fields(args)...); err != nil {
			t.Errorf("%q: got the error %v", args, err)
		}
	}
}

// TestConfigOfTheCommand trusts proxies by range and by name, and listens where Caddy would turn on automatic HTTPS.
func TestConfigOfTheCommand(t *testing.T) {
	config, err := uncheckedConfig("--listen=127.0.0.1:443", "--trusted-proxies=203.0.113.0/24,private_ranges")
	if err != nil {
		t.Fatal(err)
	}
	const want = `"trusted_proxies":{"ranges":["203.0.113.0/24","192.168.0.0/16",`
	if got := string(config.AppsRaw["http"]); !strings.Contains(got, want) {
		t.Errorf("got the app %s, want %s in it", got, want)
	}
	ctx, err := caddy.ProvisionContext(config)
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App("http")
	if err != nil {
		t.Fatal(err)
	}
	if server := app.(*caddyhttp.App).Servers["not_found"]; len(server.TLSConnPolicies) > 0 {
		t.Errorf("it serves TLS: %v", server.TLSConnPolicies)
	}
}
