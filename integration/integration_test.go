// Package integration tests not_found within a whole Caddy: what its clients, its backends and its operators see. What
// can be tested without a server is tested beside the code.
package integration

import _ "github.com/caddy-notfound/notfound" // registers the directive
