// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand walks the whole command line.
func everyCommand(t *testing.T, look func(*cobra.Command)) {
	t.Helper()
	c := &cli{in: strings.NewReader(""), out: io.Discard, err: io.Discard, getenv: func(string) string { return "" }}
	n := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		n++
		look(cmd)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(c, commands(c)...))
	if n < 40 {
		t.Fatalf("only %d commands", n)
	}
}

// The help of a flag takes what stands between back-ticks for the name of its value, and leaves the back-ticks out.
func TestHelpsOfFlagsKeepTheirWords(t *testing.T) {
	everyCommand(t, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "`") {
				t.Errorf("%s --%s: %s", cmd.CommandPath(), f.Name, f.Usage)
			}
		})
	})
}

// Whatever flag takes one of few words, or the name of something that can be listed, has them completed.
func TestFlagsOfFewWordsAreCompleted(t *testing.T) {
	enumerated := map[string]bool{"output": true, "log": true, "what-if": true, "in-place-of": true}
	seen := map[string]bool{}
	everyCommand(t, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !enumerated[f.Name] || cmd.HasParent() && cmd.InheritedFlags().Lookup(f.Name) != nil {
				return
			}
			seen[f.Name] = true
			if _, completed := cmd.GetFlagCompletionFunc(f.Name); !completed {
				t.Errorf("%s --%s is not completed", cmd.CommandPath(), f.Name)
			}
		})
	})
	if len(seen) != len(enumerated) {
		t.Errorf("of %v only %v were seen", enumerated, seen)
	}
}
