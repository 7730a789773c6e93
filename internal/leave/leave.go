// SPDX-License-Identifier: Apache-2.0

// Package leave ends a process that was told to, whatever it waits for.
//
// Start reading at Context.
package leave

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Within is how long a process may take to end when it is told to. Those who start members wait for 15 s (deploy).
const Within = 12 * time.Second

// Context ends with the first SIGINT, SIGTERM or SIGHUP; a process that was started to outlive its terminal (nohup) goes on at SIGHUP. A second one ends the process at once. So does time, by exit with code 1 after a line on
// standard error: what a process waits for, a file or a peer, may never come. stop gives signals back their old meaning.
func Context(program string, exit func(code int)) (ctx context.Context, stop context.CancelFunc) {
	return bounded(program, Within, exit)
}

func bounded(program string, within time.Duration, exit func(code int)) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, func() {
		stop()
		time.Sleep(within)
		fmt.Fprintf(os.Stderr, "%s: has not ended within %s of a signal, and ends now: what it waited for did not come\n", program, within)
		exit(1)
	})
	return ctx, stop
}
