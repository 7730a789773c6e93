// SPDX-License-Identifier: Apache-2.0

package member

import (
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
	recovered, err := cluster.Recover(cluster.RecoverOptions{
		Name: c.Name, Instance: folder.Identity().Instance, Address: c.Advertise.Raft,
		Stores: folder.Stores(), Path: folder.Path(), Machine: newRecord(), NewMachine: newRecord,
		Encode: func(ps []cluster.Proposal) ([]byte, error) { return fsm.EncodeEntry(0, ps) }, // NewEpoch names its own
		Renew:  recovered, Confirm: confirm,
		Log: log,
	})
	if err != nil {
		return cluster.Recovered{}, err
	}
	return recovered, folder.SetRemoved(false)
}
