// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/dataplane/sock/program"
)

// cleanable are the tables that can be emptied, in the order in which all of them are: nobody is led to what is gone already.
var cleanable = []struct {
	name, then string
	kept       bool // by the agent, which fills it anew
}{
	{"places", "calls to service addresses are not resolved until the agent has filled it anew", true},
	{"endpoints", "calls to service addresses are refused until the agent has filled it anew", true},
	{"nodes", "calls to node ports are not resolved until the agent has filled it anew", true},
	{"affinity", "clients with affinity may get another endpoint", false},
	{"flows", "sockets of datagrams that are not connected may get another endpoint", false},
	{"sockets", "sockets see the address of their endpoint as their peer's, and are not ended when it leaves", false},
}

// everyTable is the word for all of them.
const everyTable = "all"

// inspectedClean is what `fairlead inspect clean` prints.
type inspectedClean struct {
	Tables     []cleanedTable `json:"tables"`
	Comparison string         `json:"comparison"` // begun by the agent; asked for, and no agent has begun yet; empty if the agent has nothing to fill
}

// cleanedTable is one that was emptied.
type cleanedTable struct {
	Table   string `json:"table"`
	Removed int    `json:"removed"` // rows
}

// WriteTable writes a line a table.
func (c inspectedClean) WriteTable(w io.Writer) error {
	rows := make([][]string, 0, len(c.Tables))
	for _, one := range c.Tables {
		rows = append(rows, []string{one.Table, strconv.Itoa(one.Removed)})
	}
	if err := output.WriteRows(w, []string{"TABLE", "REMOVED"}, rows); err != nil {
		return err
	}
	text := map[string]string{
		"begun": "\nThe agent fills them anew.\n",
		"asked": "\nNo agent has begun to fill them anew: is one running? It does so when it starts.\n",
	}[c.Comparison]
	_, err := io.WriteString(w, text)
	return err
}

// clean makes the command that empties tables.
func (in *inspection) clean() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "clean TABLE",
		Short: "Remove all rows of a table in the kernel",
		Long: "Remove all rows of a table in the kernel: places, endpoints, nodes, affinity, flows, sockets, or all of these.\n" +
			"The first three are the agent's, which is asked to fill them anew at once; the others are what clients left.",
		Args:              arguments(1, 1),
		ValidArgsFunction: cobra.FixedCompletions(tableNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			return in.cleanTable(args[0], yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func tableNames() (out []string) {
	for _, t := range cleanable {
		out = append(out, t.name)
	}
	return append(out, everyTable)
}

func (in *inspection) cleanTable(name string, yes bool) error {
	var then []string
	for _, t := range cleanable {
		if name == t.name || name == everyTable {
			then = append(then, t.then)
		}
	}
	if len(then) == 0 {
		return usagef("no table %q; it is one of %s", name, strings.Join(tableNames(), ", "))
	}
	if err := in.open(); err != nil {
		return err
	}
	defer in.tables.Close()
	if !yes {
		if err := in.confirm(fmt.Sprintf("Remove all rows of %s? Then %s.", name, strings.Join(then, "; "))); err != nil {
			return fmt.Errorf("inspect: %w", err)
		}
	}
	answer, err := cleanPins(in.pins, name)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	return in.print(answer)
}

// confirm asks on standard error, and fails unless the answer is yes.
func (c *cli) confirm(question string) error {
	if _, err := fmt.Fprintf(c.err, "%s [y/N] ", question); err != nil {
		return err
	}
	answer, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fmt.Errorf("nothing was removed: it takes the answer y, or --yes")
}

// cleanPins empties a table, or all of them, and asks the agent to fill its own anew.
func cleanPins(pins, name string) (inspectedClean, error) {
	answer := inspectedClean{Tables: []cleanedTable{}}
	kept := false
	for _, t := range cleanable {
		if name != t.name && name != everyTable {
			continue
		}
		if t.kept && !kept {
			// Before rows go, so that who ends in between leaves nothing that nobody puts right; and once more behind them.
			if err := program.Ask(pins); err != nil {
				return answer, err
			}
		}
		kept = kept || t.kept
		n, err := program.Clean(pins, t.name)
		if err != nil {
			return answer, err
		}
		answer.Tables = append(answer.Tables, cleanedTable{t.name, n})
	}
	if !kept {
		return answer, nil
	}
	if err := program.Ask(pins); err != nil {
		return answer, err
	}
	answer.Comparison = "asked"
	if begun(pins) {
		answer.Comparison = "begun"
	}
	return answer, nil
}

// beginWithin is how long an agent that runs may take to notice, three times what it does.
const beginWithin = 3 * time.Second

// begun waits until an agent has begun a comparison, and is false if none does.
func begun(pins string) bool {
	for end := time.Now().Add(beginWithin); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if !program.Asks(pins) {
			return true
		}
	}
	return false
}
