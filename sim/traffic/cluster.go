// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/weight"
)

// Cluster is the Truth of the objects in the API server: Services, EndpointSlices, and Nodes.
type Cluster struct {
	world    *engine.World
	memory   time.Duration
	services map[string]service // that exist, by "namespace/name"
	slices   map[string]endpointSlice
	known    map[Target]time.Duration // when users were told of it last; forever while they are
	targets  []Target                 // of known, in order; nil: to be made anew
}

// forever is for what still holds.
const forever = time.Duration(1<<63 - 1)

// NewCluster makes a Truth that hears of objects as they are written. Clients remember an address that a user no longer
// has for the time memory.
func NewCluster(w *engine.World, memory time.Duration) *Cluster {
	c := &Cluster{
		world: w, memory: memory, services: map[string]service{}, slices: map[string]endpointSlice{}, known: map[Target]time.Duration{},
	}
	w.Hear(func(e event.Stamped) {
		if o, ok := e.Event.(event.Object); ok {
			c.hear(o)
		}
	})
	return c
}

// What is read of objects.
type (
	service struct {
		Metadata struct {
			Deletion    *string           `json:"deletionTimestamp"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Type   string `json:"type"`
			Policy string `json:"externalTrafficPolicy"`
			Ports  []struct {
				Name     string `json:"name"`
				Port     uint16 `json:"port"`
				Protocol string `json:"protocol"`
			} `json:"ports"`
		} `json:"spec"`
		Status struct {
			LoadBalancer struct {
				Ingress []struct {
					IP string `json:"ip"`
				} `json:"ingress"`
			} `json:"loadBalancer"`
		} `json:"status"`
	}
	endpointSlice struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Endpoints []endpoint `json:"endpoints"`
		Ports     []struct {
			Name     string `json:"name"`
			Port     uint16 `json:"port"`
			Protocol string `json:"protocol"`
		} `json:"ports"`
		service string
	}
	endpoint struct {
		Addresses  []string `json:"addresses"`
		NodeName   string   `json:"nodeName"`
		Conditions struct {
			Ready       *bool `json:"ready"`
			Serving     *bool `json:"serving"`
			Terminating *bool `json:"terminating"`
		} `json:"conditions"`
		TargetRef struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"targetRef"`
	}
)

func (e endpoint) ready() bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }

// ending tells whether a pod still answers while it ends.
func (e endpoint) ending() bool {
	is := func(b *bool) bool { return b != nil && *b }
	return is(e.Conditions.Serving) && is(e.Conditions.Terminating)
}

func (c *Cluster) hear(o event.Object) {
	id := o.Namespace + "/" + o.Name
	switch o.Kind {
	case "Service":
		delete(c.services, id)
		var s service
		if o.Verb != "delete" && json.Unmarshal(o.JSON, &s) == nil {
			c.services[id] = s
		}
		c.learn(id)
	case "EndpointSlice":
		delete(c.slices, id)
		var s endpointSlice
		if o.Verb != "delete" && json.Unmarshal(o.JSON, &s) == nil {
			s.service = o.Namespace + "/" + s.Metadata.Labels["kubernetes.io/service-name"]
			c.slices[id] = s
		}
	}
}

// learn notes which targets of a Service users are told of now.
func (c *Cluster) learn(id string) {
	c.targets = nil
	for t, until := range c.known {
		if t.Service == id && until == forever {
			c.known[t] = c.world.Now() + c.memory
		}
	}
	s := c.services[id]
	for _, i := range s.Status.LoadBalancer.Ingress {
		a, err := netip.ParseAddr(i.IP)
		if err != nil {
			continue // the API server takes no such address
		}
		for _, p := range s.Spec.Ports {
			c.known[Target{id, a, protocols[p.Protocol], p.Port}] = forever
		}
	}
}

var protocols = map[string]uint8{"": 6, "TCP": 6, "UDP": 17, "SCTP": 132}

// Targets implements Truth.
func (c *Cluster) Targets() []Target {
	now := c.world.Now()
	stale := slices.ContainsFunc(c.targets, func(t Target) bool { return c.known[t] <= now })
	if c.targets == nil || stale {
		maps.DeleteFunc(c.known, func(_ Target, until time.Duration) bool { return until <= now })
		c.targets = slices.SortedFunc(maps.Keys(c.known), func(a, b Target) int {
			return cmp.Or(strings.Compare(a.Service, b.Service), a.Address.Compare(b.Address), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
		})
	}
	return c.targets
}

// Wanted implements Truth: the user still has the address, and a pod could answer.
func (c *Cluster) Wanted(t Target) bool {
	s := c.services[t.Service]
	return s.Spec.Type == "LoadBalancer" && s.Metadata.Deletion == nil && c.known[t] == forever && len(c.endpoints(t, "")) > 0
}

// endpoints lists where new connections to a target go: ready pods, or if there are none those that still answer while
// they end; with a node, those there.
func (c *Cluster) endpoints(t Target, node string) []netip.AddrPort {
	if ready := c.places(t, node, endpoint.ready); len(ready) > 0 {
		return ready
	}
	return c.places(t, node, endpoint.ending)
}

// places lists where pods answer that are so and weigh anything, in order.
func (c *Cluster) places(t Target, node string, is func(endpoint) bool) (out []netip.AddrPort) {
	rules := c.services[t.Service].Metadata.Annotations[weight.Annotation]
	for _, id := range slices.Sorted(maps.Keys(c.slices)) {
		s := c.slices[id]
		port, ok := c.port(s, t)
		if s.service != t.Service || !ok {
			continue
		}
		for _, e := range s.Endpoints {
			if !is(e) || node != "" && e.NodeName != node {
				continue
			}
			for _, text := range e.Addresses {
				if a, err := netip.ParseAddr(text); err == nil && a.Is4() == t.Address.Is4() && weighs(rules, e, a) {
					out = append(out, netip.AddrPortFrom(a, port))
				}
			}
		}
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
}

// weighs tells whether an endpoint takes new connections, by what its Service says of weights.
func weighs(rules string, e endpoint, a netip.Addr) bool {
	return rules == "" || weight.Of(rules, weight.Endpoint{Pod: e.TargetRef.Name, Node: e.NodeName, Address: a}) > 0
}

// podName is the name of who answers, the address for what is no pod.
func podName(e endpoint, a netip.Addr) string {
	if e.TargetRef.Name == "" {
		return fmt.Sprintf("at %s", a)
	}
	return e.TargetRef.Namespace + "/" + e.TargetRef.Name
}

// port is where the pods of a slice answer for a target: by the name of the Service's port.
func (c *Cluster) port(s endpointSlice, t Target) (uint16, bool) {
	for _, p := range c.services[t.Service].Spec.Ports {
		if p.Port != t.Port || protocols[p.Protocol] != t.Protocol {
			continue
		}
		for _, q := range s.Ports {
			if q.Name == p.Name && protocols[q.Protocol] == t.Protocol {
				return q.Port, true
			}
		}
	}
	return 0, false
}

// Endpoint implements Truth: a pod answers as long as it is in a slice, of whatever Service, and has not said that it
// does not.
func (c *Cluster) Endpoint(at netip.AddrPort) (pod, node string, ok bool) {
	for _, id := range slices.Sorted(maps.Keys(c.slices)) {
		s := c.slices[id]
		for _, e := range s.Endpoints {
			listens := false
			for _, p := range s.Ports {
				listens = listens || p.Port == at.Port()
			}
			if listens && (e.ready() || e.ending()) && slices.Contains(e.Addresses, at.Addr().String()) {
				return podName(e, at.Addr()), e.NodeName, true
			}
		}
	}
	return "", "", false
}

// Choose implements Truth. Whose an address is now decides, whosever it was when the client learned of it.
func (c *Cluster) Choose(t Target, node string, hash uint64) (netip.AddrPort, bool) {
	for _, id := range slices.Sorted(maps.Keys(c.services)) {
		t.Service = id
		if c.known[t] != forever {
			continue
		}
		if c.services[id].Spec.Policy != "Local" {
			node = ""
		}
		from := c.endpoints(t, node)
		if len(from) == 0 {
			return netip.AddrPort{}, false
		}
		return from[hash>>32%uint64(len(from))], true // by other bits than switches choose by
	}
	return netip.AddrPort{}, false
}
