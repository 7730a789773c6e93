// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// question is a mishap that is tried in a world of its own.
type question struct {
	id   string
	what string // goes on after "If "
	// lasts is how long it does.
	lasts time.Duration
	// echoes is how long more comes of it by itself, if that is longer.
	echoes time.Duration
	// begin begins it. It may say whom it befell in the end, and gives what ends it.
	begin func(w *scene) (whom string, end func(), err error)
}

// Bounds of what is asked.
const (
	mostNodes    = 3 // that die, the busiest
	mostSwitches = 2 // that restart
)

// questions lists what is worth asking about a cluster.
func (p *plan) questions() []question {
	out := []question{{
		id: "leader-killed", what: "the leader is killed, and started again after 5 s", lasts: 5 * time.Second,
		begin: func(w *scene) (string, func(), error) {
			end, err := w.back.Begin(fault.Fault{Kind: "kill", At: w.Now(), For: 5 * time.Second, On: []string{w.leader()}})
			return w.leader(), end, err
		},
	}}
	if len(p.cast.Members) > 1 {
		out = append(out, question{
			id: "member-cut-off", what: "a member is cut off from the other members for 15 s, but not from the switches", lasts: 15 * time.Second, begin: cutOff,
		})
	}
	out = append(out, p.always("members-stopped", "all members stop for 10 s", fault.Fault{Kind: "kill", For: 10 * time.Second, On: p.cast.Members}))
	for _, node := range p.busiest(mostNodes) {
		out = append(out, p.always("node-"+node+"-dies", fmt.Sprintf("node %s dies, and boots after 20 s", node),
			fault.Fault{Kind: "node-death", For: 20 * time.Second, On: []string{node}}))
	}
	for _, name := range p.cast.Switches[:min(mostSwitches, len(p.cast.Switches))] {
		out = append(out, p.always("switch-"+name+"-restarts", fmt.Sprintf("switch %s loses power for 5 s", name),
			fault.Fault{Kind: "switch-restart", For: 5 * time.Second, On: []string{name}}))
	}
	agent := p.busiest(1)[0]
	roll := time.Duration(len(p.cast.Members)) * 6 * time.Second
	return append(out,
		question{
			id: "kubernetes-away", lasts: 20 * time.Second, echoes: podSilent + podSilence, begin: kubernetesAway,
			what: "the Kubernetes API server is away for 20 s, and 2 s into it one pod of each Service stops answering",
		},
		p.always("agent-restarts", fmt.Sprintf("the agent of node %s is killed, and started again after 3 s", agent),
			fault.Fault{Kind: "kill", For: 3 * time.Second, On: []string{agent}}),
		question{id: "pods-move", what: "one pod of each Service is replaced by one on another node", lasts: 4 * time.Second, begin: podsMove},
		p.always("members-restarted", "the members are restarted one after the other, each away for 2 s", fault.Fault{
			Kind: "rolling-restart", For: roll, On: p.cast.Members, With: parameter.Values{"pause": "2s"},
		}),
	)
}

// always is a question whose fault is known beforehand.
func (p *plan) always(id, what string, f fault.Fault) question {
	return question{id: id, what: what, lasts: f.For, begin: func(w *scene) (string, func(), error) {
		f.At = w.Now()
		end, err := w.back.Begin(f)
		return "", end, err
	}}
}

// busiest are the nodes with the most pods that serve, at most so many; any node if none has pods.
func (p *plan) busiest(most int) []string {
	load := map[string]int{}
	for _, x := range p.pods {
		if x.ready {
			load[x.node]++
		}
	}
	nodes := slices.Clone(p.cast.Nodes)
	slices.SortStableFunc(nodes, func(a, b string) int { return cmp.Compare(load[b], load[a]) })
	n := 0
	for n < min(most, len(nodes)) && load[nodes[n]] > 0 {
		n++
	}
	return nodes[:max(1, n)]
}

// cutOff cuts a member that does not lead off from the others.
func cutOff(w *scene) (string, func(), error) {
	others := slices.Clone(w.plan.cast.Members)
	i := len(others) - 1
	if others[i] == w.leader() {
		i--
	}
	victim := others[i]
	others = slices.Delete(others, i, i+1)
	end, err := w.back.Begin(fault.Fault{
		Kind: "isolate", At: w.Now(), For: 15 * time.Second, On: []string{victim}, With: parameter.Values{"from": strings.Join(others, ",")},
	})
	return victim, end, err
}

// When pods stop answering while the API server is away, and for how long.
const (
	podSilent  = 2 * time.Second
	podSilence = 30 * time.Second
)

// kubernetesAway takes the API server away, and meanwhile has one pod of each Service stop answering for good: its
// kubelet cannot say so.
func kubernetesAway(w *scene) (string, func(), error) {
	undo, err := w.back.Begin(fault.Fault{Kind: "kubernetes-away", At: w.Now(), For: 20 * time.Second})
	if err != nil {
		return "", nil, err
	}
	w.life.setAway(true)
	w.After(podSilent, func() {
		for _, x := range w.onePodEach() {
			w.life.fail(x)
			w.After(podSilence, func() { w.life.recover(x) })
		}
	})
	return "", func() {
		undo()
		w.life.setAway(false)
	}, nil
}

// podsMove has one pod of each Service end and another one start.
func podsMove(w *scene) (string, func(), error) {
	mark := []string{start.Kubernetes + "/pods"} // excuses nobody
	w.Publish(event.FaultBegan{Fault: "pods-move", On: mark, Text: "one pod of each Service moves"})
	for _, x := range w.onePodEach() {
		w.life.move(x)
	}
	return "", func() { w.Publish(event.FaultEnded{Fault: "pods-move", On: mark}) }, nil
}

// onePodEach is a pod of each Service that serves, each pod once.
func (w *scene) onePodEach() (out []*living) {
	for _, s := range w.plan.services {
		if x := w.life.of(s); x != nil && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}
