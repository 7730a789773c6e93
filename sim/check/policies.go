// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// atSockets is what objects of Kubernetes ask for at the sockets of nodes, as the specification of client-side balancing has it (spec balancing
// balancing §4 to §10): policies, and all that they choose from.
type atSockets struct {
	policies map[string]*policy // by "Kind/name"; those that are gone stay
	pods     map[string]*socketPod
	nodes    map[string]*socketNode
	services map[string]*insideService
	slices   map[string]*insideSlice
	// changed is when anything of it was.
	changed time.Duration
}

// written is when an object was changed last by whatever counts here, other than by coming to be, and whether it is gone.
type written struct {
	edited time.Duration // or never
	gone   bool
	number uint64
}

// policy is a BalancingPolicy or a LocalRedirectPolicy.
type policy struct {
	written
	kind, name, uid, created string
	annotations              map[string]string
	spec                     policySpec
	raw                      []byte
}

type policySpec struct {
	Enabled *bool `json:"enabled"`
	Config  struct {
		Nodes labelSelector `json:"nodeLabelSelector"`
	} `json:"config"`
	Frontend struct {
		Service *struct {
			Namespace string       `json:"namespace"`
			Name      string       `json:"serviceName"`
			Ports     []policyPort `json:"toPorts"`
		} `json:"serviceMatcher"`
		Address *struct {
			IP    string       `json:"ip"`
			Ports []policyPort `json:"toPorts"`
		} `json:"addressMatcher"`
	} `json:"frontend"`
	Backend struct {
		Pods      labelSelector `json:"endpointSelector"` // of a LocalRedirectPolicy
		Ports     []policyPort  `json:"toPorts"`
		Endpoints *struct {
			Pods  labelSelector `json:"endpointSelector"`
			Mode  string        `json:"redirectMode"`
			Ports []policyPort  `json:"toPorts"`
		} `json:"serviceEndpoint"`
		Addresses *struct {
			List  []string     `json:"addresses"`
			Ports []policyPort `json:"toPorts"`
		} `json:"addressEndpoint"`
	} `json:"backend"`
}

type policyPort struct {
	Name     string `json:"name"`
	Port     string `json:"port"`
	Protocol string `json:"protocol"`
}

// labelSelector is one as the worlds here have them.
type labelSelector struct {
	Labels map[string]string `json:"matchLabels"`
}

func (s labelSelector) matches(labels map[string]string) bool {
	for k, v := range s.Labels {
		if labels[k] != v {
			return false
		}
	}
	return true
}

type socketPod struct {
	written
	uid, node      string
	addresses      []netip.Addr // of each family at most one
	labels         map[string]string
	running, ready bool
	raw            string
}

type socketNode struct {
	written
	labels    map[string]string
	addresses []netip.Addr // the first InternalIP, else ExternalIP, of each family
	ready     bool
	raw       string
}

type insideService struct {
	written
	served    bool // by somebody: it is no other proxy's, is not about to go, and has an address inside the cluster
	addresses []netip.Addr
	ports     []insidePort
	local     bool // internalTrafficPolicy
	narrowed  bool // only some clients may use its addresses outside
	raw       []byte
}

type insidePort struct {
	Name     string `json:"name"`
	Port     uint16 `json:"port"`
	NodePort uint16 `json:"nodePort"`
	Protocol string `json:"protocol"`
	Target   uint16 `json:"targetPort"` // numbers alone are written here
}

type insideSlice struct {
	service   string
	endpoints []endpoint
	ports     []insidePort
}

func newAtSockets() *atSockets {
	return &atSockets{
		policies: map[string]*policy{}, pods: map[string]*socketPod{}, nodes: map[string]*socketNode{}, services: map[string]*insideService{},
		slices: map[string]*insideSlice{}, changed: never,
	}
}

// hear takes in an event.
func (a *atSockets) hear(e event.Stamped) {
	x, ok := e.Event.(event.Object)
	if !ok {
		return
	}
	gone := x.Verb == "delete"
	switch x.Kind {
	case "BalancingPolicy", "LocalRedirectPolicy":
		a.hearPolicy(e, x, gone)
	case "Pod":
		a.hearPod(e, x, gone)
	case "Node":
		a.hearNode(e, x, gone)
	case "Service":
		a.hearService(e, x, gone)
	case "EndpointSlice":
		a.hearSlice(x, gone)
		a.changed = e.At
	}
}

// lived is how an object was written that is otherwise than before, or new.
func (a *atSockets) lived(e event.Stamped, old *written, gone bool) written {
	a.changed = e.At
	l := written{edited: never, gone: gone, number: e.Number}
	if old != nil {
		l.edited = e.At
	}
	return l
}

func (a *atSockets) hearPolicy(e event.Stamped, x event.Object, gone bool) {
	var in struct {
		Metadata struct {
			UID         string            `json:"uid"`
			Created     string            `json:"creationTimestamp"`
			Annotations map[string]string `json:"annotations"`
			Deletion    *string           `json:"deletionTimestamp"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	if json.Unmarshal(x.JSON, &in) != nil {
		return // the model's trouble: without it there is nothing to check by
	}
	gone = gone || in.Metadata.Deletion != nil
	id := x.Kind + "/" + x.Name
	old := a.policies[id]
	if old != nil && old.gone == gone && old.uid == in.Metadata.UID && bytes.Equal(old.raw, in.Spec) {
		return
	}
	p := &policy{kind: x.Kind, name: x.Name, uid: in.Metadata.UID, created: in.Metadata.Created, annotations: in.Metadata.Annotations, raw: in.Spec}
	_ = json.Unmarshal(in.Spec, &p.spec) // of one document
	var before *written
	if old != nil {
		before = &old.written
	}
	p.written = a.lived(e, before, gone)
	a.policies[id] = p
}

func (a *atSockets) hearPod(e event.Stamped, x event.Object, gone bool) {
	var in struct {
		object
		Spec struct {
			Node string `json:"nodeName"`
		} `json:"spec"`
		Status podStatus `json:"status"`
	}
	if json.Unmarshal(x.JSON, &in) != nil {
		return
	}
	p := &socketPod{uid: in.Metadata.UID, node: in.Spec.Node, addresses: in.Status.addresses(), labels: in.Metadata.Labels}
	gone = gone || in.Metadata.Deletion != nil
	p.running = !gone && in.Status.Phase == "Running"
	for _, c := range in.Status.Conditions {
		p.ready = p.ready || p.running && c.Type == "Ready" && c.Status == "True"
	}
	raw, _ := json.Marshal([]any{p.uid, p.node, p.addresses, p.labels, p.running, p.ready}) // of texts and truths
	id := x.Namespace + "/" + x.Name
	old := a.pods[id]
	if p.raw = string(raw); old != nil && old.gone == gone && old.raw == p.raw {
		return
	}
	var before *written
	if old != nil && old.running && !old.like(p) {
		before = &old.written // to run and to be ready, or not, costs nobody a backend
	}
	p.written = a.lived(e, before, gone)
	if old != nil && old.uid == p.uid {
		p.edited = max(p.edited, old.edited)
	}
	a.pods[id] = p
}

// in gives the address that a pod has in the family of another one.
func (p *socketPod) in(family netip.Addr) (netip.Addr, bool) {
	i := slices.IndexFunc(p.addresses, func(a netip.Addr) bool { return a.Is4() == family.Is4() })
	if i < 0 {
		return netip.Addr{}, false
	}
	return p.addresses[i], true
}

// like tells whether a pod is a backend as it was before, ready or not.
func (p *socketPod) like(o *socketPod) bool {
	return p.uid == o.uid && p.node == o.node && slices.Equal(p.addresses, o.addresses) && p.running == o.running && maps.Equal(p.labels, o.labels)
}

func (a *atSockets) hearNode(e event.Stamped, x event.Object, gone bool) {
	var in struct {
		object
		Status struct {
			Addresses []struct {
				Type    string `json:"type"`
				Address string `json:"address"`
			} `json:"addresses"`
			Conditions []struct{ Type, Status string } `json:"conditions"`
		} `json:"status"`
	}
	if json.Unmarshal(x.JSON, &in) != nil {
		return
	}
	n := &socketNode{labels: in.Metadata.Labels}
	for _, c := range in.Status.Conditions {
		n.ready = n.ready || c.Type == "Ready" && c.Status == "True"
	}
	for _, v4 := range []bool{true, false} {
		for _, kind := range []string{"InternalIP", "ExternalIP"} {
			i := slices.IndexFunc(in.Status.Addresses, func(s struct {
				Type    string `json:"type"`
				Address string `json:"address"`
			}) bool {
				own, err := netip.ParseAddr(s.Address)
				return err == nil && s.Type == kind && own.Is4() == v4
			})
			if i >= 0 {
				n.addresses = append(n.addresses, netip.MustParseAddr(in.Status.Addresses[i].Address))
				break
			}
		}
	}
	raw, _ := json.Marshal([]any{n.labels, n.addresses}) // likewise
	old := a.nodes[x.Name]
	if n.raw = string(raw); old != nil && old.gone == gone && old.raw == n.raw {
		if old.ready != n.ready { // which proxy addresses alone depend on
			old.ready, a.changed = n.ready, e.At
		}
		return
	}
	var before *written
	if old != nil {
		before = &old.written
	}
	n.written = a.lived(e, before, gone)
	a.nodes[x.Name] = n
}

func (a *atSockets) hearService(e event.Stamped, x event.Object, gone bool) {
	var in serviceJSON
	if json.Unmarshal(x.JSON, &in) != nil {
		return
	}
	_, foreign := in.Metadata.Labels["service.kubernetes.io/service-proxy-name"]
	gone = gone || in.Metadata.Deletion != nil
	id := x.Namespace + "/" + x.Name
	old := a.services[id]
	if old != nil && old.gone == gone && bytes.Equal(old.raw, in.Spec) {
		return
	}
	var spec struct {
		Type   string       `json:"type"`
		IP     string       `json:"clusterIP"`
		IPs    []string     `json:"clusterIPs"`
		Ports  []insidePort `json:"ports"`
		Policy string       `json:"internalTrafficPolicy"`
		Ranges []string     `json:"loadBalancerSourceRanges"`
	}
	_ = json.Unmarshal(in.Spec, &spec) // of one document
	s := &insideService{
		served: !foreign && !gone && spec.Type != "ExternalName", ports: spec.Ports, local: spec.Policy == "Local", narrowed: len(spec.Ranges) > 0, raw: in.Spec,
	}
	for _, text := range append([]string{spec.IP}, spec.IPs...) {
		if ip, err := netip.ParseAddr(text); err == nil && s.served && !slices.Contains(s.addresses, ip) {
			s.addresses = append(s.addresses, ip)
		}
	}
	s.served = len(s.addresses) > 0
	var before *written
	if old != nil {
		before = &old.written
	}
	s.written = a.lived(e, before, gone)
	a.services[id] = s
}

func (a *atSockets) hearSlice(x event.Object, gone bool) {
	var in struct {
		sliceJSON
		Ports []insidePort `json:"ports"`
	}
	if json.Unmarshal(x.JSON, &in) != nil {
		return
	}
	id := x.Namespace + "/" + x.Name
	if delete(a.slices, id); !gone {
		a.slices[id] = &insideSlice{service: x.Namespace + "/" + in.Metadata.Labels["kubernetes.io/service-name"], endpoints: in.Endpoints, ports: in.Ports}
	}
}
