// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"log/slog"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/fsm"
)

// Recover makes a group of one out of the data folder of a member that does not run, after a quorum was lost for
// good. See cluster.Recover.
//
// Confirm may be nil: nobody is asked.
func Recover(c config.Controller, edges Edges, confirm func(others []cluster.Peer) error, log *slog.Logger) (cluster.Recovered, error) {
	folder, err := edges.Folder(c.DataDir, c.Name)
	if err != nil {
		return cluster.Recovered{}, err
	}
	defer func() { _ = folder.Close() }() // everything is on disk by then
	if err := knows(folder); err != nil {
		return cluster.Recovered{}, err
	}
	record := fsm.New()
	done, err := cluster.Recover(cluster.RecoverOptions{
		Name: c.Name, Instance: folder.Identity().Instance, Address: c.Advertise.Raft,
		Stores: folder.Stores(), Path: folder.Path(), Machine: cluster.Record{State: record}, NewMachine: newRecord,
		Encode: func(ps []cluster.Proposal) ([]byte, error) { return fsm.EncodeEntry(0, ps) }, // NewEpoch names its own
		Renew:  recovered, Confirm: confirm,
		Log: log,
	})
	if err != nil {
		return cluster.Recovered{}, err
	}
	if done.Again {
		done.Others = formerMembers(record.Read(), c.Name)
	}
	// What there is counts from now on for all that ever was.
	return done, errors.Join(edges.floor(c, done.ServerID).Forget(), folder.SetRemoved(false), folder.SetDiffers(""))
}

// formerMembers are the members other than one that a record names: a folder that was recovered twice has them nowhere else.
func formerMembers(v *fsm.View, self string) (others []cluster.Peer) {
	for _, m := range fsm.List[*fsm.Member](v, fsm.TableMembers) {
		if m.Name != self {
			others = append(others, cluster.Peer{ID: string(m.Server), Name: m.Name, Address: m.Raft})
		}
	}
	return others
}
