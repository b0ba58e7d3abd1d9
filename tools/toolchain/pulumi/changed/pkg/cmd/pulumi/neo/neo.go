// Package neo stands in for the agent of Pulumi Cloud.
package neo

import (
	"github.com/spf13/cobra"

	"github.com/pulumi/pulumi/pkg/v3/leftout"
)

func NewNeoCmd() *cobra.Command { return leftout.Command("neo") }
