// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// DenyList is which members the agent does not deal with. Every member that it heartbeats to tells, and the newest word counts, by the
// revision of the record: a member that was revoked cannot take that back, for as soon as any other one told, it is not
// spoken to. The list outlives a restart.
type DenyList struct {
	store   Store
	log     *slog.Logger
	changed func() // something else is denied by now; set before anybody is heard

	now atomic.Pointer[desired.Revoked]

	mu    sync.Mutex // of those who change it
	dirty bool       // now is not what the store has
}

// OpenDenyList reads what was kept. One that is damaged is as good as none: members tell all of it, first thing.
//
// Errors: the store cannot be read.
func OpenDenyList(store Store, log *slog.Logger) (*DenyList, error) {
	l := &DenyList{store: store, log: log, changed: func() {}}
	l.now.Store(&desired.Revoked{})
	data, err := store.Load()
	if err != nil {
		return nil, fmt.Errorf("read the list of revocations: %w", err)
	}
	if data == nil {
		return l, nil
	}
	kept, err := desired.UnmarshalRevoked(data)
	if err != nil {
		log.Error("list of revocations not usable, taking the next one that a member tells", "err", err)
		return l, nil
	}
	l.now.Store(&kept)
	return l, nil
}

// OnChange has f called whenever something else is denied. It is set before the agent runs.
func (l *DenyList) OnChange(f func()) { l.changed = f }

// Why tells why a member's certificate is good no more; empty where it is. It is asked for each handshake.
func (l *DenyList) Why(member, serial string, issued time.Time) string {
	return l.now.Load().Why(member, serial, issued)
}

// Len is how many revocations are known.
func (l *DenyList) Len() int { return l.now.Load().Len() }

// hear takes in what a member tells, if it is newer than what is known. It is heeded even where it cannot be kept.
//
// Errors: it cannot be a list, or is not kept: the next one that is told is, then.
func (l *DenyList) hear(m *fairleadv1.RevokedMembers) error {
	told, err := desired.RevokedOf(m)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if was := l.now.Load(); was.Older(told) {
		l.now.Store(&told)
		l.dirty = true
		if !told.Same(*was) {
			l.log.Warn("revocations changed", "revision", told.Revision.String(), "revoked", told.Len())
			l.changed()
		}
	}
	if !l.dirty {
		return nil
	}
	if err := l.store.Save(l.now.Load().Marshal()); err != nil {
		return fmt.Errorf("keep the list of revocations: %w", err)
	}
	l.dirty = false
	return nil
}

// hearRevoked takes in what a member tells of revocations, if it tells anything.
func (a *Agent) hearRevoked(from *peer, m *fairleadv1.RevokedMembers) {
	if m == nil || a.o.DenyList == nil {
		return
	}
	if err := a.o.DenyList.hear(m); err != nil {
		a.metrics.failed("revocations")
		a.log.Error("revocations not taken over as they should be", "member", from.address, "err", err)
	}
	a.metrics.revoked.Set(float64(a.o.DenyList.Len()))
}
