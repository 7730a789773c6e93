// SPDX-License-Identifier: Apache-2.0

// Command hunt shows whether the simulator's rules catch planted bugs: it builds the program that has them all, runs
// worlds with each until a rule breaks, and prints what broke. It fails if a bug survives its budget of seeds, or if a
// rule breaks without any. `make mutants` runs it, from the root of the source.
//
// Start reading at run; world.go plays.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/mutants"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// Exit codes, as of every command here.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// readme is where the table is kept.
const readme = "sim/README.md"

// options are the command's flags.
type options struct {
	only     string
	file     string
	write    bool
	list     bool
	seeds    int
	drawn    int
	first    uint64
	step     uint64
	duration time.Duration
	workers  int
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.only, "only", "", "hunt the bugs of these `names` alone, separated by commas")
	flags.StringVar(&o.file, "json", "", "write what became of each to this `file`")
	flags.BoolVar(&o.write, "write", false, "renew the table in "+readme)
	flags.BoolVar(&o.list, "list", false, "say which bugs there are, and hunt none")
	flags.IntVar(&o.seeds, "seeds", 25, "how many seeds to try with each bug")
	flags.IntVar(&o.drawn, "drawn", 2, "with how many of them to try bugs that have a scenario of their own in drawn worlds, too")
	flags.Uint64Var(&o.first, "first", 1, "the first seed")
	flags.Uint64Var(&o.step, "step", 1, "from one seed to the next: 6 from 5 on has all worlds that serve something at sockets")
	flags.DurationVar(&o.duration, "duration", time.Minute, "virtual time of a world, without what follows its faults")
	flags.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "worlds that run at once")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("mutants: unknown argument %q", flags.Arg(0))
	case o.seeds < 1 || o.workers < 1:
		err = errors.New("mutants: --seeds, --workers: want at least one")
	case o.step < 1:
		err = errors.New("mutants: --step: want at least 1")
	case o.drawn < 0:
		err = errors.New("mutants: --drawn: want at least 0")
	case o.duration <= 0:
		err = errors.New("mutants: --duration: want more than 0s")
	case o.write && o.only != "":
		err = errors.New("mutants: --write renews the table of all bugs: leave out --only")
	}
	return o, err
}

func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	var chosen []mutants.Mutant
	if err == nil {
		chosen, err = choose(o.only)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		fmt.Fprintln(stderr, err)
		return exitUsage
	case o.list:
		for _, m := range chosen {
			fmt.Fprintf(stdout, "%-28s %-8s %s\n", m.Name, strings.Join(m.Rules, " "), m.Breaks)
		}
		return exitDone
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := hunt(ctx, o, chosen, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "mutants:", err)
		return exitFailed
	}
	return exitDone
}

// choose picks bugs by name, or all for no name.
func choose(names string) ([]mutants.Mutant, error) {
	all, err := mutants.All()
	if err != nil || names == "" {
		return all, err
	}
	var chosen []mutants.Mutant
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(m mutants.Mutant) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("mutants: --only %s: there is no such planted bug; --list names them", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func hunt(ctx context.Context, o options, chosen []mutants.Mutant, stdout, stderr io.Writer) error {
	worlds, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer worlds.close()
	h := mutants.Hunt{World: worlds.play, Drawn: o.drawn, Workers: o.workers, Done: func(m mutants.Mutant, c mutants.Catch) { tell(stderr, m, c) }}
	for i := range o.seeds {
		h.Seeds = append(h.Seeds, o.first+uint64(i)*o.step)
	}
	catches, err := h.Run(ctx, chosen)
	if err != nil {
		return err
	}
	table := mutants.Table(chosen, catches)
	fmt.Fprint(stdout, table)
	if o.write {
		if err := mutants.WriteTable(readme, table); err != nil {
			return err
		}
	}
	if o.file != "" {
		if err := writeJSON(o.file, catches); err != nil {
			return err
		}
	}
	return judge(catches)
}

// tell is a line of progress.
func tell(to io.Writer, m mutants.Mutant, c mutants.Catch) {
	if !c.Caught {
		fmt.Fprintf(to, "%s: survived %d seeds, %.0f virtual seconds; expected was %s\n", c.Name, c.Seeds, c.VirtualSeconds, strings.Join(m.Rules, " or "))
		return
	}
	fmt.Fprintf(to, "%s: caught by %s in seed %d after %.1f virtual seconds, in drawn worlds: %v: %s\n",
		c.Name, c.Rule, c.Seed, c.VirtualSeconds, c.Drawn, c.Text)
}

func writeJSON(path string, catches []mutants.Catch) error {
	text, err := json.MarshalIndent(map[string]any{"mutants": catches}, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return nil
}

// judge fails if a bug survived, or if a rule breaks without any.
func judge(catches []mutants.Catch) error {
	var errs []error
	if names := mutants.Survivors(catches); len(names) > 0 {
		errs = append(errs, fmt.Errorf("%d of %d planted bugs survived: %s", len(names), len(catches), strings.Join(names, ", ")))
	}
	for _, s := range mutants.SpoiledSeeds(catches) {
		errs = append(errs, fmt.Errorf("seed %d breaks %s without a planted bug: %s", s.Seed, s.Rule, s.Text))
	}
	return errors.Join(errs...)
}
