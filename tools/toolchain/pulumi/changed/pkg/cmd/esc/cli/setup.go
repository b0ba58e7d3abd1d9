package cli

import (
	"github.com/spf13/cobra"

	"github.com/pulumi/pulumi/pkg/v3/leftout"
)

func newEnvSetupCmd(*envCommand) *cobra.Command { return leftout.Command("setup") }
