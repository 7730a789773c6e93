// SPDX-License-Identifier: Apache-2.0

// Command kubebin prints the folder of the Kubernetes binaries that tests run, and builds them first if they are not
// there yet.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"fairlead.io/fairlead/e2e/kubetest"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	os.Exit(run(ctx, os.Stdout, os.Stderr))
}

func run(ctx context.Context, stdout, stderr io.Writer) int {
	dir, err := kubetest.Binaries(ctx, stderr)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	fmt.Fprintln(stdout, dir)
	return 0
}
