// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/stage"
	"fairlead.io/fairlead/sim/workload"
)

// bench is a cluster on a stage on which nobody of ours plays.
type bench struct {
	*stage.Stage
	*workload.Cluster
	refused  []event.Refused
	aside    []string // who was set aside, or no more
	moved    []string // what was moved where
	released int
}

// Release implements workload.Operator.
func (b *bench) Release() { b.released++ }

// SetAside implements workload.Operator.
func (b *bench) SetAside(node string, yes bool) { b.aside = append(b.aside, fmt.Sprint(node, yes)) }

// Move implements workload.Operator.
func (b *bench) Move(service, node string) { b.moved = append(b.moved, service+" "+node) }

func newBench(seed uint64) *bench { return newBenchOf(seed, 0) }

// newBenchOf is newBench with a block, unless its prefixes are of 0 bits.
func newBenchOf(seed uint64, aggregate int) *bench {
	w := engine.New(seed)
	b := &bench{Stage: stage.New(w, stage.Options{Members: 1, Nodes: 3, Switches: 1, Aggregate: aggregate})}
	w.Hear(func(e event.Stamped) {
		if x, ok := e.Event.(event.Refused); ok {
			b.refused = append(b.refused, x)
		}
	})
	b.Cluster = workload.New(workload.Options{World: w, Kube: b.Kube, Network: b.Network, Nodes: b.Nodes(), Operator: b, Block: aggregate > 0})
	return b
}

func (b *bench) run(t rapid.TB, d time.Duration) {
	t.Helper()
	if err := b.World.Run(b.World.Now() + d); err != nil {
		t.Fatal(err)
	}
	if len(b.refused) > 0 {
		t.Fatalf("refused: %+v", b.refused)
	}
}

func (b *bench) do(verb string, with ...string) {
	s := workload.Step{Do: verb, At: b.World.Now()}
	for i := 0; i < len(with); i += 2 {
		s.With.Set(with[i], with[i+1])
	}
	b.Do(s)
}

// serving lists the endpoints that are ready, by node.
func (b *bench) serving(service string) (nodes []string) {
	for _, e := range b.Kube.Endpoints(workload.Namespace, service) {
		if e.Ready {
			nodes = append(nodes, e.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

func (b *bench) expect(t rapid.TB, service string, want ...string) {
	t.Helper()
	if got := b.serving(service); !slices.Equal(got, want) {
		t.Errorf("at %s: %s is served on %v, want %v", b.World.Now(), service, got, want)
	}
}

// honest holds what the API server says of pods to the truth, once nothing has happened for a while.
func (b *bench) honest(t rapid.TB) {
	t.Helper()
	for _, o := range b.Kube.List("Pod") {
		p := o.(*corev1.Pod)
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if alive := b.Alive(p.Namespace + "/" + p.Name); alive != ready || p.DeletionTimestamp != nil {
			t.Errorf("at %s: pod %s is ready %v, alive %v, told to end %v", b.World.Now(), p.Name, ready, alive, p.DeletionTimestamp)
		}
	}
}

func TestServicesAreServedBySoManyPods(t *testing.T) {
	b := newBench(1)
	b.do("create", "name", "a", "replicas", "3", "ports", "80,53/UDP", "policy", "Local")
	b.expect(t, "a")
	b.run(t, 10*time.Second)
	b.expect(t, "a", "n1", "n2", "n3")
	b.do("scale", "name", "a", "replicas", "1")
	b.run(t, 15*time.Second)
	if n := len(b.serving("a")); n != 1 {
		t.Errorf("%d pods", n)
	}
	b.honest(t)
	b.do("delete", "name", "a")
	b.run(t, 15*time.Second)
	if b.Kube.Get("Service", workload.Namespace, "a") != nil || len(b.Kube.List("Pod")) > 0 {
		t.Error("it is still there")
	}
}

// While an application rolls, never fewer pods serve than are wanted; those that end serve for a while.
func TestRollsLoseNoPod(t *testing.T) {
	b := newBench(1)
	b.do("create", "name", "a", "replicas", "3")
	b.run(t, 10*time.Second)
	first := b.Kube.List("Pod")
	b.do("roll", "name", "a")
	ending, dead := 0, map[string]int{}
	for range 400 {
		b.run(t, 50*time.Millisecond)
		if n := len(b.serving("a")); n < 3 {
			t.Fatalf("at %s: %d pods serve", b.World.Now(), n)
		}
		for _, e := range b.Kube.Endpoints(workload.Namespace, "a") {
			if e.Terminating && e.Serving {
				ending++
				if !b.Alive(e.Pod) {
					dead[e.Pod]++
				}
				if dead[e.Pod] > 10 { // half a second
					t.Fatalf("at %s: %s serves by its endpoint, and has been dead for long", b.World.Now(), e.Pod)
				}
			}
		}
	}
	if ending == 0 {
		t.Error("no pod went on serving when it was told to end")
	}
	for _, o := range first {
		if b.Kube.Get("Pod", workload.Namespace, o.GetName()) != nil {
			t.Errorf("%s is still there", o.GetName())
		}
	}
	b.expect(t, "a", "n1", "n2", "n3")
}

func TestPodsDieWithTheirNodeAndComeBackElsewhere(t *testing.T) {
	b := newBench(1)
	b.do("create", "name", "a", "replicas", "3")
	b.run(t, 10*time.Second)
	pod, before := "", ""
	for _, e := range b.Kube.Endpoints(workload.Namespace, "a") {
		if e.Node == "n1" {
			pod, before = e.Pod, e.Address
		}
	}
	power := func(on bool) {
		if on {
			b.World.Publish(event.MachineUp{Machine: "n1", Boot: "b"})
			return
		}
		b.World.Publish(event.MachineDown{Machine: "n1"})
	}
	power(false)
	b.run(t, time.Second)
	if b.Alive(pod) {
		t.Error("it lives without power")
	}
	b.expect(t, "a", "n1", "n2", "n3") // nobody has told the API server
	power(true)
	b.run(t, 10*time.Second)
	b.expect(t, "a", "n1", "n2", "n3")
	b.honest(t)
	for _, e := range b.Kube.Endpoints(workload.Namespace, "a") {
		if e.Node == "n1" && e.Address == before {
			t.Error("it has the address of before")
		}
	}
	power(false)
	b.run(t, 50*time.Second)
	b.expect(t, "a", "n2", "n3") // its node was not heard of for so long
	power(true)
	b.run(t, 10*time.Second)
	b.expect(t, "a", "n1", "n2", "n3")
}

func TestAilingPodsDoNotServe(t *testing.T) {
	b := newBench(1)
	b.do("create", "name", "a", "replicas", "1")
	b.run(t, 10*time.Second)
	b.do("ail", "name", "a", "for", "3s")
	b.run(t, time.Second)
	b.expect(t, "a")
	b.honest(t)
	b.run(t, 4*time.Second)
	if len(b.serving("a")) != 1 {
		t.Error("it does not serve again")
	}
}

func TestNodesComeAndGo(t *testing.T) {
	b := newBench(1)
	b.do("create", "name", "a", "replicas", "3")
	b.run(t, 10*time.Second)
	b.do("remove-node", "node", "n2", "for", "8s")
	b.run(t, 7*time.Second)
	if b.Kube.Get("Node", "", "n2") != nil || slices.Contains(b.serving("a"), "n2") || len(b.serving("a")) != 3 {
		t.Errorf("removed, and served on %v", b.serving("a"))
	}
	b.run(t, 3*time.Second)
	if b.Kube.Get("Node", "", "n2") == nil {
		t.Error("it did not come back")
	}
	b.do("drain", "node", "n1", "for", "5s")
	b.run(t, 4*time.Second)
	if slices.Contains(b.serving("a"), "n1") || len(b.serving("a")) != 3 {
		t.Errorf("drained, and served on %v", b.serving("a"))
	}
	for verb, check := range map[string]func(*corev1.Node) bool{
		"cordon":  func(n *corev1.Node) bool { return n.Spec.Unschedulable },
		"exclude": func(n *corev1.Node) bool { _, yes := n.Labels[corev1.LabelNodeExcludeBalancers]; return yes },
		"unready": func(n *corev1.Node) bool { return n.Status.Conditions[0].Status == corev1.ConditionFalse },
	} {
		b.do(verb, "node", "n3", "for", "2s")
		b.run(t, time.Second)
		if !check(b.Kube.Get("Node", "", "n3").(*corev1.Node)) {
			t.Errorf("%s did nothing", verb)
		}
		b.run(t, 2*time.Second)
		if check(b.Kube.Get("Node", "", "n3").(*corev1.Node)) {
			t.Errorf("%s did not end", verb)
		}
	}
}

func TestServicesAreWhatUsersWish(t *testing.T) {
	b := newBench(1)
	b.do("create", "name", "a", "policy", "Local", "address", "203.0.113.7", "external", "198.51.100.9", "sharing", "x", "ports", "80,443")
	o := b.Kube.Get("Service", workload.Namespace, "a").(*corev1.Service)
	if o.Spec.ExternalTrafficPolicy != "Local" || o.Spec.LoadBalancerIP != "203.0.113.7" || o.Spec.ExternalIPs[0] != "198.51.100.9" ||
		o.Annotations["fairlead.io/allow-shared-ip"] != "x" || len(o.Spec.Ports) != 2 {
		t.Errorf("%+v %v", o.Spec, o.Annotations)
	}
	uid, node := o.UID, o.Spec.Ports[0].NodePort
	b.do("edit", "name", "a", "ports", "80")
	o = b.Kube.Get("Service", workload.Namespace, "a").(*corev1.Service)
	if o.Spec.ExternalTrafficPolicy != "Cluster" || o.Spec.LoadBalancerIP != "" || o.Spec.ExternalIPs != nil || len(o.Annotations) > 0 ||
		len(o.Spec.Ports) != 1 || o.Spec.Ports[0].NodePort != node {
		t.Errorf("%+v %v", o.Spec, o.Annotations)
	}
	b.do("edit", "name", "a", "type", "ClusterIP")
	if o = b.Kube.Get("Service", workload.Namespace, "a").(*corev1.Service); o.Spec.Type != "ClusterIP" || o.UID != uid {
		t.Errorf("%+v", o.Spec)
	}
	b.do("delete", "name", "a", "pods", "keep")
	b.do("create", "name", "a")
	if o = b.Kube.Get("Service", workload.Namespace, "a").(*corev1.Service); o.UID == uid {
		t.Error("it is the same one")
	}
	b.do("release")
	if b.released != 1 {
		t.Error("nothing was released")
	}
	b.do("grow", "part", "3")
	b.do("grow", "part", "3")
	b.do("colour", "community", "7")
	b.run(t, time.Second)
	if got := fmt.Sprint(b.Kube.Get("IPAddressPool", stage.System, "pool")); !strings.Contains(got, "[203.0.113.0/24 198.51.100.48/28]") {
		t.Error(got)
	}
	if got := fmt.Sprint(b.Kube.Get("BGPAdvertisement", stage.System, "all")); !strings.Contains(got, "64512:7") {
		t.Error(got)
	}
}

// Whatever users do in whatever order: the API server takes it, and once they stop it says of pods what is true, even
// if it was restored from a backup meanwhile.
func TestPodsSettleToTheTruth(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		aggregate := rapid.SampledFrom([]int{0, 30}).Draw(t, "aggregate")
		b := newBenchOf(rapid.Uint64().Draw(t, "seed"), aggregate)
		plan := workload.Plan{Services: 3, Nodes: b.Nodes(), Switches: []string{"s1"}, Aggregate: aggregate}
		steps := plan.Draw(dice.Of(t), rapid.IntRange(0, 40).Draw(t, "steps"), 5*time.Second, 40*time.Second)
		b.World.After(3*time.Second, func() { b.Begin(plan.Services) })
		for _, s := range steps {
			if err := plan.Check(s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			b.World.At(s.At, func() { b.Do(s) })
		}
		if rapid.Bool().Draw(t, "rewound") {
			b.World.At(30*time.Second, func() { b.Kube.Begin(kube.Rewind, kube.Scope{Delay: 5 * time.Second}) })
		}
		b.run(t, 100*time.Second)
		b.honest(t)
	})
}

// A pod of one application lives the same life whether there is another one or not.
func TestLeavingAStepOutChangesNothingElse(t *testing.T) {
	life := func(other bool) (at []time.Duration) {
		b := newBench(7)
		b.World.Hear(func(e event.Stamped) {
			if o, ok := e.Event.(event.Object); ok && o.Kind == "Pod" && o.Name == "a-0001" {
				at = append(at, e.At)
			}
		})
		b.do("create", "name", "a", "replicas", "1")
		if other {
			b.do("create", "name", "b", "replicas", "2")
		}
		b.run(t, 5*time.Second)
		b.do("evict", "name", "a")
		b.run(t, 20*time.Second)
		return at
	}
	if alone, together := life(false), life(true); !slices.Equal(alone, together) || len(alone) < 4 {
		t.Errorf("alone %v, together %v", alone, together)
	}
}
