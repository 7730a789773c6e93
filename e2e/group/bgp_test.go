// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/e2e/lab"
)

// What is edited about one peer or advertisement reaches the switch, and nothing else happens there: no session ends, and no
// prefix is without a route.
func TestBGPEditsMoveNothingElse(t *testing.T) {
	l := started(t, lab.Options{})
	sessions := func() string {
		var out []string
		for _, m := range []string{"m1", "m2", "m3"} {
			s := l.Bird.Sessions()[m]
			out = append(out, fmt.Sprint(m, " ", s.Established, " ", s.Opened))
		}
		return strings.Join(out, ", ")
	}
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	before, watched := sessions(), l.Bird.Watch(prefix(0))
	attributes := func(want string) {
		t.Helper()
		l.Bird.Wait(want, func() bool {
			for _, r := range l.Bird.Routes() {
				if have := fmt.Sprintf("%d %s %s", r.MED, r.Community, r.LargeCommunity); r.Prefix == prefix(0) && have != want {
					return false
				}
			}
			return true
		})
	}
	advertise := func(spec string) {
		l.Manifests.Put("ad.yaml", `apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: ad, annotations: {fairlead.io/med: "50"}}
spec: {`+spec+`}
`)
	}
	advertise(`communities: ["65000:7", "large:65000:1:2"]`)
	attributes("50 (65000,7) (65000, 1, 2)")
	advertise(`communities: ["65000:8"], peers: [bird]`)
	attributes("50 (65000,8) ")

	// A second switch that does not answer is told of, and the first one does not notice.
	l.Manifests.Peer("absent", lab.ASN, 65002, netip.MustParseAddr("127.0.0.99"), 1)
	l.Eventually("the reason", func() error {
		out, _, _ := l.CLI("get", "peers", "-o", "json")
		if !strings.Contains(out, "no TCP connection opens with 127.0.0.99:1; see that") {
			return fmt.Errorf("get peers: %s", out)
		}
		return nil
	})
	// Labels come first: an advertisement that chooses no node announces nothing.
	l.Manifests.Put("node-1.yaml", fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
status:
  addresses: [{type: InternalIP, address: %s}]
  conditions: [{type: Ready, status: "True"}]
`, lab.NodeAddress(1)))
	advertise(`communities: ["65000:8"], peers: [bird], nodeSelectors: [{matchLabels: {zone: a}}]`)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1))
	if n, total := birdtest.Gaps(watched()); n > 0 {
		t.Errorf("%d gaps, %s in all", n, total)
	}
	if after := sessions(); after != before {
		t.Errorf("sessions were %s, are %s", before, after)
	}
}
