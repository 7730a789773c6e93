// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"
	"slices"
	"sort"
	"strings"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
)

// expected is what Kubernetes says becomes of a packet: a verdict and, if it is translated, the endpoints that may get
// it, each as probable as it weighs.
type expected struct {
	verdict   string
	endpoints []netip.AddrPort
	weights   map[netip.AddrPort]int
	affinity  time.Duration
	agreed    bool   // all nodes choose the same one
	by        string // what decides then: the flow, the source or the destination
	reason    string // why it is not served, as metrics say it
	nodePort  bool   // it was dialled by a node port
}

func (e expected) total() (sum int) {
	for _, w := range e.weights {
		sum += w
	}
	return sum
}

// draws is how many outcomes of the first draw there are, or of one draw for each endpoint if all weigh the same.
func (e expected) draws() int {
	for _, w := range e.weights {
		if w*len(e.endpoints) != e.total() {
			return e.total() / common(e.weights)
		}
	}
	return max(len(e.endpoints), 1)
}

// common is the greatest number that divides all.
func common(weights map[netip.AddrPort]int) int {
	for d := 8; ; d-- {
		divides := true
		for _, w := range weights {
			divides = divides && w%d == 0
		}
		if divides {
			return d
		}
	}
}

// kubernetes is a direct account of the semantics: it asks one question after the other and knows no maps.
func kubernetes(c Config, services []*desired.Service, p packet) expected {
	services = append([]*desired.Service(nil), services...)
	sort.Slice(services, func(i, j int) bool { return services[i].Name < services[j].Name })
	ours := false
	for _, s := range services {
		for _, a := range s.Addresses {
			if a != p.destination {
				continue
			}
			ours = true
			for _, front := range s.Frontends {
				if slices.Contains(front.NotOn, a) {
					continue
				}
				if front.Port == (desired.Port{Protocol: p.protocol, Number: p.port}) && !(p.protocol == 132 && c.WithoutSCTP) {
					return serve(c, s, front, p)
				}
			}
		}
	}
	for _, s := range services { // K32
		for _, front := range s.Frontends {
			given := !slices.Contains(s.Addresses, p.destination) && slices.Contains(s.ByOthers, p.destination) && inPlaceOfKubeProxy(c, p.destination.Is4())
			if given && front.Port == (desired.Port{Protocol: p.protocol, Number: p.port}) && !(p.protocol == 132 && c.WithoutSCTP) {
				return serve(c, s, front, p)
			}
		}
	}
	if ours && (p.protocol == 6 || p.protocol == 17 || p.protocol == 132) {
		return expected{verdict: "refused", reason: "no-port"} // K10
	}
	if !answersNodePorts(c, p.destination) {
		return expected{verdict: "passed"}
	}
	for _, s := range services {
		for _, front := range s.Frontends {
			if front.NodePort == p.port && front.Port.Protocol == p.protocol && inFamily(s, p.destination.Is4()) && !(p.protocol == 132 && c.WithoutSCTP) {
				out := choose(c, s, front, p) // whatever the source ranges (K29)
				out.nodePort = true
				return out
			}
		}
	}
	return expected{verdict: "passed"} // a program of the node's may have the port
}

// inPlaceOfKubeProxy tells whether the node does its work in a family: it does if it serves node ports.
func inPlaceOfKubeProxy(c Config, is4 bool) bool {
	return slices.ContainsFunc(c.NodePortAddresses, func(r netip.Prefix) bool { return r.Addr().Is4() == is4 })
}

// answersNodePorts tells whether an address is one of the node's at which it serves node ports (K2).
func answersNodePorts(c Config, a netip.Addr) bool {
	return slices.Contains(nodes, a) && allowedBy(c.NodePortAddresses, a) && !a.IsLoopback() && !a.IsLinkLocalUnicast()
}

// inFamily tells whether a Service's node ports are served in a family: it has an address of it, or they are without.
func inFamily(s *desired.Service, is4 bool) bool {
	return is4 && s.NodePortsIPv4 || !is4 && s.NodePortsIPv6 || slices.ContainsFunc(s.Addresses, func(a netip.Addr) bool { return a.Is4() == is4 })
}

func serve(c Config, s *desired.Service, front desired.Frontend, p packet) expected {
	if len(s.SourceRanges) > 0 && !allowedBy(s.SourceRanges, p.source) { // K29
		own := false
		for _, a := range c.NodeAddresses {
			own = own || a.Is4() == p.destination.Is4() && allowedBy(s.SourceRanges, a)
		}
		if !p.local || !own {
			return expected{verdict: "dropped", reason: "source-range"}
		}
	}
	return choose(c, s, front, p)
}

func choose(c Config, s *desired.Service, front desired.Frontend, p packet) expected {
	all, weights := usable(s, front, p.destination.Is4(), meant(c, s, front, p.destination.Is4()))
	inside := p.local || allowedBy(c.ClusterCIDRs, p.source)
	chosen := all
	if s.Local && !inside { // K22, K23
		chosen, weights = usable(s, front, p.destination.Is4(), func(e desired.Endpoint) bool { return e.Node == c.Node })
	}
	switch {
	case len(chosen) > 0:
		by := "flow"
		switch {
		case s.Scheduler == "dh":
			by = "destination"
		case s.Scheduler == "sh" || s.Affinity > 0:
			by = "source"
		}
		return expected{"translated", chosen, weights, s.Affinity, agreed(c, s), by, "", false}
	case len(all) > 0:
		return expected{verdict: "dropped", reason: "no-local-endpoint"} // K19
	}
	return expected{verdict: "refused", reason: "no-endpoint"} // K19
}

// meant tells which endpoints are for this node (K26, K27).
func meant(c Config, s *desired.Service, front desired.Frontend, is4 bool) func(desired.Endpoint) bool {
	counts := func(e desired.Endpoint) bool {
		has := false
		for _, port := range e.Ports {
			has = has || port.Name == front.Name && port.Port.Protocol == front.Port.Protocol
		}
		return has && e.Ready && !e.Quiesced && e.Address.Is4() == is4
	}
	all := func(desired.Endpoint) bool { return true }
	if agreed(c, s) {
		return all
	}
	for _, level := range []string{"node", "zone"} {
		unhinted, ours := 0, 0
		mine := func(e desired.Endpoint) (any, mine bool) {
			for _, h := range e.Hints {
				if level == "node" && h.Node != "" {
					any, mine = true, mine || h.Node == c.Node
				}
				if level == "zone" && h.Zone != "" {
					any, mine = true, mine || h.Zone == c.Zone
				}
			}
			return any, mine
		}
		for _, e := range s.Endpoints {
			if !counts(e) {
				continue
			}
			if any, mine := mine(e); !any {
				unhinted++
			} else if mine {
				ours++
			}
		}
		if unhinted == 0 && ours > 0 {
			return func(e desired.Endpoint) bool { _, is := mine(e); return is }
		}
	}
	return all
}

// agreed tells whether all nodes choose the same endpoint (K39).
func agreed(c Config, s *desired.Service) bool {
	if s.Local {
		return false
	}
	return s.Scheduler == "mh" || s.Scheduler == "sh" || s.Scheduler == "dh" || s.Scheduler == "" && listed(c.Consistent, s.Name)
}

// listed knows the only patterns that genConfig has.
func listed(patterns []string, name string) bool {
	for _, p := range patterns {
		if p == name || strings.HasSuffix(p, "/*") && strings.HasPrefix(name, strings.TrimSuffix(p, "*")) {
			return true
		}
	}
	return false
}

func allowedBy(ranges []netip.Prefix, a netip.Addr) bool {
	for _, r := range ranges {
		if r.Contains(a) {
			return true
		}
	}
	return false
}

// usable are the endpoints of K13 to K17, K35 and K40, and what they weigh.
func usable(s *desired.Service, front desired.Frontend, is4 bool, where func(desired.Endpoint) bool) ([]netip.AddrPort, map[netip.AddrPort]int) {
	weights := map[netip.AddrPort]int{}
	pick := func(condition func(desired.Endpoint) bool) []netip.AddrPort {
		var out []netip.AddrPort
		for _, e := range s.Endpoints {
			for _, port := range e.Ports {
				at := netip.AddrPortFrom(e.Address, port.Port.Number)
				if e.Address.Is4() != is4 || !where(e) || !condition(e) || e.Quiesced ||
					port.Name != front.Name || port.Port.Protocol != front.Port.Protocol {
					continue
				}
				if weights[at] == 0 {
					out = append(out, at)
				}
				weight := int(e.Weight)
				if weight == 0 || s.Scheduler == "rr" || s.Scheduler == "lc" {
					weight = 1
				}
				weights[at] = max(weights[at], weight)
			}
		}
		return out
	}
	if ready := pick(func(e desired.Endpoint) bool { return e.Ready }); len(ready) > 0 {
		return ready, weights
	}
	return pick(func(e desired.Endpoint) bool { return e.Serving && e.Terminating }), weights
}

// masqueraded says whether the answer would not come back by this node otherwise (K11, K42).
func masqueraded(c Config, services []*desired.Service, p packet, to netip.AddrPort) bool {
	if c.MasqueradeAll || p.local || p.way == back || p.source == to.Addr() && on(c, services, to.Addr(), c.Node, "") {
		return true
	}
	if kubernetes(c, services, p).nodePort {
		return !onNode(c, services, to.Addr()) // the client may be a pod of another node
	}
	return !onNode(c, services, to.Addr()) && !allowedBy(c.ClusterCIDRs, p.source)
}

func onNode(c Config, services []*desired.Service, a netip.Addr) bool {
	return on(c, services, a, c.Node)
}

// on says whether an endpoint of a Service that is served in its family names one of the nodes.
func on(c Config, services []*desired.Service, a netip.Addr, nodes ...string) bool {
	for _, s := range services {
		family := false
		for _, vip := range s.Addresses {
			family = family || vip.Is4() == a.Is4()
		}
		for _, given := range s.ByOthers {
			family = family || given.Is4() == a.Is4() && inPlaceOfKubeProxy(c, a.Is4())
		}
		for _, r := range c.NodePortAddresses {
			family = family || r.Addr().Is4() == a.Is4() && inFamily(s, a.Is4())
		}
		for _, e := range s.Endpoints {
			if family && e.Address == a && slices.Contains(nodes, e.Node) {
				return true
			}
		}
	}
	return false
}

// Few values, so that they meet.
var (
	vips       = addrs("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2")
	givenOf    = addrs("192.0.2.2", "192.0.2.50", "198.51.100.7", "2001:db8::50", "fd00::9")
	pods       = addrs("10.0.0.1", "10.0.0.2", "10.0.1.3", "fd00::1", "fd00::2")
	clients    = addrs("203.0.113.1", "203.0.113.200", "10.0.0.1", "10.0.1.3", "198.51.100.7", "2001:db8:c::1", "fd00::1", "fd00::9")
	fronts     = []desired.Frontend{{Name: "web", Port: desired.Port{Protocol: 6, Number: 80}}, {Name: "dns", Port: desired.Port{Protocol: 17, Number: 53}}, {Name: "dns-tcp", Port: desired.Port{Protocol: 6, Number: 53}}, {Name: "sig", Port: desired.Port{Protocol: 132, Number: 80}}}
	rangesOf   = prefixes("203.0.113.0/25", "203.0.113.128/25", "10.0.0.0/8", "0.0.0.0/0", "198.51.100.7/32", "fd00::/64", "::/0", "255.0.0.0/8")
	nodes      = addrs("198.51.100.7", "198.51.100.8", "127.0.0.1", "fd00::9", "fe80::9", "::1")
	nodesOf    = prefixes("198.51.100.7/32", "198.51.100.0/24", "0.0.0.0/0", "0.0.0.0/1", "fd00::/64", "fe00::/7", "::/0")
	nodePorts  = [][]uint16{{0, 30080, 30081}, {0, 30053, 30054}, {0, 30053}, {0, 30080}} // by frontend
	clusterOf  = prefixes("10.0.0.0/24", "10.0.0.0/8", "fd00::/64")
	nodeOfPods = []string{"n1", "n2", ""}
	hintsOf    = []desired.Hint{{Zone: "z1"}, {Zone: "z2"}, {Node: "n1"}, {Node: "n2"}}
)

func addrs(of ...string) (out []netip.Addr) {
	for _, a := range of {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

func prefixes(of ...string) (out []netip.Prefix) {
	for _, p := range of {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func some[T comparable](of []T, min, max int) *rapid.Generator[[]T] {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(of), min, max, rapid.ID[T])
}

func genConfig() *rapid.Generator[Config] {
	return rapid.Custom(func(t *rapid.T) Config {
		return Config{
			Node: "n1", ClusterCIDRs: some(clusterOf, 0, 2).Draw(t, "cluster"),
			NodeAddresses: some(addrs("198.51.100.7", "fd00::9"), 0, 2).Draw(t, "own"),
			MasqueradeAll: rapid.IntRange(0, 4).Draw(t, "all") == 0, WithoutSCTP: rapid.Bool().Draw(t, "no-sctp"),
			Zone:       rapid.SampledFrom([]string{"", "z1", "z2"}).Draw(t, "zone"),
			Mark:       rapid.SampledFrom([]uint32{0, 0x8000}).Draw(t, "mark"),
			Consistent: some([]string{"a/x", "a/*", "b/x", "x"}, 0, 2).Draw(t, "consistent"),

			NodePortAddresses: some(nodesOf, 0, 3).Draw(t, "node-port addresses"),
			NodePortMark:      rapid.SampledFrom([]uint32{0, 0x10000}).Draw(t, "node-port mark"),
		}
	})
}

func genService(name string) *rapid.Generator[*desired.Service] {
	return rapid.Custom(func(t *rapid.T) *desired.Service {
		s := &desired.Service{
			Name: name, Addresses: some(vips, 0, 3).Draw(t, "addresses"), Local: rapid.Bool().Draw(t, "local"),
			Affinity:  rapid.SampledFrom([]time.Duration{0, 0, time.Second, 3 * time.Hour}).Draw(t, "affinity"),
			Scheduler: rapid.SampledFrom([]string{"", "", "", "rr", "wrr", "sh", "dh", "mh", "wlc", "lc", "sed", "nq", "lblc", "lblcr"}).Draw(t, "scheduler"),
		}
		if rapid.IntRange(0, 2).Draw(t, "others") == 2 {
			s.ByOthers = some(givenOf, 1, 2).Draw(t, "by others")
		}
		s.NodePortsIPv4, s.NodePortsIPv6 = rapid.Bool().Draw(t, "node ports of IPv4"), rapid.Bool().Draw(t, "node ports of IPv6")
		for _, i := range some([]int{0, 1, 2, 3}, 1, 4).Draw(t, "frontends") {
			front := fronts[i]
			front.NodePort = rapid.SampledFrom(nodePorts[i]).Draw(t, "node port")
			if rapid.IntRange(0, 3).Draw(t, "somewhere only") == 3 {
				front.NotOn = some(vips, 1, 2).Draw(t, "not on")
			}
			s.Frontends = append(s.Frontends, front)
		}
		if rapid.IntRange(0, 2).Draw(t, "ranged") == 2 {
			s.SourceRanges = some(rangesOf, 1, 3).Draw(t, "ranges")
		}
		s.Endpoints = rapid.SliceOfN(genEndpoint(), 0, 6).Draw(t, "endpoints")
		if kinds := rapid.SampledFrom([]int{0, 0, 1, 2, 3, 4}).Draw(t, "hints"); kinds > 0 {
			for i := range s.Endpoints {
				s.Endpoints[i].Hints = some(hintsOf[:kinds], 0, 2).Draw(t, "for")
			}
		}
		if rapid.IntRange(0, 2).Draw(t, "weighted") == 2 {
			for i := range s.Endpoints {
				s.Endpoints[i].Weight = rapid.SampledFrom([]uint16{0, 1, 2, 3, 4, 8}).Draw(t, "weight")
				s.Endpoints[i].Quiesced = rapid.IntRange(0, 3).Draw(t, "quiesced") == 3
			}
		}
		return s
	})
}

func genEndpoint() *rapid.Generator[desired.Endpoint] {
	return rapid.Custom(func(t *rapid.T) desired.Endpoint {
		e := desired.Endpoint{
			Address: rapid.SampledFrom(pods).Draw(t, "address"), Node: rapid.SampledFrom(nodeOfPods).Draw(t, "node"),
			Ready: rapid.Bool().Draw(t, "ready"), Serving: rapid.Bool().Draw(t, "serving"), Terminating: rapid.Bool().Draw(t, "terminating"),
		}
		for i := range fronts {
			if rapid.IntRange(0, 5).Draw(t, "port") == 5 {
				continue
			}
			number := rapid.SampledFrom([]uint16{fronts[i].Port.Number, 8080, 443}).Draw(t, "target")
			e.Ports = append(e.Ports, desired.EndpointPort{Name: fronts[i].Name, Port: desired.Port{Protocol: fronts[i].Port.Protocol, Number: number}})
		}
		return e
	})
}

func genServices() *rapid.Generator[[]*desired.Service] {
	return rapid.Custom(func(t *rapid.T) []*desired.Service {
		var out []*desired.Service
		for _, name := range some([]string{"a/x", "a/y", "b/x"}, 1, 3).Draw(t, "names") {
			out = append(out, genService(name).Draw(t, name))
		}
		return out
	})
}

// drawSuccessors gives the Services after some of their endpoints came, went or became unready.
func drawSuccessors(t *rapid.T, of []*desired.Service) []*desired.Service {
	var out []*desired.Service
	for _, was := range of {
		s := *was
		s.Endpoints = nil
		for _, e := range was.Endpoints {
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 3:
				e.Ready = !e.Ready
			case 6:
				e.Weight, e.Quiesced = e.Weight+1, !e.Quiesced
			case 4:
				continue
			case 5:
				s.Endpoints = append(s.Endpoints, genEndpoint().Draw(t, "new"))
			}
			s.Endpoints = append(s.Endpoints, e)
		}
		out = append(out, &s)
	}
	return out
}

// genPacket favours what the Services have.
func genPacket(services []*desired.Service) *rapid.Generator[packet] {
	return rapid.Custom(func(t *rapid.T) packet {
		p := packet{
			destination: rapid.SampledFrom(append(vips, netip.MustParseAddr("192.0.2.99"))).Draw(t, "to"),
			protocol:    rapid.SampledFrom([]uint8{6, 17, 132, 1}).Draw(t, "protocol"),
			port:        rapid.SampledFrom([]uint16{80, 53, 9}).Draw(t, "port"), local: rapid.IntRange(0, 2).Draw(t, "from-here") == 2,
			sourcePort: rapid.SampledFrom([]uint16{1024, 40000, 40001}).Draw(t, "source-port"),
		}
		if len(services) > 0 && rapid.IntRange(0, 4).Draw(t, "known") < 4 {
			s := rapid.SampledFrom(services).Draw(t, "service")
			front := rapid.SampledFrom(s.Frontends).Draw(t, "frontend")
			if len(s.Addresses) > 0 {
				p.destination = rapid.SampledFrom(s.Addresses).Draw(t, "address")
			}
			if len(s.ByOthers) > 0 && rapid.Bool().Draw(t, "as others gave it") {
				p.destination = rapid.SampledFrom(s.ByOthers).Draw(t, "given")
			}
			p.protocol, p.port = front.Port.Protocol, front.Port.Number
			if front.NodePort != 0 && rapid.Bool().Draw(t, "by the node") {
				p.destination = rapid.SampledFrom(append(nodes, netip.MustParseAddr("198.51.100.9"))).Draw(t, "node")
				p.port = front.NodePort
			}
		}
		var sources []netip.Addr
		from := clients
		if p.local {
			from = nodes
			if slices.ContainsFunc(services, func(s *desired.Service) bool { return slices.Contains(s.Addresses, p.destination) }) {
				from = append(slices.Clone(nodes), p.destination) // the node may use the address itself
			}
		} else if p.way = rapid.SampledFrom([]way{routed, routed, back, bridged}).Draw(t, "way"); p.way == bridged {
			from = slices.DeleteFunc(slices.Clone(clients), func(a netip.Addr) bool { return slices.Contains(nodes, a) })
		}
		for _, a := range from {
			if a.Is4() == p.destination.Is4() {
				sources = append(sources, a)
			}
		}
		p.source = rapid.SampledFrom(sources).Draw(t, "from")
		return p
	})
}
