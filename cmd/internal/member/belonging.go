// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/fsm"
)

// epochGrace is how long a member goes on naming the former lineage in handshakes after another began while it ran. A backup of a format
// that knows none does that, when it is restored: members that have not applied it yet must still be reached, or they never would apply it. A
// process that starts names the newest at once.
const epochGrace = 10 * time.Second

// belonging is what a member says of its group in handshakes: what its record says, and before the log was read,
// what the data folder remembers.
type belonging struct {
	state  *fsm.State
	folder *disk.Folder
	// renew is called when connections that named something else must be made anew.
	renew func()

	mu      sync.Mutex
	lineage fsm.Lineage
}

func newBelonging(state *fsm.State, folder *disk.Folder) *belonging {
	id := folder.Identity()
	return &belonging{
		state: state, folder: folder, renew: func() {},
		lineage: fsm.Lineage{Group: fsm.GroupID(id.Group), Epoch: fsm.Epoch(id.Epoch), Nonce: id.Nonce},
	}
}

// begin takes in what the newest snapshot says, before anybody is talked to.
func (b *belonging) begin() error {
	g := b.state.Read().Group()
	if err := b.folder.RaiseFormat(g.Format); err != nil {
		return err
	}
	if g.ID == "" || !follows(b.lineage, g.Of()) {
		return nil
	}
	b.lineage = g.Of()
	return b.remember(b.lineage)
}

// follows tells whether a lineage is another one than what was known, and no earlier one.
func follows(known, now fsm.Lineage) bool {
	return now != known && (now.Group != known.Group || now.Epoch >= known.Epoch)
}

func (b *belonging) remember(l fsm.Lineage) error {
	return b.folder.SetMembership(string(l.Group), uint64(l.Epoch), l.Nonce)
}

// self implements pki.Self.
func (b *belonging) self() pki.Membership {
	b.mu.Lock()
	known := b.lineage
	b.mu.Unlock()
	group, epoch, _ := b.state.Identity()
	return pki.Membership{
		Group: string(known.Group), Epoch: uint64(known.Epoch), Nonce: known.Nonce,
		Record: pki.Record{Group: string(group), Epoch: uint64(epoch)},
	}
}

// follow keeps it true until ctx ends.
func (b *belonging) follow(ctx context.Context) error {
	for {
		view := b.state.Read()
		if g := view.Group(); g.ID != "" {
			err := b.folder.RaiseFormat(g.Format)
			if err == nil {
				err = b.note(ctx, g.Of())
			}
			if err != nil {
				return err
			}
		}
		if err := b.state.Wait(ctx, view, fsm.TableGroup); err != nil {
			return nil
		}
	}
}

// knows refuses a data folder of a record that this release cannot read, before anybody hears of this member: it could
// vote for what it will never apply.
func knows(folder *disk.Folder) error {
	if err := fsm.CheckFormat(folder.Identity().Format); err != nil {
		return fmt.Errorf("data folder %s: %w", folder.Path(), err)
	}
	return nil
}

// belongs refuses the data folder of a server that the group has removed: it could announce what it announced last.
func belongs(folder *disk.Folder) error {
	if folder.Identity().Removed {
		return fmt.Errorf("data folder %s: %w", folder.Path(), cluster.ErrRemoved)
	}
	return nil
}

// learn remembers what this release could not read, when that ended the member: the next start is refused at once.
func (b *belonging) learn(err error) error {
	var unknown *fsm.FormatError
	var broke *cluster.PanicError
	if errors.As(err, &broke) {
		unknown, _ = broke.Value.(*fsm.FormatError)
	} else {
		errors.As(err, &unknown)
	}
	if unknown == nil {
		return err
	}
	return errors.Join(err, b.folder.RaiseFormat(unknown.Format))
}

// note takes in what the record says. A log that is still being read may name earlier lineages than the folder: they
// are behind this member.
func (b *belonging) note(ctx context.Context, now fsm.Lineage) error {
	b.mu.Lock()
	known := b.lineage
	b.mu.Unlock()
	if !follows(known, now) {
		return nil
	}
	if known.Epoch != 0 {
		select {
		case <-time.After(epochGrace):
		case <-ctx.Done():
			return nil
		}
	}
	if err := b.remember(now); err != nil {
		return err
	}
	b.mu.Lock()
	b.lineage = now
	b.mu.Unlock()
	b.renew()
	return nil
}
