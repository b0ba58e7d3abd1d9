package cloud

import (
	"github.com/spf13/cobra"

	"github.com/pulumi/pulumi/pkg/v3/leftout"
)

func NewAPICmd() *cobra.Command { return leftout.Command("api") }
