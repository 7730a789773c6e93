// SPDX-License-Identifier: Apache-2.0

// Command fairlead-driver-haproxy is a driver of outside load balancers: it puts backends as servers on backends of an
// HAProxy on this machine, beside servers that are not its own. It is the worked example of docs/drivers.md.
//
// This package reads the command line, and serves; what is done is in internal/haproxy. Start reading at run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"fairlead.io/fairlead/internal/leave"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

const program = "fairlead-driver-haproxy"

func main() {
	ctx, stop := leave.Context(program, os.Exit)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run serves until ctx ends and returns the exit code: 0 done, 1 it failed, 2 the command line is wrong. A failure is one
// line on stderr, after the log.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	conf, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		complain(stderr, fmt.Errorf("%w; see `%s --help`", err, program))
		return exitUsage
	}
	if err := serve(ctx, conf, stderr); err != nil {
		complain(stderr, err)
		return exitFailed
	}
	return exitDone
}

// complain writes an error as exactly one line.
func complain(stderr io.Writer, err error) {
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", program, strings.Join(strings.Fields(err.Error()), " ")) // nobody is left to tell
}
