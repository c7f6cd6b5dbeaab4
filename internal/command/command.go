// Package command has the subcommands of `caddy not-found`.
package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-notfound/notfound/internal/page"
)

// CheckTemplate checks the file of a template, perhaps after its format.
type CheckTemplate func(args []string) error

// Register registers the command, which alone prints its help.
func Register(check CheckTemplate) {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "not-found",
		Usage: "<command>",
		Short: "Reports missing addresses, and helps to write a 404 page",
		CobraFunc: func(cmd *cobra.Command) {
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			cmd.AddCommand(reportCommand(), exportCommand(), checkCommand(check))
		},
	})
}

func exportCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "export-template [<format>]",
		Short:   "Exports the built-in page, in HTML or another format, as a starting point for a template",
		Example: "caddy not-found export-template > 404.html",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			format := "html"
			if len(args) > 0 {
				format = args[0]
			}
			source, err := page.BuiltIn(format)
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), source)
			return err
		},
	}
}

func checkCommand(check CheckTemplate) *cobra.Command {
	return &cobra.Command{
		Use:     "check-template [<format>] <file>",
		Short:   "Checks a template for HTML or another format, as a reload of the config does",
		Example: "caddy not-found check-template 404.html",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := check(args)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "Valid template")
			}
			return err
		},
	}
}
