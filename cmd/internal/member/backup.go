// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
)

// Backup writes the record. Without force only a leader that a quorum confirms does, so that nothing is missing.
func (g *adminGroup) Backup(ctx context.Context, w io.Writer, change admin.Change) (admin.Backup, error) {
	if !change.Force {
		if err := g.node.VerifyLeader(ctx); err != nil {
			return admin.Backup{}, refusal("backup", err)
		}
	}
	header, err := g.node.Backup(ctx, w)
	if err != nil {
		return admin.Backup{}, refusal("backup", err)
	}
	group, epoch, format := g.state.Identity()
	return admin.Backup{
		Group: string(group), Format: format, Revision: admin.Revision{Epoch: uint64(epoch), Index: uint64(header.Index)},
	}, nil
}

// Restore replaces the record by a backup in a new epoch. A backup of another group is refused without force: its
// addresses and balancers are not this group's to touch.
func (g *adminGroup) Restore(ctx context.Context, r io.Reader, dryRun bool, change admin.Change) (admin.Restored, error) {
	ours, _, _ := g.state.Identity()
	before := g.state.Read()
	if !change.Force || dryRun {
		spool, err := spooled(r)
		if err != nil {
			return admin.Restored{}, err
		}
		defer spool.Close()
		would, err := g.node.Restore(ctx, spool, true)
		if err != nil {
			return admin.Restored{}, restoreError(err)
		}
		if theirs, _, _ := identityOf(would.State); theirs != ours && !change.Force {
			return admin.Restored{}, &admin.Refusal{
				Code: admin.Invalid, What: "restore", Why: fmt.Sprintf("the backup is of group %s, this is %s", theirs, ours),
				Remedy: "check that it is the right file; --force restores it all the same", ForceOverrides: true,
			}
		}
		if dryRun {
			return restoredOf(before, would), nil
		}
		if _, err := spool.Seek(0, io.SeekStart); err != nil {
			return admin.Restored{}, fmt.Errorf("restore: read the backup again: %w", err)
		}
		r = spool
	}
	done, err := g.node.Restore(ctx, r, false)
	if err != nil {
		return admin.Restored{}, restoreError(err)
	}
	return restoredOf(before, done), nil
}

func restoreError(err error) error {
	if errors.Is(err, cluster.ErrNotABackup) {
		return &admin.Refusal{Code: admin.Invalid, What: "restore", Why: err.Error()}
	}
	return refusal("restore", err)
}

func identityOf(m cluster.Machine) (fsm.GroupID, fsm.Epoch, uint32) {
	if record, ok := m.(cluster.Record); ok {
		return record.Identity()
	}
	return "", 0, 0
}

func restoredOf(before *fsm.View, r cluster.Restored) admin.Restored {
	record, ok := r.State.(cluster.Record)
	if !ok {
		return admin.Restored{}
	}
	after := record.Read()
	listed, more := fsm.Diff(before, after, admin.MaxDifferences)
	out := admin.Restored{More: uint64(more)}
	rev := after.Revision()
	out.Revision = admin.Revision{Epoch: uint64(rev.Epoch), Index: uint64(r.Index)}
	for _, d := range listed {
		out.Differences = append(out.Differences, d.String())
	}
	return out
}

// renewAfter gives what opens the next epoch of a group from an earlier record: one above the record's and above that of live, this
// member's copy. A restore is of the lineage that the group's log is of, if the record can say so. Members that can read the format of the
// copy may not be able to read a newer one, which is refused.
func renewAfter(live *fsm.State, cause string) func(cluster.Machine) ([]cluster.Proposal, error) {
	return func(restored cluster.Machine) ([]cluster.Proposal, error) {
		group, epoch, format := identityOf(restored)
		if group == "" {
			return nil, errors.New("renew: the record holds no group")
		}
		now := live.Read().Group()
		if err := restorable(cause, now.Format, format); err != nil {
			return nil, err
		}
		next := &fsm.NewEpoch{Group: group, Epoch: max(epoch, now.Epoch) + 1, Cause: cause}
		if now.ID != "" && format >= fsm.FormatRestores {
			next.Lineage = now.Of()
		}
		return renewal(next), nil
	}
}

// restorable refuses a backup that not every member could take in.
func restorable(cause string, have, format uint32) error {
	why := ""
	switch {
	case have == 0: // nobody has anything
		return nil
	case have < fsm.FormatRestores:
		why = fmt.Sprintf("a backup is restored from format %d of the record on, and this group's is of format %d", fsm.FormatRestores, have)
	case format > have:
		why = fmt.Sprintf("the backup is of format %d, and this group's record of format %d", format, have)
	default:
		return nil
	}
	return &admin.Refusal{
		Code: admin.Invalid, What: cause, Why: why,
		Remedy: "see to it that every member runs the newer release, with `fairlead raft finalize`, and try again",
	}
}

// recovered gives what opens the next epoch of a record that goes on from one member's copy, in a lineage of its own.
func recovered(m cluster.Machine) ([]cluster.Proposal, error) {
	record, ok := m.(cluster.Record)
	if !ok || record.Read().Group().ID == "" {
		return nil, errors.New("renew: the record holds no group")
	}
	g := record.Read().Group()
	next := &fsm.NewEpoch{Group: g.ID, Epoch: g.Epoch + 1, Cause: "recover"}
	if g.Format >= fsm.FormatRestores {
		next.Lineage = fsm.Lineage{Group: g.Of().Group, Epoch: next.Epoch, Nonce: rand.Text()[:8]}
	}
	return renewal(next), nil
}

func renewal(c *fsm.NewEpoch) []cluster.Proposal {
	return []cluster.Proposal{{Actor: "operator", Reason: c.Cause, AtUnixMilli: time.Now().UnixMilli(), Command: c}}
}
