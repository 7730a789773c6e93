// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster/store"
)

// Transport is what carries the library's messages. Pre-vote is not optional: without it a member that was cut off
// comes back with a higher term and takes the leadership down.
type Transport interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// Forwarder carries proposals to the leader, over the API. It returns what Node.ProposeLocal returned there: errors
// must keep their identity (errors.Is with ErrNotLeader, ErrBusy, ErrUnknownOutcome), and a call that broke off after
// it may have arrived is ErrUnknownOutcome.
type Forwarder func(ctx context.Context, leader Peer, urgency Urgency, proposals []Proposal) ([]Outcome, error)

// Options is everything a member is made of. Fields without "optional" are required.
type Options struct {
	Name     string // the member's name; survives the loss of its folder
	Instance string // drawn when the data folder was made

	Stores    store.Stores
	Path      string // the data folder, for messages
	Transport Transport

	Machine    Machine
	NewMachine func() Machine // an empty one, for a backup that is restored
	// Encode makes one log entry of proposals. It is called on the leader only, once it has applied everything that
	// earlier leaders committed.
	Encode func([]Proposal) ([]byte, error)
	// Fit tells whether a log entry can hold a proposal, and how many bytes it then takes. It does not panic.
	Fit func(Proposal) (bytes int, err error)

	// Opening gives the proposals that a new leader commits before it accepts any other, nil for none. It is called
	// at the beginning of every term, once everything committed before is applied. The first leader of a new group
	// commits the group's id this way. Optional.
	Opening func() []Proposal
	// Renew gives what must be applied to the state of a restored backup before it counts: a new epoch. Required for
	// Restore.
	Renew func(restored Machine) ([]Proposal, error)

	Forward   Forwarder                                // optional: without it only the leader proposes
	Bootstrap *Bootstrap                               // optional: without it an empty member waits to be joined
	Join      func(context.Context, JoinRequest) error // optional: asks whoever leads to Admit this member

	// Floor is what this server promised since its machine booted, kept outside its folder: a folder below it was rolled back. Optional.
	Floor *store.Floor
	// Fresh says that the folder was made just now: nothing was ever promised by it.
	Fresh bool
	// Recall asks another member for its Node.Remembers of this server, where the floor is gone; optional: nobody is asked. One that cannot
	// know, being of an older release, remembers nothing, and this is no error.
	Recall func(ctx context.Context, member Peer) (Known, error)

	Log     *slog.Logger
	Metrics prometheus.Registerer // optional
	Tuning  Tuning                // zero fields take their default
}

// Tuning is what tests, simulations and unusual networks change.
type Tuning struct {
	// Heartbeat is how long a follower waits for its leader before it considers an election; a leader beats ten
	// times as often. Default 150 ms.
	Heartbeat time.Duration
	// Election is how long a candidate waits for votes before it tries again. At least Heartbeat, which is the default.
	Election time.Duration
	// Lease is how long a leader goes on without a quorum. At most Heartbeat, which is the default.
	Lease time.Duration
	// CommitNotice is within what time followers of an idle group learn that an entry was committed. Default 10 ms.
	CommitNotice time.Duration

	SnapshotInterval  time.Duration // how often to look whether a snapshot is due. Default 30 s
	SnapshotThreshold uint64        // entries since the last snapshot that make one due. Default 8,192
	TrailingLogs      uint64        // entries kept behind a snapshot, for followers a little behind. Default 10,240
	// MaxLogBytes is what the log's entries take at most. At half of it a snapshot is due, too, and a quarter of it is kept behind
	// one at most, however few entries that are. Default 256 MiB.
	MaxLogBytes uint64

	UrgentQueue int // commands waiting, at most. Default 4,096
	BulkQueue   int // commands waiting, at most. Default 8,192

	Stabilization time.Duration // how long a new server must be healthy before it gets a vote. Default 2 s
	MaxTrailing   uint64        // entries that a new server may be behind when it gets its vote. Default 128
}

func (t Tuning) withDefaults() Tuning {
	t.Heartbeat = cmp.Or(t.Heartbeat, 150*time.Millisecond)
	t.Election = cmp.Or(t.Election, t.Heartbeat)
	t.Lease = cmp.Or(t.Lease, t.Heartbeat)
	t.CommitNotice = cmp.Or(t.CommitNotice, 10*time.Millisecond)
	t.SnapshotInterval = cmp.Or(t.SnapshotInterval, 30*time.Second)
	t.SnapshotThreshold = cmp.Or(t.SnapshotThreshold, 8192)
	t.TrailingLogs = cmp.Or(t.TrailingLogs, 10240)
	t.MaxLogBytes = cmp.Or(t.MaxLogBytes, 256<<20)
	t.UrgentQueue = cmp.Or(t.UrgentQueue, 4096)
	t.BulkQueue = cmp.Or(t.BulkQueue, 8192)
	t.Stabilization = cmp.Or(t.Stabilization, 2*time.Second)
	t.MaxTrailing = cmp.Or(t.MaxTrailing, 128)
	return t
}

func (o *Options) validate() error {
	var missing []string
	require := func(ok bool, name string) {
		if !ok {
			missing = append(missing, name)
		}
	}
	require(o.Name != "", "Name")
	require(o.Instance != "", "Instance")
	require(o.Stores.Log != nil, "Stores.Log")
	require(o.Stores.Stable != nil, "Stores.Stable")
	require(o.Stores.Snapshots != nil, "Stores.Snapshots")
	require(o.Transport != nil, "Transport")
	require(o.Machine != nil, "Machine")
	require(o.NewMachine != nil, "NewMachine")
	require(o.Encode != nil, "Encode")
	require(o.Fit != nil, "Fit")
	require(o.Log != nil, "Log")
	if len(missing) > 0 {
		return fmt.Errorf("cluster options: missing %s", strings.Join(missing, ", "))
	}
	if strings.Contains(o.Instance, "-") {
		return fmt.Errorf("cluster options: instance %q holds a dash, which ends the member's name in a server id", o.Instance)
	}
	if o.Bootstrap != nil {
		if err := o.Bootstrap.validate(o.Name, string(o.Transport.LocalAddr())); err != nil {
			return fmt.Errorf("cluster options: %w", err)
		}
	}
	if o.Tuning.Lease > o.Tuning.Heartbeat {
		return errors.New("cluster options: the lease is longer than the heartbeat timeout: two members could lead at once")
	}
	return nil
}

// ServerID is the Raft server id of a member's instance.
func ServerID(name, instance string) string { return name + "-" + instance }

// NameOf is the member's name in a server id.
func NameOf(serverID string) string {
	if i := strings.LastIndexByte(serverID, '-'); i >= 0 {
		return serverID[:i]
	}
	return serverID
}

// raftConfig translates to the library's words.
func (o *Options) raftConfig(notify chan<- bool) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(ServerID(o.Name, o.Instance))
	c.HeartbeatTimeout = o.Tuning.Heartbeat
	c.ElectionTimeout = o.Tuning.Election
	c.LeaderLeaseTimeout = o.Tuning.Lease
	c.CommitTimeout = o.Tuning.CommitNotice
	c.SnapshotInterval, c.SnapshotThreshold = libraryInterval, math.MaxUint64 // see runCompaction
	c.TrailingLogs = o.Tuning.TrailingLogs
	c.NotifyCh = notify
	c.Logger = newRaftLog(o.Log)
	c.NoLegacyTelemetry = true
	c.ShutdownOnRemove = false // the library would stop without anybody being able to wait for it: see runBelonging
	// Check restored the newest snapshot already, and refused to fall back to an older one.
	c.NoSnapshotRestoreOnStart = true
	return c
}
