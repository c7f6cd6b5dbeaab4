// Command caddy is Caddy with its standard modules and not_found, for trying the module from a
// checkout. A production binary is better built with xcaddy, which stamps the version in.
package main

import (
	_ "time/tzdata"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddy-notfound/notfound"
)

func main() {
	caddycmd.Main()
}
