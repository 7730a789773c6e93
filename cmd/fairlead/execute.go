// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError says that the command line is wrong: nothing was tried.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef makes the error of a wrong command line, for what only a subcommand can judge.
func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// execute runs one command line below root. Whatever goes wrong before a subcommand's own code runs is usage.
func execute(ctx context.Context, root *cobra.Command, args []string, stderr io.Writer) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetHelpCommand(newHelp())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	started := false
	prepare(root, &started)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if word := firstWord(cmd, args); cmd.HasSubCommands() && word != "" {
			return onlySubcommands(cmd, []string{word}) // the flag may be right where the command is not
		}
		return err
	})
	root.SetArgs(append([]string{}, args...)) // with nil cobra would take those of the process
	cmd, err := root.ExecuteContextC(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage) || !started:
		complain(stderr, cmd, fmt.Errorf("%s%w; see `%s --help`", subject(cmd), err, cmd.CommandPath()))
		return exitUsage
	default:
		complain(stderr, cmd, err)
		return exitFailed
	}
}

// firstWord is what stands in the place of a subcommand of cmd; empty for nothing. Values of flags that cmd knows are none.
func firstWord(cmd *cobra.Command, args []string) string {
	known, rest, err := cmd.Root().Find(args)
	if err == nil && known != cmd {
		return ""
	}
	if err != nil {
		rest = args
	}
	for i := 0; i < len(rest); i++ {
		word := rest[i]
		switch {
		case !strings.HasPrefix(word, "-"):
			return word
		case strings.Contains(word, "="):
		default:
			name := strings.TrimLeft(word, "-")
			flag := cmd.Flag(name)
			if flag == nil && len(name) == 1 {
				flag = cmd.Flags().ShorthandLookup(name)
			}
			if flag != nil && flag.NoOptDefVal == "" {
				i++ // its value
			}
		}
	}
	return ""
}

// subject is what the error is about: the command without the program's name, as "raft add: ".
func subject(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return ""
	}
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") + ": "
}

// complain writes an error as exactly one line.
func complain(stderr io.Writer, cmd *cobra.Command, err error) {
	line := output.Clean(strings.Join(strings.Fields(err.Error()), " "))
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", cmd.Root().Name(), line) // nobody is left to tell
}

// prepare makes commands that only have subcommands refuse anything else, and notes when others start.
func prepare(cmd *cobra.Command, started *bool) {
	cmd.SuggestionsMinimumDistance = 2
	for _, sub := range cmd.Commands() {
		prepare(sub, started)
	}
	switch work := cmd.RunE; {
	case work != nil:
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return work(cmd, args)
		}
	case cmd.Run == nil && cmd.HasSubCommands():
		cmd.Args = onlySubcommands
		cmd.DisableFlagsInUseLine = true
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			return usagef("no command; it is one of %s", strings.Join(names(cmd), ", "))
		}
	}
}

func names(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

func onlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("unknown command %q%s", args[0], hint)
}

// arguments accepts from least to most of the arguments that the command's Use line names.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		_, want, _ := strings.Cut(cmd.Use, " ")
		switch {
		case len(args) == 0 && least > 0:
			return usagef("want %s", want)
		case len(args) < least:
			return usagef("want %s, got %q", want, args)
		case len(args) > most && most == 0:
			return usagef("want no arguments, got %q", args)
		case len(args) > most:
			return usagef("want only %s, got %q", want, args)
		}
		return nil
	}
}

// newHelp replaces cobra's help command, which succeeds on commands that do not exist.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(help *cobra.Command, args []string) error {
			cmd, rest, err := help.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("unknown command %q", strings.Join(args, " "))
			}
			return cmd.Help()
		},
	}
}
