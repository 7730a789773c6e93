// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"net/netip"
	"time"

	"fairlead.io/fairlead/api/desired"
)

// leaving is which addresses left the desired state, and until when their rules stay. It is pure.
type leaving struct {
	delay time.Duration
	until map[netip.Addr]time.Time
	// shown is what the node was last brought to: it has the items of those that leave.
	shown desired.State
}

// next gives what the node shall have now: what is wanted, and beside it what left it less than the delay ago.
func (l *leaving) next(want desired.State, now time.Time) (desired.State, error) {
	for addr := range l.until {
		if want.Has(addr) {
			delete(l.until, addr) // it came back
		}
	}
	for addr := range l.shown.Each() {
		if _, known := l.until[addr]; !known && !want.Has(addr) {
			l.until[addr] = now.Add(l.delay)
		}
	}
	for addr, end := range l.until {
		if !now.Before(end) {
			delete(l.until, addr)
		}
	}
	show, err := want.Keeping(l.shown, l.kept())
	if err != nil {
		return desired.State{}, err
	}
	l.shown = show
	return show, nil
}

func (l *leaving) kept() map[netip.Addr]bool {
	out := make(map[netip.Addr]bool, len(l.until))
	for addr := range l.until {
		out[addr] = true
	}
	return out
}

// due is when the next one is to go, zero for none.
func (l *leaving) due() (first time.Time) {
	for _, end := range l.until {
		if first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first
}
