#!/usr/bin/env bash
# Caddy never calls a function that a module gives to Context.OnCancel, whose documentation says that it is executed when
# the context is cancelled. Cleanup is called. Caddy itself closes its logs by OnCancel, so the log file of each config
# that has gone stays open. The reason is that modules, and Caddy's openLogs, get the Context by value.
#
# github.com/caddyserver/caddy/v2 v2.11.9. Tried on 2026-11-28 with Go 1.26.8 on Linux. Seen:
#
#   config 1 runs, open log files: 1
#   Cleanup
#   config 2 runs, open log files: 2
#   Cleanup
#   no config runs, open log files: 2
#
# This exits with 1 if Caddy does otherwise.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/logging"
)

func init() { caddy.RegisterModule(app{}) }

type app struct{}

func (app) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "app", New: func() caddy.Module { return new(app) }}
}

func (app) Provision(ctx caddy.Context) error {
	ctx.OnCancel(func() { fmt.Println("OnCancel") })
	return nil
}

func (app) Start() error { return nil }
func (app) Stop() error  { return nil }

func (app) Cleanup() error {
	fmt.Println("Cleanup")
	return nil
}

func openLogs() (n int) {
	descriptors, _ := os.ReadDir("/proc/self/fd")
	for _, descriptor := range descriptors {
		name, _ := os.Readlink("/proc/self/fd/" + descriptor.Name())
		if filepath.Ext(name) == ".log" {
			n++
		}
	}
	return n
}

func main() {
	for i := 1; i <= 2; i++ {
		log := fmt.Sprintf(`{"output": "file", "filename": "%d.log", "roll": false}`, i)
		config := `{"admin": {"disabled": true, "config": {"persist": false}}, "apps": {"app": {}},
			"logging": {"logs": {"default": {"writer": ` + log + `}}}}`
		if err := caddy.Load([]byte(config), true); err != nil {
			panic(err)
		}
		fmt.Printf("config %d runs, open log files: %d\n", i, openLogs())
	}
	if err := caddy.Stop(); err != nil {
		panic(err)
	}
	fmt.Println("no config runs, open log files:", openLogs())
}
GO
(go mod init example.com/oncancel && go get github.com/caddyserver/caddy/v2/modules/logging@v2.11.9 && go build -o program .) 2>/dev/null
seen=$(./program 2>/dev/null)
printf '%s\n' "$seen"
[ "$seen" = 'config 1 runs, open log files: 1
Cleanup
config 2 runs, open log files: 2
Cleanup
no config runs, open log files: 2' ]
