// SPDX-License-Identifier: Apache-2.0

package ndp

import (
	"errors"
	"net/netip"
	"testing"

	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// Two routers of a cable find each other, although one starts before its interface is there, and no other interface counts.
//
//	a  eth1 ─────── eth1  b
//	   eth2 ─────── eth2
func TestRoutersOfALinkFindEachOther(t *testing.T) {
	a, b := netnstest.New(t, "a"), netnstest.New(t, "b")
	open := func(in *netnstest.Namespace, name string) *Link {
		l := New(name, func() {})
		go func() { _ = in.Do(func() error { l.Run(t.Context()); return nil }) }()
		return l
	}
	one, other := open(a, "eth1"), open(a, "eth2")
	testkit.Until(t, "word of an interface that is not there", func() bool {
		_, err := one.Neighbour()
		return err != nil && !errors.Is(err, ErrNobody)
	})
	netnstest.Join(netnstest.Link{In: a, Name: "eth1"}, netnstest.Link{In: b, Name: "eth1"})
	netnstest.Join(netnstest.Link{In: a, Name: "eth2"}, netnstest.Link{In: b, Name: "eth2"})
	back := open(b, "eth1")
	var found, us netip.Addr
	testkit.Until(t, "both to be found", func() bool {
		var err, err2 error
		found, err = one.Neighbour()
		us, err2 = back.Neighbour()
		return err == nil && err2 == nil
	})
	if found.Zone() != "eth1" || found.WithZone("") == us.WithZone("") {
		t.Errorf("found %s and %s", found, us)
	}
	if n, err := other.Neighbour(); err == nil {
		t.Errorf("%s is behind eth2, where nobody advertises", n)
	}
}
