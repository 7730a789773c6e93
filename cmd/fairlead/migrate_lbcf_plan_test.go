// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	wishes "fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/k8s/takeover"
)

// podRecord is the BackendRecord of the pod in testdata.
const podRecord = "8e37c738700571d3078073269cf4474d"

// lbcfObjects reads testdata of k8s/takeover, with the pod, the Service and the node that it is about.
func lbcfObjects(t *testing.T) (*takeover.Installation, *corev1.Pod) {
	t.Helper()
	file, err := os.ReadFile("../../k8s/takeover/testdata/installation.yaml")
	if err != nil {
		t.Fatal(err)
	}
	in := &takeover.Installation{}
	for manifest := range strings.SplitSeq(string(file), "\n---\n") {
		switch parse(t, manifest).GetKind() {
		case "LoadBalancerDriver":
			in.Drivers = append(in.Drivers, typed[v1beta1.LoadBalancerDriver](t, manifest))
		case "LoadBalancer":
			in.LoadBalancers = append(in.LoadBalancers, typed[v1beta1.LoadBalancer](t, manifest))
		case "BackendGroup":
			in.Groups = append(in.Groups, typed[v1beta1.BackendGroup](t, manifest))
		case "Bind":
			in.Binds = append(in.Binds, typed[v1.Bind](t, manifest))
		case "BackendRecord":
			r := typed[v1beta1.BackendRecord](t, manifest)
			r.UID = types.UID("r-" + r.Name)
			in.Records = append(in.Records, r)
		}
	}
	return in, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "5b0c1b6e-2f0a-4d53-9a51-0d9c5d1f7a10", Labels: map[string]string{"app": "web"}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.244.1.17", PodIPs: []corev1.PodIP{{IP: "10.244.1.17"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func typed[T any](t *testing.T, manifest string) (o T) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(manifest), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// wished converts objects as a source does, in order of their names.
func wished[O, W any](t *testing.T, objects []O, convert func(*O) (W, []wishes.Problem), id func(*W) wishes.ID) (out []*W) {
	t.Helper()
	for i := range objects {
		w, problems := convert(&objects[i])
		for _, p := range problems {
			if p.Severity == wishes.Failed {
				t.Fatalf("%+v", p)
			}
		}
		out = append(out, &w)
	}
	slices.SortFunc(out, func(a, b *W) int { return strings.Compare(id(a).String(), id(b).String()) })
	return out
}

// planned gives the bindings that the leader comes to when it takes an installation over with an empty record, before any
// driver is called.
func planned(t *testing.T, in *takeover.Installation, pods []corev1.Pod) map[string]*fsm.Binding {
	t.Helper()
	service := corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-svc"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, Protocol: "TCP", NodePort: 30080}}},
	}
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.11"}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	input := balancers.Input{
		Drivers:        wished(t, in.Drivers, convert.Driver, func(w *wishes.Driver) wishes.ID { return w.ID }),
		LoadBalancers:  wished(t, in.LoadBalancers, convert.OutsideBalancer, func(w *wishes.OutsideBalancer) wishes.ID { return w.ID }),
		BackendGroups:  wished(t, in.Groups, convert.BackendGroup, func(w *wishes.BackendGroup) wishes.ID { return w.ID }),
		Binds:          wished(t, in.Binds, convert.Bind, func(w *wishes.Bind) wishes.ID { return w.ID }),
		BackendRecords: wished(t, in.Records, convert.BackendRecord, func(w *wishes.BackendRecord) wishes.ID { return w.ID }),
		Pods:           wished(t, pods, convert.Pod, func(w *wishes.Pod) wishes.ID { return w.ID }),
		Services:       wished(t, []corev1.Service{service}, convert.Service, func(w *wishes.Service) wishes.ID { return w.ID }),
		Nodes:          wished(t, []corev1.Node{node}, convert.Node, func(w *wishes.Node) wishes.ID { return w.ID }),
		MayRemove:      func(wishes.Kind, wishes.ID) bool { return true }, Listed: func(wishes.Kind) bool { return true },
		Now: time.UnixMilli(1),
	}
	state := fsm.New()
	apply := func(proposals []fsm.Proposal) {
		for i, out := range fsmtest.Commit(t, state, proposals...) {
			if err := out.Err(); err != nil {
				t.Fatalf("%T: %v", proposals[i].Command, err)
			}
		}
	}
	apply([]fsm.Proposal{{Actor: "test", Command: &fsm.InitGroup{Group: "test", Format: fsm.NewestFormat}}})
	for range 9 {
		input.Record = state.Read()
		plan := balancers.Plan(input)
		if len(plan.Proposals) == 0 {
			out := map[string]*fsm.Binding{}
			for _, b := range fsm.List[*fsm.Binding](state.Read(), fsm.TableBindings) {
				out[string(b.ID)] = b
			}
			return out
		}
		apply(plan.Proposals)
	}
	t.Fatal("planning does not come to rest")
	return nil
}

// states are those that a binding may be in, before any call, after a verdict.
var states = map[takeover.Verdict][]fsm.BindingState{
	takeover.Adopted:      {fsm.BindingBound},
	takeover.Ensured:      {fsm.BindingPending, fsm.BindingAddressing, fsm.BindingEnsuring},
	takeover.Renewed:      {fsm.BindingDraining, fsm.BindingDeregistering},
	takeover.Deregistered: {fsm.BindingDraining, fsm.BindingDeregistering},
}

// lbcf §13: what is told before the hand-over is what the leader does after it.
func TestVerdictsAreWhatTheLeaderPlans(t *testing.T) {
	now := metav1.Now()
	type in = takeover.Installation
	for name, change := range map[string]func(i *in, r *v1beta1.BackendRecord, p *corev1.Pod){
		"unchanged": func(*in, *v1beta1.BackendRecord, *corev1.Pod) {},
		"deleting":  func(_ *in, r *v1beta1.BackendRecord, _ *corev1.Pod) { r.DeletionTimestamp = &now },
		"deleting-early": func(_ *in, r *v1beta1.BackendRecord, p *corev1.Pod) {
			r.DeletionTimestamp, p.Labels = &now, nil // a pod that is wanted still gets a record again
			r.Status.BackendAddr = ""
		},
		"not-registered":    func(_ *in, r *v1beta1.BackendRecord, _ *corev1.Pod) { r.Status.Conditions = nil },
		"no-address":        func(_ *in, r *v1beta1.BackendRecord, _ *corev1.Pod) { r.Status = v1beta1.BackendRecordStatus{} },
		"parameters":        func(i *in, _ *v1beta1.BackendRecord, _ *corev1.Pod) { i.Groups[0].Spec.Parameters = nil },
		"attributes":        func(i *in, _ *v1beta1.BackendRecord, _ *corev1.Pod) { i.LoadBalancers[0].Spec.Attributes = nil },
		"other-identity":    func(i *in, _ *v1beta1.BackendRecord, _ *corev1.Pod) { i.LoadBalancers[0].Status.LBInfo["id"] = "lb-9" },
		"group-gone":        func(i *in, _ *v1beta1.BackendRecord, _ *corev1.Pod) { i.Groups = i.Groups[1:] },
		"group-deleting":    func(i *in, _ *v1beta1.BackendRecord, _ *corev1.Pod) { i.Groups[0].DeletionTimestamp = &now },
		"bind-gone":         func(i *in, _ *v1beta1.BackendRecord, _ *corev1.Pod) { i.Binds = nil },
		"bind-entry-gone":   func(i *in, _ *v1beta1.BackendRecord, _ *corev1.Pod) { i.Binds[0].Spec.LoadBalancers = nil }, // lbcf §11.3 no. 23
		"lb-gone":           func(i *in, _ *v1beta1.BackendRecord, _ *corev1.Pod) { i.LoadBalancers = nil },
		"lb-deleting":       func(i *in, _ *v1beta1.BackendRecord, _ *corev1.Pod) { i.LoadBalancers[0].DeletionTimestamp = &now },
		"policy":            func(i *in, _ *v1beta1.BackendRecord, _ *corev1.Pod) { i.Groups[1].Spec.EnsurePolicy = nil },
		"pod-made-anew":     func(_ *in, _ *v1beta1.BackendRecord, p *corev1.Pod) { p.UID = "other" },
		"pod-not-ready":     func(_ *in, _ *v1beta1.BackendRecord, p *corev1.Pod) { p.Status.Conditions = nil },
		"pod-deleting":      func(_ *in, _ *v1beta1.BackendRecord, p *corev1.Pod) { p.DeletionTimestamp = &now },
		"pod-relabelled":    func(_ *in, _ *v1beta1.BackendRecord, p *corev1.Pod) { p.Labels = nil },
		"address-not-named": func(i *in, _ *v1beta1.BackendRecord, _ *corev1.Pod) { i.Groups[2].Spec.Static = nil },
		"no-finalizer":      func(i *in, r *v1beta1.BackendRecord, _ *corev1.Pod) { r.Finalizers, i.Groups[0].Spec.LBName = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			installed, pod := lbcfObjects(t)
			i := slices.IndexFunc(installed.Records, func(r v1beta1.BackendRecord) bool { return r.Name == podRecord })
			change(installed, &installed.Records[i], pod)
			ready := len(pod.Status.Conditions) > 0
			installed.Pods = map[types.NamespacedName]takeover.Pod{{Namespace: "shop", Name: "web-0"}: {
				UID: pod.UID, IP: pod.Status.PodIP, Labels: pod.Labels, Deleting: pod.DeletionTimestamp != nil, Ready: ready, Running: true,
			}}
			have := planned(t, installed, []corev1.Pod{*pod})
			for _, r := range takeover.Judge(*installed, nil, namesOfRecords()).Records {
				b := have[r.Name]
				switch want := states[r.Verdict]; {
				case want == nil && b != nil:
					t.Errorf("%s: %s (%s), and is %s", r.Name, r.Verdict, r.Why, b.State)
				case want != nil && b == nil:
					t.Errorf("%s: %s (%s), and the leader has no binding", r.Name, r.Verdict, r.Why)
				case want != nil && !slices.Contains(want, b.State):
					t.Errorf("%s: %s (%s), and is %s", r.Name, r.Verdict, r.Why, b.State)
				}
			}
		})
	}
}
