// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

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

// recoverer makes a group of one out of a member's data folder, once it was confirmed.
type recoverer func(c config.Controller, confirm func(others []cluster.Peer) error, log *slog.Logger) (cluster.Recovered, error)

// recoverHere is the recoverer of folders on this machine.
func recoverHere(conf config.Controller, confirm func([]cluster.Peer) error, log *slog.Logger) (cluster.Recovered, error) {
	return member.Recover(conf, machine.Member(machine.Listeners{}), confirm, log)
}

// answerWithin is how long another member has to take a connection.
const answerWithin = 2 * time.Second

// nobodyAnswers refuses to recover while another server of the group, or another member of the configuration, takes connections: the rest may
// still be a majority, or become one, and would go on without this one.
func nobodyAnswers(ctx context.Context, conf config.Controller, others []cluster.Peer) error {
	names := map[string]string{} // by address
	for _, m := range conf.Members {
		if m.Name != conf.Name {
			names[m.Raft] = m.Name
		}
	}
	for _, o := range others {
		names[o.Address] = o.Name
	}
	delete(names, conf.Advertise.Raft)
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var mu sync.Mutex
	var asked sync.WaitGroup
	var answered []string
	for address, name := range names {
		asked.Go(func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				return
			}
			_ = conn.Close() // it was only asked whether it is there
			mu.Lock()
			defer mu.Unlock()
			answered = append(answered, name+" at "+address)
		})
	}
	asked.Wait()
	if len(answered) == 0 {
		return nil
	}
	slices.Sort(answered)
	return fmt.Errorf("%s takes connections, so the quorum may not be lost: see `fairlead raft status`; if it is, stop every other member "+
		"first, or name --force, and wipe those that still run", strings.Join(answered, ", "))
}

func newRaftRecover(c *cli, recoverFolder recoverer) *cobra.Command {
	var path string
	var yes, force bool
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Make a group of one out of a stopped member's data folder, when a quorum is lost for good",
		Long: "Make a group of one out of a stopped member's data folder, when a quorum is lost for good.\n\n" +
			"Stop every member that is left, choose the one whose log is the newest (`fairlead raft status` shows what\n" +
			"each has applied), and run this on its machine. It begins a new epoch: the former members are refused until\n" +
			"their data folders are emptied. It prints which those are. While another member takes connections it is refused,\n" +
			"unless it is forced.",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			confirm := func(others []cluster.Peer) error { return nobodyAnswers(cmd.Context(), conf, others) }
			if force {
				confirm = nil
			}
			done, err := recoverFolder(conf, confirm, slog.New(slog.DiscardHandler))
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
	cmd.Flags().BoolVar(&force, "force", false, "go ahead although another member takes connections")
	return cmd
}
