// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"strings"
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

// In a group that speaks no BGP (no bgp.asn) what Services give up comes free: the next one gets the only address of a pool, and `why` names
// no member that would be waited for.
func TestAddressesComeFreeWithoutBGP(t *testing.T) {
	l := lab.New(t, lab.Options{Silent: true, Log: "info"})
	l.Manifests.Put("pool.yaml", `{apiVersion: metallb.io/v1beta1, kind: IPAddressPool, metadata: {name: one, namespace: metallb-system}, spec: {addresses: [203.0.113.7/32]}}`)
	l.Manifests.Node(1, true)
	l.Manifests.Node(2, true)
	for i, name := range []string{"first", "second", "third"} {
		if i > 0 {
			l.Manifests.Remove("svc.yaml")
		}
		l.Manifests.Put("svc.yaml", strings.NewReplacer("svc-0", name, "externalIPs: [203.0.0.0]", "ipFamilies: [IPv4]").Replace(lab.Service(0, 1+i%2)))
		l.Eventually(name+" has the address, and nothing is on its way out", func() error {
			services, _, _ := l.CLI("get", "services", "-o", "json")
			routes, _, _ := l.CLI("get", "routes", "-o", "json")
			comes := strings.Contains(services, `"default/`+name) && strings.Contains(services, `"address": "203.0.113.7"`)
			goes := strings.Contains(services, `"state": "pending"`) || strings.Contains(services, `"releasing": true`) || strings.Contains(routes, "withdrawing")
			if !comes || goes {
				why, _, _ := l.CLI("why", "203.0.113.7")
				return fmt.Errorf("services %s, routes %s, why: %s", services, routes, why)
			}
			return nil
		})
	}
}
