// SPDX-License-Identifier: Apache-2.0

package records

import (
	"slices"
	"testing"
)

// What policies were called before finds them still, and what only tests write is found and not shown to people.
func TestPoliciesAreFoundByTheirFormerNameAndRegistersAreNotListed(t *testing.T) {
	for _, name := range []string{"policies", "policy", "pol", "redirects", "Redirect", "rd"} {
		if k, ok := Find(name); !ok || k.Name != "policies" {
			t.Errorf("%s is %q, %v", name, k.Name, ok)
		}
	}
	if k, ok := Find(Registers); !ok || k.Name != Registers {
		t.Errorf("registers are %q, %v", k.Name, ok)
	}
	if names := Names(); slices.Contains(names, Registers) || slices.Contains(names, "redirects") || !slices.Contains(names, "policies") {
		t.Errorf("people are told of %v", names)
	}
}
