// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/sim/workload"
)

// What users of a world write to be foul is what the record cannot take, until they mend it.
func TestFoulTextsCannotBeRecordedUntilTheyAreMended(t *testing.T) {
	for _, text := range []string{"bytes", "long"} {
		t.Run(text, func(t *testing.T) {
			b := newBench(1)
			b.do("foul", "name", "foul1", "text", text)
			key := func() string {
				return b.Kube.Get("Service", workload.Namespace, "foul1").GetAnnotations()[convert.AnnotationSharing]
			}
			if why := world.UnfitText(key(), world.MaxText); why == "" {
				t.Errorf("a text of %d bytes can be recorded", len(key()))
			}
			if b.do("edit", "name", "foul1"); key() != "" {
				t.Errorf("it was mended, and has a text of %d bytes still", len(key()))
			}
		})
	}
}
