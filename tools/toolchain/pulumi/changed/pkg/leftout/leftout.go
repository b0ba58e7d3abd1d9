// Package leftout answers for what this build of the CLI does not have.
package leftout

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Error says that `what` is missing here, and where it is.
func Error(what string) error {
	return fmt.Errorf("this Pulumi CLI was built for Google Cloud, without %s; "+
		"put the official release of the same version first on PATH to use it: "+
		"https://www.pulumi.com/docs/install/", what)
}

// Command is one that always fails with Error.
func Command(name string) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Short:              "(not in this build)",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Error("`" + cmd.CommandPath() + "`")
		},
	}
}
