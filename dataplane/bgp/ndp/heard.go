// SPDX-License-Identifier: Apache-2.0

package ndp

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Errors of Link.Neighbour.
var (
	ErrNobody  = errors.New("no router advertises itself")
	ErrSeveral = errors.New("several routers advertise themselves")
)

const (
	// fresh is for how long an advertisement counts. Routers are solicited three times meanwhile.
	fresh = 35 * time.Second
	// most is how many routers of one link are kept apart: more would still be too many.
	most = 4
)

// heard is who advertised itself, and which of them is the neighbour.
type heard struct {
	at  map[netip.Addr]time.Time
	now netip.Addr // the neighbour; none before anybody was alone
}

// hear takes in an advertisement. It tells whether the neighbour is another one now.
func (h *heard) hear(from netip.Addr, when time.Time) (changed bool) {
	if h.at == nil {
		h.at = map[netip.Addr]time.Time{}
	}
	maps.DeleteFunc(h.at, func(_ netip.Addr, last time.Time) bool { return when.Sub(last) > fresh })
	if _, known := h.at[from]; known || len(h.at) < most {
		h.at[from] = when
	}
	if len(h.at) > 1 || h.now == from {
		return false // a neighbour stays while it may be there: its session is up, perhaps
	}
	h.now = from
	return true
}

// neighbour is the last router that was alone on the link. One that fell silent stays until another one is alone.
func (h *heard) neighbour() (netip.Addr, error) {
	switch {
	case h.now.IsValid():
		return h.now, nil
	case len(h.at) == 0:
		return netip.Addr{}, ErrNobody
	}
	var names []string
	for _, a := range slices.SortedFunc(maps.Keys(h.at), netip.Addr.Compare) {
		names = append(names, a.String())
	}
	return netip.Addr{}, fmt.Errorf("%w: %s", ErrSeveral, strings.Join(names, ", "))
}
