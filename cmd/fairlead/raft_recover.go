// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/member"
)

// recovered is what `fairlead raft recover` prints.
type recovered struct {
	ServerID string   `json:"serverId"`
	Index    uint64   `json:"index"` // of the record that the group goes on with
	Wipe     []wiping `json:"wipe"`  // whose data folders can never rejoin as they are
}

// wiping is a former member.
type wiping struct {
	Name     string `json:"name"`
	ServerID string `json:"serverId"`
	Address  string `json:"address"`
}

// WriteTable tells what to do next, then a member to wipe a line.
func (r recovered) WriteTable(w io.Writer) error {
	next := "start this member"
	if len(r.Wipe) > 0 {
		next += "; empty the data folders of those below before you start them: they join again as new servers"
	}
	err := output.WriteFields(w, [2]string{"recovered", fmt.Sprintf("%s at index %d", r.ServerID, r.Index)}, [2]string{"next", next})
	if err != nil || len(r.Wipe) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	var rows [][]string
	for _, m := range r.Wipe {
		rows = append(rows, []string{m.Name, m.ServerID, m.Address})
	}
	return output.WriteRows(w, []string{"WIPE", "SERVER-ID", "RAFT"}, rows)
}

// recoverer makes a group of one out of a member's data folder.
type recoverer func(config.Controller, *slog.Logger) (cluster.Recovered, error)

// recoverHere is the recoverer of folders on this machine.
func recoverHere(conf config.Controller, log *slog.Logger) (cluster.Recovered, error) {
	return member.Recover(conf, machine.Member(machine.Listeners{}), log)
}

func newRaftRecover(c *cli, recoverFolder recoverer) *cobra.Command {
	var path string
	var yes bool
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Make a group of one out of a stopped member's data folder, when a quorum is lost for good",
		Long: "Make a group of one out of a stopped member's data folder, when a quorum is lost for good.\n\n" +
			"Stop every member that is left, choose the one whose log is the newest (`fairlead raft status` shows what\n" +
			"each has applied), and run this on its machine. It begins a new epoch: the former members are refused until\n" +
			"their data folders are emptied. It prints which those are.",
		Args: arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			conf, err := config.LoadController(path)
			if err != nil {
				return err
			}
			if _, err := os.Stat(conf.DataDir); err != nil { // opening it would make one
				return fmt.Errorf("raft recover: data folder: %w; run it on the machine of the member to recover", err)
			}
			if !yes {
				return usagef("%s becomes a group of its own and all other members must be wiped, which cannot be undone: stop every member, then repeat it with --yes", conf.DataDir)
			}
			done, err := recoverFolder(conf, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			answer := recovered{ServerID: done.ServerID, Index: uint64(done.Index), Wipe: []wiping{}}
			for _, other := range done.Others {
				answer.Wipe = append(answer.Wipe, wiping{Name: other.Name, ServerID: other.ID, Address: other.Address})
			}
			return c.print(answer)
		},
	}
	cmd.Flags().StringVar(&path, "config", "/etc/fairlead/controller.yaml", "configuration of the member")
	cmd.Flags().BoolVar(&yes, "yes", false, "every member is stopped, go ahead")
	return cmd
}
