// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// Whoever asks gets what is planned from now, beside the loop; a member that does not lead has nothing to give.
func TestAskedGivesWhatIsPlannedFrom(t *testing.T) {
	g, f, second := newLiveGroup(t), newFolder(t), newFolder(t)
	l, stop := lead(t, Config{Sources: []NamedSource{{"test", f}, {"second", second}}, Record: g.state, Group: g, Limits: fastLimits()})
	f.write("node n1 192.0.2.1 excluded", "node n2 192.0.2.2", "service web ip=203.0.113.10", "endpoints web n1/10.0.0.1")
	testkit.Until(t, "the first plan", func() bool { return g.state.Read().Count(fsm.TableNodes) == 2 })
	f.delete("node", "n2") // what is absent is asked about
	for i := range 100 {
		second.write(fmt.Sprintf("pool p%d 198.51.100.%d-198.51.100.%d", i, i, i)) // the loop goes on seeing while it is asked
		in, ok := l.Asked(t.Context())
		if !ok {
			t.Fatal("the leader gave nothing")
		}
		r, _ := Explain(in).Service("default/web")
		if len(r.Addresses) != 1 || r.Addresses[0].Nodes[0].Code != NodeExcluded || !r.Recorded {
			t.Fatalf("web is explained as %+v", r)
		}
	}
	stop()
	if _, ok := l.Asked(t.Context()); ok {
		t.Error("a member that does not lead gave something")
	}
}
