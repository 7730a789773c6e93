// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Who leaves for good has left once no peer holds a path, and not before: writing alone is not enough.
func TestLeavingWithdrawsAndWaitsForEachPeer(t *testing.T) {
	for _, c := range []struct {
		name string
		held func(o *owner)
		want error
	}{
		{"all arrives", func(*owner) {}, nil},
		{"nothing arrives", func(o *owner) { o.lost = true }, ErrHeld},
		{"nothing is written", func(o *owner) { o.slow = true }, ErrHeld},
	} {
		t.Run(c.name, func(t *testing.T) {
			story(t, func(t *testing.T, o *owner) {
				o.set(5, 5)
				a, stop := o.run()
				o.keepContact(2*time.Second, 5)
				stop()
				o.mu.Lock()
				c.held(o)
				o.mu.Unlock()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if err := a.Leave(ctx); !errors.Is(err, c.want) {
					t.Errorf("left with %v, want %v", err, c.want)
				}
				if d := o.last(); d.Paths.Len() != 0 {
					t.Errorf("%d paths are announced afterwards", d.Paths.Len())
				}
			})
		})
	}
}

// What an earlier run announced may still be held, and this one cannot tell by whom.
func TestLeavingWithoutHavingAnnouncedProvesNothing(t *testing.T) {
	story(t, func(t *testing.T, o *owner) {
		o.set(5, 5)
		a, stop := o.run()
		time.Sleep(time.Second)
		stop()
		if err := a.Leave(t.Context()); !errors.Is(err, ErrHeld) {
			t.Errorf("left with %v", err)
		}
	})
}
