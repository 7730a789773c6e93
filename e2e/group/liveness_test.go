// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// withMachines gives a steered group of three members and as many machines, whose switch routes service 0 to nodes 1
// and 2.
func withMachines(t *testing.T, n int) (*lab.Lab, []*lab.Machine) {
	t.Helper()
	l := lab.New(t, lab.Options{Steered: true, Log: "info"})
	var machines []*lab.Machine
	for i := 1; i <= n; i++ {
		l.Manifests.Node(i, true)
		machines = append(machines, l.Machine(i))
	}
	l.Manifests.Service(0, 1, 2)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	l.Bird.WaitEstablished("m1", "m2", "m3")
	l.Agreed()
	allUp(t, l, n)
	return l, machines
}

// nodeStates asks the group how its nodes are.
func nodeStates(l *lab.Lab) map[string]string {
	out, _, _ := l.CLI("get", "nodes", "-o", "json")
	var list struct {
		Items []struct{ Name, Liveness string } `json:"items"`
	}
	states := map[string]string{}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return states
	}
	for _, n := range list.Items {
		states[n.Name] = n.Liveness
	}
	return states
}

func is(l *lab.Lab, node, want string) func() error {
	return func() error {
		if got := nodeStates(l)[node]; got != want {
			return fmt.Errorf("%s is %q, want %q", node, got, want)
		}
		return nil
	}
}

func allUp(t *testing.T, l *lab.Lab, n int) {
	t.Helper()
	for i := 1; i <= n; i++ {
		l.Eventually("node up", is(l, fmt.Sprintf("n%d", i), "up"))
	}
}

// hops are those of service 0 at the switch.
func hops(l *lab.Lab) string { return fmt.Sprint(l.Bird.NextHops(prefix(0))) }

// design §10: a node dies: it is judged, out of the routes, and nothing else is; it returns with a new boot and is announced again.
// How soon is held in the time of worlds (sim TestDeadNodeIsOutOfTheRoutesWithinASecond), and measured by `make bench` (node_down_ms).
func TestDeadNodeLeavesTheRoutes(t *testing.T) {
	l, machines := withMachines(t, 3)
	stop := l.NeverMissing(prefix(0))
	for i, m := range machines[:2] {
		m.Fail()
		l.Bird.WaitNextHops(prefix(0), machines[1-i].Address)
		l.Eventually("verdict", is(l, m.Name, "down"))
		if history := describe(l, m.Name); !strings.Contains(history, "probed in vain") {
			t.Errorf("the history of the dead node does not say why: %s", history)
		}
		m.Reboot()
		l.Eventually("return", is(l, m.Name, "up"))
		l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2))
	}
	stop()
}

// The same when the machine hosted the leader: an election comes on top, and what the dead member announced leaves when the switch
// keeps its paths no longer.
func TestNodeThatDiesWithTheLeaderLeavesTheRoutes(t *testing.T) {
	l, machines := withMachines(t, 3)
	stop := l.NeverMissing(prefix(0))
	leader := l.Leader()
	asksToBeKept(t, l, leader.Name, time.Second)
	leader.Kill()
	machines[1].Fail()
	l.Bird.WaitNextHops(prefix(0), machines[0].Address)
	l.Eventually("verdict", is(l, "n2", "down"))
	stop()
}

// design §10: agent killed: traffic goes on; it adopts on return. Not one UPDATE.
func TestKilledAgentIsAgentDownAndItsRoutesStay(t *testing.T) {
	l, machines := withMachines(t, 3)
	stop := l.NeverMissing(prefix(0))
	before := l.Updates()
	machines[0].StopAgent()
	l.Eventually("verdict", is(l, "n1", "agent-down"))
	l.Manifests.Service(1, 1, 3) // no new address there
	l.Bird.WaitNextHops(prefix(1), lab.NodeAddress(3))
	if got := hops(l); got != fmt.Sprint(both()) {
		t.Errorf("next hops %s", got)
	}
	machines[0].StartAgent()
	l.Eventually("return", is(l, "n1", "up"))
	l.Bird.WaitNextHops(prefix(1), lab.NodeAddress(1), lab.NodeAddress(3))
	if after, most := l.Updates(), before+2*3; after > most { // service 1: two next hops from three members
		t.Errorf("%d UPDATEs while an agent restarted", after-before)
	}
	if history := describe(l, "n1"); strings.Contains(history, `"down"`) {
		t.Errorf("the node was taken for dead: %s", history)
	}
	stop()
}

func both() []any { return []any{lab.NodeAddress(1), lab.NodeAddress(2)} }

func describe(l *lab.Lab, node string) string {
	out, _, _ := l.CLI("describe", "node", node, "-o", "json")
	return out
}

// A leader that lost the network to the nodes hears nobody, and so does a member that is cut off from all: nothing is
// judged, nothing changes.
func TestMemberThatHearsNobodyJudgesNobody(t *testing.T) {
	l, machines := withMachines(t, 3)
	stop := l.NeverMissing(prefix(0))
	stays := func(while string) {
		t.Helper()
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); { // several silences long
			for node, state := range nodeStates(l) {
				if state != "up" {
					t.Fatalf("%s is %s while %s", node, state, while)
				}
			}
		}
	}
	leader := l.Leader()
	l.CutFromMachines([]*lab.Member{leader}, machines)
	stays("the leader hears no node")
	l.Isolate(l.Others(leader)[0], machines)
	stays("a member is cut off")
	l.Isolate(leader, machines)
	stays("the former leader is cut off")
	stop()
	l.Heal()
	machines[0].Fail()
	l.Eventually("verdict", is(l, "n1", "down"))
}

// More than half, and more than two, fall silent together: held, visible, and let go by an operator.
func TestManySilentNodesAreHeldUntilReleased(t *testing.T) {
	l, machines := withMachines(t, 4)
	stop := l.NeverMissing(prefix(0))
	l.CutFromMachines(l.Members, machines[:3]) // in one moment; they would fall silent one after another where each takes a process that has to wait
	var hold string
	l.Eventually("hold", func() error {
		out, _, _ := l.CLI("holds", "list", "-o", "json")
		var list struct {
			Items []struct {
				Name     string
				Subjects []string
			} `json:"items"`
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 1 || len(list.Items[0].Subjects) != 3 {
			return fmt.Errorf("holds: %s", out)
		}
		hold = list.Items[0].Name
		return nil
	})
	if got := hops(l); got != fmt.Sprint(both()) {
		t.Errorf("next hops %s", got)
	}
	if n := metric(t, l.Leader(), "fairlead_liveness_held"); n != "3" {
		t.Errorf("fairlead_liveness_held %s", n)
	}
	l.Manifests.Service(0, 1, 2, 4)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(1), lab.NodeAddress(2), lab.NodeAddress(4))
	if _, stderr, code := l.CLI("holds", "release", hold, "--reason", "the rack burnt"); code != 0 {
		t.Fatalf("release: %s", stderr)
	}
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(4))
	l.Eventually("the hold to be over", func() error {
		if out, _, _ := l.CLI("holds", "list", "-o", "json"); strings.Contains(out, hold) {
			return fmt.Errorf("holds: %s", out)
		}
		return nil
	})
	stop()
}

// The last next hop of an address is never removed for liveness alone.
func TestLastNextHopStaysThoughItsNodeIsDown(t *testing.T) {
	l, machines := withMachines(t, 3)
	stop := l.NeverMissing(prefix(0))
	machines[0].Fail()
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(2))
	machines[1].Fail()
	l.Eventually("verdict", is(l, "n2", "down"))
	time.Sleep(time.Second) // nothing may follow
	if got := l.Bird.NextHops(prefix(0)); len(got) == 0 {
		t.Error("the address has no route")
	}
	stop()
}

// metric reads one of a member's metrics.
func metric(t *testing.T, m *lab.Member, name string) string {
	t.Helper()
	answer, err := http.Get("http://" + m.Address + ":7480/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
