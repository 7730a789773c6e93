// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// After an operator accepted that the cluster ran back, its objects are older than those acted on. They count, and the
// record's versions do not run back with them.
func TestPlanActsOnAnOlderViewThatIsAdmitted(t *testing.T) {
	s := newScene(t)
	for _, line := range []string{"node n1 192.0.2.1", "service web ip=203.0.113.10", "endpoints web n1/10.0.0.1"} {
		s.line(line)
	}
	at := func(version uint64, ready bool) {
		s.world.Services[0].Version, s.world.Nodes[0].Version, s.world.Nodes[0].Ready = version, version, ready
		in := s.input()
		for i := range in.Views[0].World.Kinds {
			in.Views[0].World.Kinds[i].Version = version
		}
		s.group.settle(in)
	}
	at(100, true)
	s.world.Services[0].Ports[0].Port = 8080
	s.group.must(&fsm.AcceptRewind{Source: "script"})
	at(50, false)
	v := s.group.state.Read()
	web, _ := fsm.Get[*fsm.Service](v, fsm.TableServices, "default/web")
	n1, _ := fsm.Get[*fsm.Node](v, fsm.TableNodes, "n1")
	if web.Frontends[0].Port.Number != 8080 || web.Version != 100 {
		t.Errorf("service: port %d at version %d, want 8080 at 100", web.Frontends[0].Port.Number, web.Version)
	}
	if n1.Eligible || n1.Version != 100 {
		t.Errorf("node: eligible %t at version %d, want false at 100", n1.Eligible, n1.Version)
	}
	view, _ := fsm.Get[*fsm.SourceView](v, fsm.TableViews, "script")
	if have := view.Version(string(world.KindService)); have != 50 || view.Rewind {
		t.Errorf("the source is acted on up to %d, rewind %t; want 50 and over", have, view.Rewind)
	}
}
