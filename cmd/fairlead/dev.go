// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/dev"
)

func newDev(c *cli) *cobra.Command {
	o := dev.Options{Members: 3, Manifests: "examples/quickstart", Timeout: 30 * time.Second}
	level := "error"
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Try it: three members, a switch and nodes in one process, without root",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.format == output.YAML {
				return usagef("dev prints a table or JSON: -o table or -o json")
			}
			var err error
			if o.Level, err = config.Level(level); err != nil {
				return usagef("--log: %w", err)
			}
			o.Stdout, o.Stderr, o.JSON, o.Version = c.out, c.err, c.format == output.JSON, thisBuild().Version
			o.Terminal, o.ContextLink = isTerminal(c.out), defaultContext(c.getenv)
			return dev.Run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Members, "members", o.Members, "how many members, from 1 to 9")
	flags.StringVar(&o.Manifests, "manifests", o.Manifests, "folder of Kubernetes manifests")
	flags.StringVar(&o.Data, "data", "", "folder to keep everything in; without it all is forgotten at the end")
	flags.BoolVar(&o.Once, "once", false, "wait until record and switch agree, print, and end")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "how long --once waits")
	flags.StringVar(&level, "log", level, "what to log to standard error: debug, info, warn or error")
	complete(cmd, "log", config.Levels()...)
	cmd.AddCommand(
		newDevOrder(c, "kill", "Stop a member of a running `fairlead dev`"),
		newDevOrder(c, "start", "Start a stopped member of a running `fairlead dev`"),
	)
	return cmd
}

func newDevOrder(c *cli, verb, short string) *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   verb + " N",
		Short: short,
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if data == "" {
				data = dev.DataOf(firstSet(c.contextFile, c.getenv("FAIRLEAD_CONTEXT"), defaultContext(c.getenv)))
			}
			return dev.Order(cmd.Context(), data, verb, args[0])
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "the folder of that fairlead dev; without it that of the context file")
	return cmd
}

func firstSet(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// isTerminal tells whether somebody looks at w.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
