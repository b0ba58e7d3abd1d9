// pulumi-language-yaml: the published language host of YAML programs, which answers `Link` as well.
//
// The newest one that the Go module proxy has is of before that call, and `pulumi package add` ends with an error
// without it. A YAML program needs no link: it names the package in Pulumi.yaml.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/pulumi/pulumi-yaml/pkg/server"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
)

const healthInterval = 5 * time.Minute

type host struct {
	pulumirpc.LanguageRuntimeServer
}

func (host) Link(_ context.Context, _ *pulumirpc.LinkRequest) (*pulumirpc.LinkResponse, error) {
	return &pulumirpc.LinkResponse{ImportInstructions: "You can use its resources by their types in Pulumi.yaml."}, nil
}

func main() {
	flag.String("tracing", "", "as the engine gives it; not used")
	flag.String("root", "", "as the engine gives it; not used")
	flag.Parse()
	if err := serve(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers the engine at the address until it is gone or interrupts.
func serve(engine string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if engine != "" {
		if err := rpcutil.Healthcheck(ctx, engine, healthInterval, cancel); err != nil {
			return fmt.Errorf("could not watch the engine: %w", err)
		}
	}
	end := make(chan bool)
	go func() {
		<-ctx.Done()
		close(end)
	}()
	handle, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Cancel: end,
		Init: func(made *grpc.Server) error {
			pulumirpc.RegisterLanguageRuntimeServer(made, host{server.NewLanguageHost(engine, "", false)})
			return nil
		},
	})
	if err != nil {
		return fmt.Errorf("could not serve: %w", err)
	}
	fmt.Println(handle.Port)
	return <-handle.Done
}
