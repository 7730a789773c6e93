// SPDX-License-Identifier: Apache-2.0

// Command bench measures what the documents promise, and writes one JSON object of figures (docs/benchmarks.md). It
// measures the shipped parts: the record in this process, everything else as processes of the shipped binary.
//
// Start reading at benchmarks.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"strings"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// Exit codes, as of every command here.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "run the benchmark of this `name` alone")
	file := flags.String("json", "", "write the figures to this `file` instead of standard output")
	profile := flags.String("profile", "", "write a processor profile of this process to this `file`")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitDone
		}
		return exitUsage
	}
	chosen, err := choose(*only)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("bench: unknown argument %q", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	if err := prepare(chosen, stderr); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	// The members and the switch live on the loopback of a network namespace of their own, as in the tests.
	if code, ran := lab.Isolate(); ran {
		return code
	}
	if err := measure(chosen, *file, *profile, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	return exitDone
}

// prepare builds the programs of Kubernetes that benchmarks need, before there is no network any more to do it with.
func prepare(chosen []benchmark, progress io.Writer) (err error) {
	if slices.ContainsFunc(chosen, func(b benchmark) bool { return b.kube }) {
		_, err = kubetest.Binaries(context.Background(), progress)
	}
	if err == nil && slices.ContainsFunc(chosen, func(b benchmark) bool { return b.proxy }) {
		_, err = kubetest.ProxyBinary(context.Background(), progress)
	}
	return err
}

// choose picks one benchmark by name, or all for no name.
func choose(name string) ([]benchmark, error) {
	all := benchmarks()
	if name == "" {
		return all, nil
	}
	var names []string
	for _, b := range all {
		if b.name == name {
			return []benchmark{b}, nil
		}
		names = append(names, b.name)
	}
	return nil, fmt.Errorf("bench: no benchmark %q; there are: %s", name, strings.Join(names, ", "))
}

// measure runs benchmarks one after the other, and writes what they gave even if one of them failed.
func measure(chosen []benchmark, file, profile string, stdout, progress io.Writer) (err error) {
	if profile != "" {
		stop, err := startProfile(profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	r := report{Machine: thisMachine(), Results: []result{}}
	for _, b := range chosen {
		fmt.Fprintf(progress, "%s …\n", b.name)
		one, failure := attempt(b, progress)
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", b.name, failure))
			continue
		}
		fmt.Fprintf(progress, "%s: %.4g %s\n", one.Name, one.Value, one.Unit)
		r.Results = append(r.Results, one)
	}
	text, encodeErr := json.MarshalIndent(r, "", "  ")
	if encodeErr != nil {
		return errors.Join(err, encodeErr)
	}
	text = append(text, '\n')
	if file == "" {
		_, writeErr := stdout.Write(text)
		return errors.Join(err, writeErr)
	}
	return errors.Join(err, os.WriteFile(file, text, 0o644))
}

func startProfile(file string) (stop func(), err error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close() // a profile that is cut says so when it is read
	}, nil
}
