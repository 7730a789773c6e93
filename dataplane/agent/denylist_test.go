// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/internal/testkit"
)

// fullStore is a Store that can be full.
type fullStore struct {
	data  []byte
	full  bool
	saves int
}

func (s *fullStore) Load() ([]byte, error) { return s.data, nil }

func (s *fullStore) Save(data []byte) error {
	if s.full {
		return errors.New("no room")
	}
	s.data, s.saves = data, s.saves+1
	return nil
}

func revokedAt(index uint64, names ...string) *fairleadv1.RevokedMembers {
	m := &fairleadv1.RevokedMembers{Revision: &fairleadv1.Revision{Epoch: 1, Index: index}}
	for _, name := range names {
		m.Members = append(m.Members, &fairleadv1.RevokedMember{Name: name})
	}
	return m
}

// Whoever tells, in whichever order, and whenever the agent starts anew: it heeds the newest list that it was told, unless the disk was full
// when that came, and then the one before it, and it never goes back to an older one.
func TestPropertyTheNewestListOfRevocationsIsHeeded(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	testkit.Check(t, func(t *rapid.T) {
		var history [][]string // the record's list as of each revision
		for range rapid.IntRange(1, 5).Draw(t, "revisions") {
			history = append(history, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"m1", "m2", "m3"}), 0, 2, rapid.ID).Draw(t, "revoked"))
		}
		store := &fullStore{}
		open := func() *DenyList {
			l, err := OpenDenyList(store, log)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l, newest, kept := open(), -1, -1
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "restarts") == 0 {
				l, newest = open(), kept
			} else {
				at := rapid.IntRange(0, len(history)-1).Draw(t, "told")
				store.full = rapid.IntRange(0, 3).Draw(t, "full") == 0
				err := l.hear(revokedAt(uint64(at)+1, history[at]...))
				newest = max(newest, at)
				if err == nil {
					kept = newest
				} else if !store.full {
					t.Fatal(err)
				}
			}
			want := map[string]bool{}
			if newest >= 0 {
				for _, name := range history[newest] {
					want[name] = true
				}
			}
			for _, name := range []string{"m1", "m2", "m3"} {
				if got := l.Why(name, "1", time.Now()) != ""; got != want[name] {
					t.Fatalf("%s denied: %v, want %v by the list of %d", name, got, want[name], newest)
				}
			}
		}
	})
}

func TestWhatIsNoListOfRevocationsIsRefused(t *testing.T) {
	t.Parallel()
	many := revokedAt(2)
	for range 10_001 {
		many.Serials = append(many.Serials, "1")
	}
	for name, m := range map[string]*fairleadv1.RevokedMembers{
		"no-revision": {}, "too-many": many, "no-name": revokedAt(2, ""), "long-name": revokedAt(2, strings.Repeat("x", 254)),
		"long-serial": {Revision: revokedAt(2).GetRevision(), Serials: []string{strings.Repeat("1", 43)}},
		"before":      {Revision: revokedAt(2).GetRevision(), Members: []*fairleadv1.RevokedMember{{Name: "m1", Before: -1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := OpenDenyList(&fullStore{}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.hear(revokedAt(1, "m2")); err != nil {
				t.Fatal(err)
			}
			if err := l.hear(revokedAt(1)); err != nil || l.Len() != 1 {
				t.Fatalf("another list of the same revision is taken: %v, %d known", err, l.Len())
			}
			if err := l.hear(m); err == nil || l.Why("m2", "1", time.Now()) == "" || l.Len() != 1 {
				t.Errorf("taken: %v, %d known", err, l.Len())
			}
		})
	}
}

// A file that was written to by somebody else, or is half there, counts for nothing, and the next list is kept.
func TestADamagedListOfRevocationsIsAskedForAnew(t *testing.T) {
	t.Parallel()
	store := &fullStore{}
	l, err := OpenDenyList(store, slog.New(slog.DiscardHandler))
	if err != nil || l.hear(revokedAt(5, "m2")) != nil {
		t.Fatal(err)
	}
	whole := store.data
	for i := range whole {
		for _, data := range [][]byte{whole[:i], append(append([]byte{}, whole[:i]...), append([]byte{whole[i] ^ 1}, whole[i+1:]...)...)} {
			log := &testkit.Log{}
			store := &fullStore{data: data}
			l, err := OpenDenyList(store, slog.New(slog.NewTextHandler(log, nil)))
			if err != nil || l.Len() != 0 || !strings.Contains(log.String(), "not usable") {
				t.Fatalf("%d bytes: %v, %d known\n%s", len(data), err, l.Len(), log)
			}
			if err := l.hear(revokedAt(5, "m2")); err != nil || store.saves != 1 {
				t.Fatalf("told anew: %v, kept %d times", err, store.saves)
			}
		}
	}
}
