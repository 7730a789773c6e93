// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// podPorts are where every pod takes connections while it runs: whatever Services here have of TCP, and nobody's is unserved.
var podPorts = []string{"53", "80", "443", "8000", "8001", "8002", "8003", "8004", "8005", "8006", "8007", "8080"}

// probeVerbs are what users do about probes of endpoints, and what befalls these.
func probeVerbs() []Verb {
	able := func(p Plan) bool { return p.Sockets.Probes }
	port := func(text string) parameter.Parameter { return parameter.Number("port", text, 1, 65535) }
	return []Verb{
		{
			Name: "probe", Text: "have the endpoints of a Service be probed, every second, or no more", Able: able,
			Parameters: []parameter.Parameter{name(), parameter.OneOf("probe", "yes without it", "yes", "no"), port("where they are asked; at their own without it")},
			Draw: func(d dice.Dice, p Plan, s *Step) {
				drawProbed(d, p, s)
				switch d.Below("how", 6) {
				case 3:
					s.With.Set("probe", "no")
				case 4:
					s.With.Set("port", 80)
				case 5:
					s.With.Set("port", 7999) // where nobody is
				}
			},
			Do: func(c *Cluster, s Step) {
				c.changeService(s.With["name"], func(o *corev1.Service) {
					o.Annotations = without(o.Annotations, convert.AnnotationHealthCheck)
					if s.With["probe"] != "no" {
						o.Annotations = with(o.Annotations, convert.AnnotationHealthCheck, endpointCheck(s.With["port"]))
					}
				})
			},
		},
		{
			Name: "deafen", Text: "have a pod of an application take no connections for a while, which is ready by all that it says", Able: able,
			Parameters: []parameter.Parameter{
				name(), parameter.Duration("for", "10s without it"), port("where it takes none; nowhere without it"),
				parameter.Machines("nodes", "that alone do not get to it; nobody does without it"),
			},
			Draw: func(d dice.Dice, p Plan, s *Step) {
				drawProbed(d, p, s)
				s.With.Set("for", d.Time("for", 2*time.Second, 25*time.Second))
				switch d.Below("how", 6) {
				case 4:
					s.With.Set("port", 80)
				case 5:
					s.With.Set("nodes", dice.Pick(d, "node", p.Nodes))
				}
			},
			Do: func(c *Cluster, s Step) {
				if all := c.podsOf(s.With["name"]); len(all) > 0 {
					c.deafen(all[0].Name, s.With["port"], s.With.Words("nodes"), s.With.Duration("for", 10*time.Second))
				}
			},
		},
	}
}

func drawProbed(d dice.Dice, p Plan, s *Step) {
	s.With.Set("name", first(d.Below("service", max(1, min(p.Services, 3)))))
}

// drawProbes draws what happens about probes of endpoints: some are probed from the beginning on.
func (p Plan) drawProbes(d dice.Dice, beginning, from, to time.Duration) (out []Step) {
	for i := range min(p.Services, 3) {
		if d.Chance("from the beginning", 70) {
			out = append(out, Step{At: beginning, Do: "probe", With: parameter.Values{"name": first(i)}})
		}
	}
	for range d.From("probe steps", 2, 6) {
		out = append(out, p.DrawOne(d, dice.Pick(d, "verb", []string{"deafen", "deafen", "probe"}), from, to))
	}
	return out
}

// endpointCheck is how endpoints are probed: by connections, every second, where an answer counts at once and silence the second time.
func endpointCheck(port string) string {
	text := "{type: TCP, intervalSeconds: 1, timeoutSeconds: 1, healthyThreshold: 1, unhealthyThreshold: 2"
	if port != "" {
		text += ", port: " + port
	}
	return text + "}"
}

// deafen has a pod take no connections, at one port or at all, or none of some nodes, until a time has passed.
func (c *Cluster) deafen(name, port string, nodes []string, d time.Duration) {
	p := c.pods[name]
	if p == nil {
		return
	}
	if len(nodes) > 0 {
		for _, n := range nodes {
			c.world.After(d, c.o.Network.Cut(n, start.PodPrefix+p.address))
		}
		return
	}
	p.deaf[port]++
	c.listen(p)
	c.world.After(d, func() {
		p.deaf[port]--
		c.listen(p)
	})
}

// listen has a pod take connections where it does now, in worlds where somebody asks.
func (c *Cluster) listen(p *pod) {
	if !c.o.Probed {
		return
	}
	var now []string
	if c.pods[p.name] == p && p.running && p.deaf[""] == 0 {
		now = slices.DeleteFunc(slices.Clone(podPorts), func(port string) bool { return p.deaf[port] > 0 })
	}
	if slices.Equal(now, p.listens) {
		return
	}
	at := start.PodPrefix + p.address
	c.o.Network.Alias(p.address, at)
	for _, port := range p.listens {
		c.o.Network.Close(at, port)
	}
	for _, port := range now {
		c.o.Network.Listen(at, port, func(conn *network.Conn) {
			conn.Handle(func([]byte) {}, func(bool) { conn.End() })
			conn.Send([]byte("here"))
		})
	}
	p.listens = now
	address, err := netip.ParseAddr(p.address)
	if err != nil {
		c.world.Fail(fmt.Errorf("address of pod %s: %w", p.name, err))
		return
	}
	c.world.Publish(event.Answers{Pod: Namespace + "/" + p.name, Node: p.node, Address: address, Ports: now})
}
