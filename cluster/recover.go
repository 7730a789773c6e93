// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// RecoverOptions is what a folder is recovered with. All fields are required.
type RecoverOptions struct {
	Name, Instance string
	Address        string // where this member will be reached
	Stores         store.Stores
	Path           string
	Machine        Machine        // an empty one
	NewMachine     func() Machine // as in Options
	Encode         func([]Proposal) ([]byte, error)
	Renew          func(recovered Machine) ([]Proposal, error)
	// Confirm is asked about the other servers of the group before anything is changed; nil: nobody is.
	Confirm func(others []Peer) error
	Log     *slog.Logger
}

// Recovered is what became of a folder.
type Recovered struct {
	ServerID string
	Index    Index // of the new snapshot
	// Others were members. Their folders belong to the former life of the group: they must be emptied before those
	// members join again, and are refused until then.
	Others []Peer
	// Again tells that the folder had been recovered, and was not used since: its configuration names no others any more.
	Again bool
}

// Recover makes a group of one of a member's folder, after a quorum was lost for good. No process may use the folder.
// Everything in its log counts as committed, which may include what never was; the renewal (a new epoch) is part of
// the result, so that the group cannot act as its former self. Repeating an interrupted Recover is safe.
//
// Errors: *store.Error when the folder cannot be believed.
func Recover(o RecoverOptions) (Recovered, error) {
	id := ServerID(o.Name, o.Instance)
	guard := store.NewGuard(o.Path, o.Stores)
	r := &recovery{adapter: adapter{
		machine: o.Machine, newMachine: o.NewMachine, fail: func(error) {}, changed: func() {}, replacing: func() {},
	}, o: o}
	found, err := guard.Check(func(in io.Reader) error { return r.load(in.(*store.Snapshot)) })
	if err != nil {
		return Recovered{}, fmt.Errorf("recover: %w", err)
	}
	if found.Empty() {
		return Recovered{}, fmt.Errorf("recover %s: the folder holds nothing; choose the member with the newest log", o.Path)
	}
	r.last, r.lastTerm = Index(found.Last), found.LastTerm
	out := Recovered{ServerID: id, Index: r.last + 1, Again: r.recoveredBefore(found)}
	for _, s := range found.Configuration.Servers {
		if s.ID != raft.ServerID(id) {
			out.Others = append(out.Others, Peer{ID: string(s.ID), Name: NameOf(string(s.ID)), Address: string(s.Address)})
		}
	}
	if o.Confirm != nil {
		if err := o.Confirm(out.Others); err != nil {
			return Recovered{}, fmt.Errorf("recover: %w", err)
		}
	}
	stores := guard.Checked()
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(id)
	config.Logger = newRaftLog(o.Log)
	_, nowhere := raft.NewInmemTransport(raft.ServerAddress(o.Address)) // the library only asks it how to write an address
	err = raft.RecoverCluster(config, r, stores.Log, stores.Stable, &shifted{stores.Snapshots}, nowhere, raft.Configuration{
		Servers: []raft.Server{{Suffrage: raft.Voter, ID: raft.ServerID(id), Address: raft.ServerAddress(o.Address)}},
	})
	if err := cmp.Or(guard.Err(), r.broken, err); err != nil {
		return Recovered{}, fmt.Errorf("recover: %w", err)
	}
	return out, nil
}

// recovery is the state machine while a folder is recovered: the last thing that happens to it is the renewal.
type recovery struct {
	adapter
	o        RecoverOptions
	last     Index
	lastTerm uint64
}

// recoveredBefore tells whether a folder is as Recover leaves it: a snapshot with a group of one, and nothing behind. A leader begins with an entry.
func (r *recovery) recoveredBefore(found store.Found) bool {
	servers := found.Configuration.Servers
	return found.Snapshot == found.Last && len(servers) == 1 && servers[0].ID == raft.ServerID(ServerID(r.o.Name, r.o.Instance))
}

// Restore is called once, and what is behind the snapshot is applied at once. The library would take an older one if it heard of an error.
func (r *recovery) Restore(in io.ReadCloser) error {
	snapshot, err := snapshotOf(in)
	if err != nil {
		return err
	}
	r.broken = r.load(snapshot)
	return nil
}

// Snapshot is called once, after everything was applied.
func (r *recovery) Snapshot() (raft.FSMSnapshot, error) {
	if r.broken != nil {
		return nil, r.broken
	}
	r.giveUp() // a backup that was being restored is not part of what is recovered
	renewal, err := renewalOf(r.machine, r.o.Renew, r.o.Encode)
	if err != nil {
		return nil, err
	}
	if err := renewed(r.machine, LogEntry{Index: r.last + 1, Term: r.lastTerm, Data: renewal}); err != nil {
		return nil, err
	}
	return r.adapter.Snapshot()
}

// shifted makes room for the renewal: the snapshot of a recovery ends one index behind the log.
type shifted struct{ raft.SnapshotStore }

func (s *shifted) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, trans raft.Transport,
) (raft.SnapshotSink, error) {
	return s.SnapshotStore.Create(version, index+1, term, configuration, configurationIndex, trans)
}
