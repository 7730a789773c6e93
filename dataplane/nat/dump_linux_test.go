// SPDX-License-Identifier: Apache-2.0

package nat

import "testing"

// While the kernel makes its table larger, a dump may tell of an element twice: it is as wanted, and not one too many.
func TestElementThatIsReadTwiceIsNotOneTooMany(t *testing.T) {
	wanted, have := map[string]string{"a": "1", "b": "2", "c": "3"}, newRuleset()
	for range 2 {
		sift("s", []byte("a"), "1", wanted, have)
		sift("s", []byte("b"), "other", wanted, have)
	}
	if len(have.Elements["s"]) != 1 || have.Elements["s"]["b"] != "other" {
		t.Errorf("differ: %v", have.Elements)
	}
	if wanted["a"] != found || wanted["b"] != "2" || wanted["c"] != "3" {
		t.Errorf("still wanted: %v", wanted)
	}
}
