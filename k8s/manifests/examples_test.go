// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"testing"

	"fairlead.io/fairlead/k8s/alike"
)

func TestExampleOfAddressesIsReadWithoutAWord(t *testing.T) {
	t.Parallel()
	const file = "../../deploy/examples/addresses.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := decode(file, text, new(alike.Table), rules{})
	if c.broken != nil || len(c.problems) > 0 || len(c.objects) != 3 {
		t.Fatalf("%+v", c)
	}
	for _, o := range c.objects {
		if !o.usable() || len(o.problems()) > 0 {
			t.Errorf("%s: %v", o.ref(), o.problems())
		}
	}
}
