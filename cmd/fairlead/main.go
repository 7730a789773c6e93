// SPDX-License-Identifier: Apache-2.0

// Command fairlead is every process of Fairlead, and the command line of its operators. It wires packages
// together and holds no logic of its own.
//
// Start reading at run, then commands (root.go): a file per subcommand.
package main

import (
	"context"
	"io"
	"os"

	"fairlead.io/fairlead/dataplane/bgp/subprocess"
	"fairlead.io/fairlead/internal/leave"
)

func main() {
	if subprocess.IsChild() {
		os.Exit(subprocess.Main())
	}
	ctx, stop := leave.Context("fairlead", os.Exit)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit code: 0 done, 1 it failed, 2 the command line is wrong.
// A failure is exactly one line on stderr: what, on what, why, remedy.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &cli{in: stdin, out: stdout, err: stderr, getenv: os.Getenv}
	return execute(ctx, newRoot(c, commands(c)...), args, stderr)
}
