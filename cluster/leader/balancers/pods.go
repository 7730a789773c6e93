// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// label is a pair that some selector asks for in a namespace.
type label struct {
	namespace string
	world.KV
}

// podIndex has, by namespace, the pods of every label that a selector asks for.
type podIndex map[string][]labelled

// labelled are the pods that have a label of one key, in order, by its value. Values that no selector asks for are left out.
type labelled struct {
	key  string
	pods map[string][]*world.Pod
}

// of are the pods that have a label.
func (x podIndex) of(at label) map[string][]*world.Pod {
	for _, l := range x[at.namespace] {
		if l.key == at.Key {
			return l.pods
		}
	}
	return nil
}

// ask has the pods of a label looked for.
func (x podIndex) ask(at label) {
	pods := x.of(at)
	if pods == nil {
		pods = map[string][]*world.Pod{}
		x[at.namespace] = append(x[at.namespace], labelled{at.Key, pods})
	}
	pods[at.Value] = nil
}

// indexPods goes through all pods once, for the owners that have to be planned. Of many namespaces and labels few are asked
// for, and nearly always by one key.
func (p *planner) indexPods() podIndex {
	index := podIndex{}
	for _, o := range p.owners {
		if s := o.balancing.Pods; s != nil && s.ByLabel && !o.settled {
			for _, kv := range s.Selector {
				index.ask(label{o.meta.Namespace, kv})
			}
		}
	}
	if len(index) == 0 {
		return index
	}
	var namespace string
	var asked []labelled
	for _, pod := range p.in.Pods {
		if pod.Namespace != namespace {
			namespace, asked = pod.Namespace, index[pod.Namespace]
		}
		for _, l := range asked {
			for _, kv := range pod.Labels {
				if kv.Key != l.key {
					continue
				}
				if list, wanted := l.pods[kv.Value]; wanted {
					l.pods[kv.Value] = append(list, pod)
				}
			}
		}
	}
	return index
}

// candidates are the pods that an owner selects, whatever their state. A selector that asks for nothing selects
// nothing: admission does not let it pass, and all pods of a namespace are never meant.
func (p *planner) candidates(o *owner) []*world.Pod {
	s := o.balancing.Pods
	if s == nil {
		return nil
	}
	var out []*world.Pod
	if !s.ByLabel {
		for _, name := range s.Names {
			if pod := p.pod(o.meta.Namespace, name); pod != nil && !slices.Contains(out, pod) {
				out = append(out, pod)
			}
		}
		return out
	}
	var fewest []*world.Pod
	for i, kv := range s.Selector {
		if list := p.pods.of(label{o.meta.Namespace, kv})[kv.Value]; i == 0 || len(list) < len(fewest) {
			fewest = list
		}
	}
	for _, pod := range fewest {
		if matches(s.Selector, pod.Labels) && !slices.Contains(s.Except, pod.Name) {
			out = append(out, pod)
		}
	}
	return out
}

func (p *planner) pod(namespace, name string) *world.Pod {
	return find(p.in.Pods, world.ID{Namespace: namespace, Name: name}, func(o *world.Pod) world.ID { return o.ID })
}

// matches tells whether labels have every pair of a selector.
func matches(selector, labels []world.KV) bool {
	for _, kv := range selector {
		if !slices.Contains(labels, kv) {
			return false
		}
	}
	return true
}

// wantPods wants every port of every available pod on every load balancer, and keeps what the policy keeps of the
// others (lbcf §5.2).
func (p *planner) wantPods(o *owner) {
	quiet := p.saidSoFar()
	defer func() { o.settled = p.saidSoFar() == quiet && !o.asks && o.wanted == o.held.count && !p.handled[o.id] }()
	pods := p.candidates(o)
	stays := p.staying(o, pods)
	for _, pod := range pods {
		available := pod.Available()
		if !available && (pod.Deleting || !stays(pod)) {
			continue
		}
		for i := range o.uses {
			u := &o.uses[i]
			for _, port := range o.ports {
				b := fsm.Backend{Kind: kindPod, Name: pod.Name, UID: pod.UID, Port: uint32(port.Port), Protocol: port.Protocol, Target: pod.IP}
				if available {
					p.want(o, u, b, "", func() string { return o.podRecord(u.name, pod, port) })
				} else {
					p.keep(o, u, b, func() string { return o.podRecord(u.name, pod, port) })
				}
			}
		}
	}
}

func (o *owner) podRecord(loadBalancer string, pod *world.Pod, port world.BackendPort) string {
	if o.kind == world.KindBind {
		return BindRecord(o.meta.Name, loadBalancer, pod.Name, pod.IP, port)
	}
	return PodRecord(loadBalancer, o.meta.Name, pod.UID, port)
}

// keep leaves the binding of a pod or node that is not available as it is.
func (p *planner) keep(o *owner, u *use, b fsm.Backend, name func() string) {
	l := p.lineFor(o, u, b, "")
	if l == nil {
		if l = p.lineOf(world.ID{Namespace: o.meta.Namespace, Name: name()}); l == nil || !l.fits(o, u, b) {
			return
		}
	}
	if l.Backend.NodePort == b.NodePort && (b.Target == "" || l.Backend.Target == "" || l.Backend.Target == b.Target) {
		l.kept = true
	}
}
