// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

// design §5, mass-change guard: when more than half of a kind and more than ten go at once, nothing goes until an
// operator says so, and everything else goes on.
func TestMassRemovalWaitsForAnOperator(t *testing.T) {
	const many = 14
	l := started(t, lab.Options{})
	var prefixes []netip.Prefix
	all := ""
	for i := 1; i < many; i++ {
		all += "---\n" + lab.Service(i, 1)
		prefixes = append(prefixes, prefix(i))
	}
	l.Manifests.Put("all.yaml", all)
	l.Bird.WaitNextHops(prefix(many-1), lab.NodeAddress(1))
	l.Agreed()
	stop := l.NeverMissing(prefixes[0], prefixes[many-2])
	l.Manifests.Remove("all.yaml")
	var held []string
	l.Eventually("holds", func() error {
		var list struct {
			Items []struct {
				Name string `json:"name"`
			} `json:"items"`
		}
		out, stderr, code := l.CLI("holds", "list", "-o", "json")
		if code != 0 {
			return fmt.Errorf("holds list: %s", stderr)
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 1 {
			return fmt.Errorf("not one hold, of Services and with them their endpoints, in %s (%v)", out, err)
		}
		for _, i := range list.Items {
			held = append(held, i.Name)
		}
		return nil
	})
	l.Manifests.Service(0, 3) // everything else goes on
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(3))
	stop()
	for _, id := range held {
		if _, stderr, code := l.CLI("holds", "release", id, "--reason", "they were meant to go"); code != 0 {
			t.Fatalf("holds release: %s", stderr)
		}
	}
	for _, p := range prefixes {
		l.Bird.WaitNextHops(p)
	}
	if _, stderr, code := l.CLI("holds", "release", "nonsense"); code != 1 {
		t.Errorf("releasing what is not held ended with %d", code)
	} else {
		oneLine(t, stderr, "nonsense", "holds list")
	}
}
