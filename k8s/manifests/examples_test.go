// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"testing"

	"fairlead.io/fairlead/k8s/alike"
)

func TestExamplesAreReadWithoutAWord(t *testing.T) {
	t.Parallel()
	for name, objects := range map[string]int{"addresses.yaml": 3, "peers.yaml": 2} {
		file := "../../deploy/examples/" + name
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := decode(file, text, new(alike.Table), rules{})
		if c.broken != nil || len(c.problems) > 0 || len(c.objects) != objects {
			t.Fatalf("%s: %+v", name, c)
		}
		for _, o := range c.objects {
			if !o.usable() || len(o.problems()) > 0 {
				t.Errorf("%s: %s: %v", name, o.ref(), o.problems())
			}
		}
	}
}
