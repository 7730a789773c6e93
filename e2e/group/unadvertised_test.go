// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/e2e/lab"
)

// From the first advertisement on an address of a pool of MetalLB's is at the switch only where a BGPAdvertisement is about it. It is said before,
// and of whom it concerns. Others are not moved by it.
func TestPoolsOfMetalLBGoWhereTheyAreAdvertised(t *testing.T) {
	l := started(t, lab.Options{})
	l.Manifests.Put("pool.yaml", `{apiVersion: metallb.io/v1beta1, kind: IPAddressPool, metadata: {name: apart, namespace: metallb-system}, spec: {addresses: [203.0.113.7/32]}}`)
	l.Manifests.Put("svc.yaml", strings.NewReplacer("svc-0", "web", "externalIPs: [203.0.0.0]", "ipFamilies: [IPv4]").Replace(lab.Service(0, 1)))
	own := netip.MustParsePrefix("203.0.113.7/32")
	l.Bird.WaitNextHops(own, lab.NodeAddress(1))
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	watched := l.Bird.Watch(prefix(0))

	const ad = "apiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\nmetadata: {name: ad, namespace: metallb-system}\nspec: {ipAddressPools: [%s]}\n"
	file := filepath.Join(t.TempDir(), "ad.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, ad, "other"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Eventually("what an advertisement would do", func() error {
		out, stderr, code := l.CLI("plan", "-f", file)
		if code != 0 || !strings.Contains(out, "no BGPAdvertisement and no L2Advertisement is about its addresses: nobody is told of them, as with MetalLB") {
			return fmt.Errorf("plan: %d %s%s", code, out, stderr)
		}
		return nil
	})
	l.Manifests.Put("ad.yaml", fmt.Sprintf(ad, "other"))
	l.Bird.WaitNextHops(own)
	l.Eventually("the reason", func() error {
		out, _, _ := l.CLI("why", "default/web")
		if !strings.Contains(out, "its pool is one of MetalLB's, which BGPPeers are sent addresses of only where a BGPAdvertisement is about them") {
			return fmt.Errorf("why: %s", out)
		}
		return nil
	})
	l.Manifests.Remove("ad.yaml") // nobody is sent anything for a deletion
	l.Eventually("the advertisement is gone", func() error {
		if out, _, _ := l.CLI("get", "advertisements"); !strings.Contains(out, "(nobody)") || strings.Contains(out, "other") {
			return fmt.Errorf("get advertisements: %s", out)
		}
		return nil
	})
	l.Agreed()
	for _, r := range l.Bird.Routes() {
		if r.Prefix == own {
			t.Errorf("the switch has %v", r)
		}
	}
	l.Manifests.Put("ad.yaml", fmt.Sprintf(ad, "apart"))
	l.Bird.WaitNextHops(own, lab.NodeAddress(1))
	if n, total := birdtest.Gaps(watched()); n > 0 {
		t.Errorf("%d gaps of another address, %s in all", n, total)
	}
}
