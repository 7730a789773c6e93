// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"crypto/md5" // so are BackendRecords named; nothing is kept secret by it
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// wishes is what the Kubernetes API really holds of LBCF's objects and of pods: what users want of outside load balancers.
type wishes struct {
	objects map[string]map[string]*wish // by kind and "namespace/name"
	// touched is when something was done to an object that may cost backends their places: by kind and name, whether or not
	// there is still one. Only users, controllers and kubelets do such things.
	touched map[string]time.Duration
	// changed is when anything was done to any of them by others than members.
	changed time.Duration
	// rival is since when an LBCF controller is in the cluster, or never.
	rival time.Duration
}

// wish is an object as it is now.
type wish struct {
	wishObject
	number uint64
	pod    podStatus
}

func newWishes() *wishes {
	return &wishes{objects: map[string]map[string]*wish{}, touched: map[string]time.Duration{}, changed: never, rival: never}
}

// wishKinds are the kinds that wishes are in, and are shown in.
var wishKinds = []string{"LoadBalancerDriver", "LoadBalancer", "BackendGroup", "Bind", "BackendRecord", "Pod"}

// hear takes in an event. ours tells whether somebody is one of the group's processes.
func (w *wishes) hear(e event.Stamped, ours func(string) bool) {
	if x, ok := e.Event.(event.Entry); ok && x.By == "hand" {
		w.changed = e.At // what is wanted has its place, or has not, since then
	}
	x, ok := e.Event.(event.Object)
	if !ok {
		return
	}
	if x.Kind == "Deployment" && x.Namespace == "kube-system" && x.Name == "lbcf-controller" {
		w.hearRival(e.At, x)
	}
	if !slices.Contains(wishKinds, x.Kind) {
		return
	}
	next := &wish{number: e.Number}
	if json.Unmarshal(x.JSON, &next.wishObject) != nil {
		return
	}
	if x.Kind == "Pod" {
		next.pod = read[podStatus](next.Status)
	}
	all := w.objects[x.Kind]
	if all == nil {
		all = map[string]*wish{}
		w.objects[x.Kind] = all
	}
	id := x.Namespace + "/" + x.Name
	was := all[id]
	if all[id] = next; x.Verb == "delete" {
		delete(all, id)
		next = nil
	}
	if ours(x.By) && x.Verb != "delete" || was == nil && next == nil || was != nil && next != nil && was.alike(next) {
		return
	}
	w.changed = e.At
	if was != nil && !ours(x.By) {
		w.touched[x.Kind+" "+id] = e.At
	}
}

func (w *wishes) hearRival(at time.Duration, x event.Object) {
	var o struct {
		Spec struct {
			Replicas int `json:"replicas"`
		} `json:"spec"`
	}
	_ = json.Unmarshal(x.JSON, &o)
	w.changed = at
	switch runs := o.Spec.Replicas > 0 && x.Verb != "delete"; {
	case !runs:
		w.rival = never
	case w.rival == never:
		w.rival = at
	}
}

// alike tells whether two forms of an object mean the same to outside load balancers.
func (o *wish) alike(p *wish) bool {
	if o.Metadata.UID != p.Metadata.UID || (o.Metadata.Deletion == nil) != (p.Metadata.Deletion == nil) || !maps.Equal(o.Metadata.Labels, p.Metadata.Labels) {
		return false
	}
	if o.pod.IP != "" || p.pod.IP != "" {
		return o.pod.IP == p.pod.IP && o.available() == p.available() && o.running() == p.running()
	}
	return bytes.Equal(o.Spec, p.Spec) && len(o.Metadata.Finalizers) == len(p.Metadata.Finalizers)
}

// available and running are what lbcf §5.1 says of pods.
func (o *wish) available() bool {
	return o.pod.IP != "" && o.Metadata.Deletion == nil && isTrue(o.pod.Conditions, "Ready")
}

func (o *wish) running() bool {
	return o.pod.IP != "" && o.Metadata.Deletion == nil && o.pod.Phase == "Running"
}

// of lists the objects of a kind, in order.
func (w *wishes) of(kind string) (out []*wish) {
	for _, id := range sortedKeys(w.objects[kind]) {
		out = append(out, w.objects[kind][id])
	}
	return out
}

// backend is one that is wanted: where, for whom, and how its BackendRecord is named and what that says.
type backend struct {
	balancer   string // the name of the balancer, in events
	address    string
	owner      *wish
	ownerKind  string
	record     string // "namespace/name"
	parameters map[string]string
	// kept is one that stays if it is there already, and need not be.
	kept bool
	// driverless is one of a balancer whose driver is not there: nobody can be asked for it.
	driverless bool
}

// balancerKeyInSpec is the key of lbSpec by which drivers of a world know their balancers.
const balancerKeyInSpec = "id"

// backends lists what the objects ask for (lbcf §5).
func (w *wishes) backends() (out []backend) {
	for _, g := range w.of("BackendGroup") {
		if g.Metadata.Deletion == nil {
			out = append(out, w.ofGroup(g)...)
		}
	}
	for _, b := range w.of("Bind") {
		if b.Metadata.Deletion == nil {
			out = append(out, w.ofBind(b)...)
		}
	}
	return out
}

// lookUp finds the LoadBalancer of a name that a namespace may use (lbcf §1.4); nil if there is none, or it is going.
func (w *wishes) lookUp(namespace, name string) *wish {
	o := w.objects["LoadBalancer"][namespace+"/"+name]
	if o == nil && strings.HasPrefix(name, "lbcf-") {
		o = w.objects["LoadBalancer"]["kube-system/"+name]
	}
	if o == nil || o.Metadata.Deletion != nil {
		return nil
	}
	scope := read[balancerSpec](o.Spec).Scope
	if len(scope) == 0 && o.Metadata.Namespace != namespace || len(scope) > 0 && !slices.Contains(scope, "*") && !slices.Contains(scope, namespace) {
		return nil
	}
	return o
}

// driven tells whether the driver that an object of a namespace names is there (lbcf §1.4). A restore of etcd may leave load balancers
// without it.
func (w *wishes) driven(namespace, name string) bool {
	drivers := w.objects["LoadBalancerDriver"]
	return drivers[namespace+"/"+name] != nil || strings.HasPrefix(name, "lbcf-") && drivers["kube-system/"+name] != nil
}

func (w *wishes) ofGroup(g *wish) (out []backend) {
	spec := read[groupSpec](g.Spec)
	for _, name := range spec.Balancers {
		l := w.lookUp(g.Metadata.Namespace, name)
		if l == nil {
			continue
		}
		add := func(b backend, parts ...string) {
			b.driverless = !w.driven(l.Metadata.Namespace, read[balancerSpec](l.Spec).Driver)
			b.balancer, b.owner, b.ownerKind, b.parameters = read[balancerSpec](l.Spec).Spec[balancerKeyInSpec], g, "BackendGroup", spec.Parameters
			b.record = recordName(g, "_", append([]string{name, g.Metadata.Name}, parts...))
			out = append(out, b)
		}
		if spec.Pods == nil {
			for _, a := range spec.Static {
				add(backend{address: a}, a)
			}
			continue
		}
		for _, p := range w.candidates(g, spec.Pods) {
			if !p.available() && (spec.Leave != "IfNotRunning" || !p.running()) {
				continue
			}
			for _, port := range spec.Pods.Ports {
				number := strconv.Itoa(port.Port)
				add(backend{address: net.JoinHostPort(p.pod.IP, number), kept: !p.available()}, p.Metadata.UID, number, port.Protocol)
			}
		}
	}
	return out
}

func (w *wishes) ofBind(b *wish) (out []backend) {
	spec := read[bindSpec](b.Spec)
	for _, e := range spec.Entries {
		for _, p := range w.candidates(b, &spec.Pods) {
			if !p.available() {
				continue
			}
			for _, port := range spec.Pods.Ports {
				number := strconv.Itoa(port.Port)
				out = append(out, backend{
					driverless: !w.driven(b.Metadata.Namespace, e.Driver),
					balancer:   e.Spec[balancerKeyInSpec], address: net.JoinHostPort(p.pod.IP, number), owner: b, ownerKind: "Bind", parameters: spec.Parameters,
					record: recordName(b, "-", []string{b.Metadata.Name, e.Name, p.Metadata.Name, p.pod.IP, port.Protocol, number}),
				})
			}
		}
	}
	return out
}

// candidates are the pods that an owner selects (lbcf §5.2).
func (w *wishes) candidates(owner *wish, s *podsSpec) (out []*wish) {
	for _, p := range w.of("Pod") {
		chosen := slices.Contains(s.ByName, p.Metadata.Name)
		if by := s.ByLabel; by != nil {
			chosen = !slices.Contains(by.Except, p.Metadata.Name)
			for k, v := range by.Selector {
				chosen = chosen && p.Metadata.Labels[k] == v
			}
		}
		if chosen && p.Metadata.Namespace == owner.Metadata.Namespace {
			out = append(out, p)
		}
	}
	return out
}

// recordName is how the BackendRecord of a backend is named (lbcf §2.4.1).
func recordName(owner *wish, separator string, parts []string) string {
	sum := md5.Sum([]byte(strings.Join(parts, separator)))
	return fmt.Sprintf("%s/%s", owner.Metadata.Namespace, hex.EncodeToString(sum[:]))
}

// formatOutside is the first format of the record that can hold what the objects ask for.
const formatOutside = 2

// settled tells whether everything that LBCF's objects ask for must be so by now: nobody has changed anything for L1, or
// for L2 where that is longer.
func (s *Set) settled(v *fsm.View) bool {
	w := s.wishes
	return w.changed != never && w.rival == never && v.Group().Format >= formatOutside && v.Group().Quarantine.IsZero() &&
		s.scene.calm != never && len(s.scene.faults) == 0 &&
		s.scene.now-max(w.changed, s.scene.calm, s.recordAt) >= max(s.bounds.L1, s.bounds.L2)
}
