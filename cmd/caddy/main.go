// Command caddy is Caddy with its standard modules and not_found, built from a checkout.
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
