// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"fairlead.io/fairlead/e2e/demo/internal/sandbox"
	"fairlead.io/fairlead/e2e/kubetest"
)

func main() {
	if identity := os.Getenv(servePod); identity != "" {
		fmt.Fprintln(os.Stderr, serve(identity))
		os.Exit(exitFailed)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes, as of every command here.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// Options say what the demo does.
type Options struct {
	Binary string   // the shipped command
	Only   []string // names of steps, in order; none: all
	JSON   string   // file for the figures; empty: none
	Keep   bool     // leave everything running at the end, until a signal
	Logs   string   // folder for logs; empty: they go with the demo
	Dir    string   // folder for everything else
	// Stateless has the switch forget which next hop a flow had: it re-hashes all flows whenever next hops change.
	Stateless bool
	// Shorter makes steps shorter than the documents say, for tests.
	Shorter bool
	// Patient is for tests, which share their machine: requests are judged by their packets, not by the clock, a while is not
	// over before clients got something done in it, and nothing but what a step does has anybody give anybody up.
	Patient bool
}

func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		fmt.Fprintln(stderr, "demo:", err)
		return exitUsage
	}
	if !sandbox.Inside() && os.Geteuid() == 0 {
		// Before there is no network any more to build them with.
		_, err = kubetest.Binaries(context.Background(), stderr)
	}
	if err == nil {
		var code int
		var ran bool
		if code, ran, err = sandbox.Enter(); err == nil && ran {
			return code
		}
	}
	if err == nil {
		o.Dir = sandbox.Dir()
		if o.Logs == "" {
			o.Logs = filepath.Join(o.Dir, "log")
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		err = demonstrate(ctx, o, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "demo:", err)
		return exitFailed
	}
	return exitDone
}

func parse(args []string, stderr io.Writer) (Options, error) {
	var o Options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.Binary, "fairlead", "bin/fairlead", "the `command` that members and agents run")
	flags.StringVar(&o.JSON, "json", "", "also write the figures to this `file`")
	flags.BoolVar(&o.Keep, "keep", false, "leave everything running at the end, and say how to look around")
	flags.StringVar(&o.Logs, "log", "", "keep the logs of all parts in this `folder`")
	flags.BoolVar(&o.Stateless, "stateless-switch", false, "have the switch move established flows, too, whenever next hops change")
	only := flags.String("only", "", "run these `steps`, separated by commas, in this order")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("arguments: %w", err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	for _, name := range o.Only {
		if all := namesOf(slices.Concat(steps, asked)); !slices.Contains(all, name) {
			return o, fmt.Errorf("no step %q; there are: %s", name, strings.Join(all, ", "))
		}
	}
	for _, path := range []*string{&o.Binary, &o.JSON, &o.Logs} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return o, err
		}
	}
	return o, nil
}

// demonstrate builds the world, takes it through the steps, and tells.
func demonstrate(ctx context.Context, o Options, stdout, progress io.Writer) (err error) {
	if _, err := os.Stat(o.Binary); err != nil {
		return fmt.Errorf("the command that members run: %w; `make demo` builds it", err)
	}
	w := newWorld(o, progress)
	defer func() { err = errors.Join(err, w.end()) }()
	err = w.show(ctx, stdout)
	if ctx.Err() != nil {
		return errors.New("interrupted; everything is taken down")
	}
	if o.Keep {
		if err != nil {
			w.sayf("demo: %v", err)
		}
		err = errors.Join(err, w.showAround(ctx))
	}
	return err
}

// show goes from nothing to the last step.
func (w *world) show(ctx context.Context, stdout io.Writer) error {
	if err := w.build(ctx); err != nil {
		return err
	}
	if err := w.right(ctx); err != nil {
		return err
	}
	r, err := perform(ctx, w, stdout)
	if w.o.JSON != "" {
		err = errors.Join(err, r.write(w.o.JSON))
	}
	return err
}

// showAround tells how to look at what runs, and waits for a signal.
func (w *world) showAround(ctx context.Context) error {
	pid, err := sandbox.OuterPID()
	if err != nil {
		return err
	}
	w.sayf(`
Everything runs until Ctrl-C. In another terminal, as root:
  nsenter --target %[1]s --mount --net bash        # then, in there:
  ip netns                                         # client switch n1..n3 m1..m3 pod-…
  ip netns exec client curl http://%[2]s/
  ip netns exec switch ip route show %[2]s
  birdc -s %[3]s show route all
  ip netns exec n1 ip rule; ip netns exec n1 nft list ruleset
  %[4]s --context %[5]s get routes
  logs: %[6]s`, pid, services[0].address, w.border.socket, w.o.Binary, w.context, w.logs)
	<-ctx.Done()
	return nil
}
