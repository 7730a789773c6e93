// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/fsm"
)

// epochGrace is how long a member goes on naming the former epoch in handshakes after its group began another while
// it ran, as a restore does: members that have not applied it yet must still be reached, or they never would apply
// it. A process that starts names the newest at once.
const epochGrace = 10 * time.Second

// belonging is what a member says of its group in handshakes: what its record says, and before the log was read,
// what the data folder remembers.
type belonging struct {
	state  *fsm.State
	folder *disk.Folder
	// renew is called when connections that named something else must be made anew.
	renew func()

	mu    sync.Mutex
	group string
	epoch uint64
}

func newBelonging(state *fsm.State, folder *disk.Folder) *belonging {
	id := folder.Identity()
	return &belonging{state: state, folder: folder, renew: func() {}, group: id.Group, epoch: id.Epoch}
}

// begin takes in what the newest snapshot says, before anybody is talked to.
func (b *belonging) begin() error {
	group, epoch, format := b.state.Identity()
	if err := b.folder.RaiseFormat(format); err != nil {
		return err
	}
	if group == "" || uint64(epoch) <= b.epoch {
		return nil
	}
	b.group, b.epoch = string(group), uint64(epoch)
	return b.folder.SetMembership(b.group, b.epoch)
}

// self implements pki.Self.
func (b *belonging) self() (group string, epoch uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.group, b.epoch
}

// follow keeps it true until ctx ends.
func (b *belonging) follow(ctx context.Context) error {
	for {
		view := b.state.Read()
		if g := view.Group(); g.ID != "" {
			err := b.folder.RaiseFormat(g.Format)
			if err == nil {
				err = b.note(ctx, string(g.ID), uint64(g.Epoch))
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

// note takes in what the record says. A log that is still being read may name earlier epochs than the folder: they
// are behind this member.
func (b *belonging) note(ctx context.Context, group string, epoch uint64) error {
	known, was := b.self()
	if known == group && epoch <= was {
		return nil
	}
	if known == group && was != 0 {
		select {
		case <-time.After(epochGrace):
		case <-ctx.Done():
			return nil
		}
	}
	if err := b.folder.SetMembership(group, epoch); err != nil {
		return err
	}
	b.mu.Lock()
	b.group, b.epoch = group, epoch
	b.mu.Unlock()
	b.renew()
	return nil
}
