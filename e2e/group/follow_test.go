// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"net/netip"
	"testing"

	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/fsm"
)

func prefix(i int) netip.Prefix { return fsm.HostPrefix(lab.VIP(i)) }

// started gives a group of three whose switch routes service 0 to nodes 1 and 2.
func started(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	l := lab.New(t, o)
	for n := 1; n <= 3; n++ {
		l.Manifests.Node(n, true)
	}
	l.Manifests.Service(0, 1, 2)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	l.Bird.WaitEstablished("m1", "m2", "m3")
	return l
}

func TestRoutesFollowManifests(t *testing.T) {
	l := started(t, lab.Options{})
	l.Manifests.Service(1, 3)
	l.Bird.WaitNextHops(prefix(1), lab.NodeAddress(3))
	l.Manifests.Service(0, 2, 3) // a pod moves from node 1 to node 3
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(2), lab.NodeAddress(3))
	l.Manifests.Node(3, false)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(2))
	l.Bird.WaitNextHops(prefix(1))
	l.Manifests.Node(3, true)
	l.Bird.WaitNextHops(prefix(1), lab.NodeAddress(3))
	l.Manifests.Remove("svc-1.yaml")
	l.Bird.WaitNextHops(prefix(1))
}
