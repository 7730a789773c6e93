// SPDX-License-Identifier: Apache-2.0

package nodenotes

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/balancing"
)

// Proxies has the proxy addresses of a Node be those of its tunnel, marked as ours, while it has one (balancing §2.3). A Node of which an
// administrator wrote one is left to them, in both families: what they mark as ours, and what agents of elf-io's balancing wrote,
// which is an address of the Node itself, is not theirs.
func Proxies(record interface{ Read() *fsm.View }) Contributor {
	return func(seen *Seen) map[string]string {
		v := record.Read()
		t, ok := fsm.Get[*fsm.Tunnel](v, fsm.TableTunnels, seen.Name)
		if !ok || t.Leaving || administered(v, seen) {
			return nil
		}
		note := balancing.Node{Managed: true}
		for _, a := range v.Group().Tunnels.Addresses(t.Number) {
			if a.Is4() {
				note.ProxyV4 = a
			} else {
				note.ProxyV6 = a
			}
		}
		if !note.ProxyV4.IsValid() && !note.ProxyV6.IsValid() {
			return nil
		}
		return note.Annotations()
	}
}

// administered tells whether an administrator wrote a proxy address of the Node.
func administered(v *fsm.View, seen *Seen) bool {
	if seen.Annotations[balancing.AnnotationNodeProxyManaged] == "true" && !seen.Owned[balancing.AnnotationNodeProxyManaged] {
		return false // they gave it to us
	}
	n, known := fsm.Get[*fsm.Node](v, fsm.TableNodes, seen.Name)
	for _, key := range []string{balancing.AnnotationNodeProxyIP4, balancing.AnnotationNodeProxyIP6} {
		text, there := seen.Annotations[key]
		if !there || seen.Owned[key] {
			continue
		}
		a, err := netip.ParseAddr(text)
		if err != nil || !known || !slices.Contains(n.Addresses, a) {
			return true
		}
	}
	return false
}
