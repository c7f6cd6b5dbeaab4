// Package command implements the subcommands of `caddy not-found`.
package command

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-notfound/notfound/internal/represent"
)

// CheckTemplate checks the files of a template. The name of their format may come first. It returns the number of files
// that it has read, and notes for the user.
type CheckTemplate func(args []string) (read int, notes []string, err error)

// Register registers the command. Without a subcommand, it prints its help.
func Register(check CheckTemplate) {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "not-found",
		Usage: "<command>",
		Short: "Helps to write a 404 page",
		CobraFunc: func(cmd *cobra.Command) {
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			cmd.AddCommand(exportCommand(), checkCommand(check))
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
			source, err := represent.BuiltIn(format)
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
		Use:     "check-template [<format>] <file...>",
		Short:   "Checks the files of a template for HTML or another format",
		Example: "caddy not-found check-template 404.html",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			read, notes, err := check(args)
			for _, note := range notes {
				fmt.Fprintln(cmd.OutOrStdout(), note)
			}
			if err != nil {
				return err
			}
			if read == 0 {
				return errors.New("there is no file to check")
			}
			fmt.Fprintln(cmd.OutOrStdout(), "Valid template")
			return nil
		},
	}
}
