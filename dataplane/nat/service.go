// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"time"

	"fairlead.io/fairlead/api/desired"
)

// Config is what the plan of a node depends on besides the Services.
type Config struct {
	Node          string         // its name in Kubernetes
	Zone          string         // that the node is in, empty if unknown
	ClusterCIDRs  []netip.Prefix // where clients inside the cluster come from: pods, and nodes if they shall count
	NodeAddresses []netip.Addr   // this node's own
	MasqueradeAll bool           // rewrite the source of all translated connections
	WithoutSCTP   bool           // this kernel cannot translate SCTP
	Consistent    []string       // Services whose endpoints all nodes choose alike; see Options
	// NodePortAddresses are ranges of this node's own addresses where Services' node ports are served; see Options.
	NodePortAddresses []netip.Prefix
	// Mark is a bit of packets' marks that nobody else uses; 0 means DefaultMark. The first packet of a connection
	// has it from where it comes in to where it goes out.
	Mark uint32
	// NodePortMark is another one, for packets to node ports where they are served; 0 means DefaultNodePortMark.
	NodePortMark uint32
	// LeaveOthers has packets to a port that no Service has go on.
	LeaveOthers bool
}

// The bits in packets' marks that are ours.
const (
	DefaultMark         = 0x0400
	DefaultNodePortMark = 0x0800
	DefaultProxyMark    = 0x0200 // for a NAT of proxy ports
)

// dialled is what a client dials. Of a node port the address is the unspecified one of its family.
type dialled struct {
	address netip.Addr
	port    desired.Port
}

func (d dialled) String() string {
	return fmt.Sprintf("%s %s", netip.AddrPortFrom(d.address, d.port.Number), protocolName(d.port.Protocol))
}

func protocolName(p uint8) string {
	switch p {
	case protocolTCP:
		return "tcp"
	case protocolUDP:
		return "udp"
	case protocolSCTP:
		return "sctp"
	}
	return fmt.Sprintf("protocol %d", p)
}

// key is what the maps have it by.
func (d dialled) key() string {
	port := string([]byte{d.port.Protocol, 0, 0, 0}) + portBytes(d.port.Number)
	if d.address.IsUnspecified() {
		return port
	}
	return string(d.address.AsSlice()) + port
}

// piece is something that several Services may need. Equal names mean equal pieces.
type piece struct {
	name     string
	sets     []Set
	chains   []Chain
	elements []Element
}

// part is what one Service adds to the table.
type part struct {
	// Nobody else's:
	sets     []Set
	chains   []Chain
	elements []Element
	// Others may need them, too:
	pieces []piece
}

// part plans one Service, without the frontends that skip names.
func (c Config) part(s *desired.Service, skip map[dialled]bool, load *load) part {
	var p part
	for _, a := range s.Addresses {
		a = a.Unmap()
		p.pieces = append(p.pieces, piece{
			name: "address " + a.String(), elements: []Element{{familyOf(a).name(setAddresses), string(a.AsSlice()), ""}},
		})
	}
	for _, f := range []family{ipv4, ipv6} {
		others := c.byOthers(s, f)
		for _, a := range others {
			p.pieces = append(p.pieces, piece{name: "by others " + a.String(), elements: []Element{{f.name(setOthers), string(a.AsSlice()), ""}}})
		}
		addresses := append(ofFamily(s.Addresses, f), others...)
		if len(addresses) == 0 && !c.servesNodePortsOf(s, f) {
			continue
		}
		for _, front := range s.Frontends {
			if c.translates(front.Port.Protocol) {
				c.addFrontend(&p, s, front, f, free(addresses, front.Port, skip), c.nodePort(s, front, f, skip), load)
			}
		}
		c.addLocal(&p, s, f)
	}
	return p
}

func (c Config) translates(protocol uint8) bool {
	switch protocol {
	case protocolTCP, protocolUDP:
		return true
	case protocolSCTP:
		return !c.WithoutSCTP
	}
	return false
}

func ofFamily(addresses []netip.Addr, f family) []netip.Addr {
	var out []netip.Addr
	for _, a := range addresses {
		if familyOf(a) == f {
			out = append(out, a.Unmap())
		}
	}
	return out
}

// free are the addresses on which a port is nobody else's.
func free(addresses []netip.Addr, port desired.Port, skip map[dialled]bool) []dialled {
	var out []dialled
	for _, a := range addresses {
		if d := (dialled{a, port}); !skip[d] {
			out = append(out, d)
		}
	}
	return out
}

// addFrontend adds who may use a service port, and where it leads: at service addresses and, if there are any, as node ports.
func (c Config) addFrontend(p *part, s *desired.Service, front desired.Frontend, f family, at, nodePorts []dialled, load *load) {
	if len(s.SourceRanges) > 0 {
		allowed := c.allowance(f, s.SourceRanges)
		p.pieces = append(p.pieces, allowed)
		for _, d := range at {
			p.elements = append(p.elements, Element{f.name(mapRanged), d.key(), call(allowed.name)})
		}
	}
	for _, l := range c.lanes(s, front, f) {
		l.targets = load.share(l, f, dialled{})
		verdict, bySlot := p.addChoice(s, l, f)
		for i, at := range [][]dialled{byAddress: at, byNodePort: nodePorts} {
			by := dialling(i)
			if bySlot && (len(at) > 0 || by == byAddress && len(ofFamily(s.Addresses, f))+len(c.byOthers(s, f)) > 0) {
				verdict = p.addDraw(l, f, by)
			}
			for _, d := range at {
				p.elements = append(p.elements, Element{f.name(by.name(l.base)), d.key(), verdict})
				p.addSlots(f.name(by.name(l.slots)), d, load.share(l, f, d).dealt())
			}
		}
	}
}

// addChoice adds how a lane's endpoint is chosen, and gives the verdict that leads there, unless it is chosen by slot.
func (p *part) addChoice(s *desired.Service, l lane, f family) (verdict string, bySlot bool) {
	switch {
	case len(l.at) == 0:
		return l.empty, false
	case s.Affinity > 0:
		var first []Rule
		var sets []Set
		var elements []Element
		if l.hashes() {
			first, sets, elements = f.first(l)
		} else if l.weights != nil || l.shares != nil {
			first, sets, elements = f.weighted(l)
		}
		p.sets, p.elements = append(p.sets, sets...), append(p.elements, elements...)
		chain, chains, sets := f.keep(l.id, l.at, affinityOf(s), first)
		p.chains, p.sets = append(p.chains, chains...), append(p.sets, sets...)
		return goTo(chain), false
	case l.hashes():
		chain, set, elements := f.hash(l)
		p.chains, p.sets, p.elements = append(p.chains, chain), append(p.sets, set), append(p.elements, elements...)
		return goTo(chain.Name), false
	}
	return "", true
}

// addDraw adds how a lane's endpoint is chosen by slot, of what was dialled in a way.
func (p *part) addDraw(l lane, f family, by dialling) (verdict string) {
	if inTurn(l.scheduler) && len(l.at) > 1 {
		chain := f.turn(by, l.id, l.slots, len(l.dealt()))
		p.chains = append(p.chains, chain)
		return goTo(chain.Name)
	}
	chain := f.pick(by, l.slots, len(l.dealt()))
	p.pieces = append(p.pieces, piece{name: chain.Name, chains: []Chain{chain}})
	return goTo(chain.Name)
}

// addSlots adds the endpoints of what is dialled by their slots, also of ports with affinity or a consistent choice: a packet may be on
// its way in the chain that they had without.
func (p *part) addSlots(set string, d dialled, endpoints []netip.AddrPort) {
	for slot, e := range endpoints {
		p.elements = append(p.elements, Element{set, d.key() + word(uint32(slot)), endpointBytes(e)})
	}
}

// addLocal adds which endpoints are on this node: all of them, also for connections that they had before. One that names no node may
// be here, and is then to reach itself (K7, K11).
func (c Config) addLocal(p *part, s *desired.Service, f family) {
	for _, e := range s.Endpoints {
		if e.Node != c.Node && e.Node != "" || familyOf(e.Address) != f {
			continue
		}
		a := e.Address.Unmap()
		key := string(a.AsSlice())
		p.pieces = append(p.pieces, piece{name: "hairpin " + a.String(), elements: []Element{{f.name(setHairpin), key + key, ""}}})
		if e.Node == c.Node {
			p.pieces = append(p.pieces, piece{name: "local " + a.String(), elements: []Element{{f.name(setLocal), key, ""}}})
		}
	}
}

// lane is one way into a service port: that of all clients or, of a Service whose policy is Local, of clients from
// outside, and then another one of clients inside the cluster (K22, K23).
type lane struct {
	id          string
	protocol    uint8
	base, slots string // maps
	targets
	empty     string // verdict without endpoints (K19)
	scheduler string // how to choose; desired's
}

// hashes tells whether every node chooses alike.
func (l lane) hashes() bool { return len(l.at) > 1 && alike(l.scheduler) }

// alike tells whether a scheduler makes the same choice on all nodes.
func alike(scheduler string) bool {
	switch scheduler {
	case desired.ConsistentHash, desired.SourceHash, desired.DestinationHash:
		return true
	}
	return false
}

// inTurn tells whether a scheduler has endpoints take turns, on each node by itself.
func inTurn(scheduler string) bool {
	return scheduler == desired.RoundRobin || scheduler == desired.WeightedRoundRobin
}

func (c Config) lanes(s *desired.Service, front desired.Frontend, f family) []lane {
	all, protocol := unweighted(c.scheduler(s), c.closest(s, front, f)), front.Port.Protocol
	port := fmt.Sprintf("%s %d/%d", s.Name, protocol, front.Port.Number)
	everybody := lane{shortHash(port), protocol, mapServices, mapSlots, all, goTo(chainNoEndpoint), c.scheduler(s)}
	if !s.Local {
		return []lane{everybody}
	}
	inside := lane{shortHash("inside " + port), protocol, mapInside, mapInSlots, all, goTo(chainNoEndpoint), c.scheduler(s)}
	outside := everybody
	outside.targets = unweighted(c.scheduler(s), c.here(s, front, f))
	if len(all.at) > 0 {
		outside.empty = goTo(chainNoLocal)
	}
	return []lane{outside, inside}
}

// unweighted leaves weights out where a scheduler does not heed them, as with IPVS: who wants them says wrr, or wlc.
func unweighted(scheduler string, t targets) targets {
	if scheduler == desired.RoundRobin || scheduler == desired.LeastConnections {
		t.weights = nil
	}
	return t
}

// in is the configuration of a node that turned out to be in a zone.
func (c Config) in(zone string) Config {
	c.Zone = zone
	return c
}

// scheduler is how to choose among the endpoints of a Service: what it says itself, or what Config.Consistent does. Under
// the policy Local there is nothing to choose alike: each node has endpoints of its own.
func (c Config) scheduler(s *desired.Service) string {
	switch {
	case s.Local && !inTurn(s.Scheduler) && !counts(s.Scheduler):
		return ""
	case s.Scheduler != "":
		return s.Scheduler
	case slices.ContainsFunc(c.Consistent, func(pattern string) bool {
		matches, err := path.Match(pattern, s.Name)
		return matches && err == nil
	}):
		return desired.ConsistentHash
	}
	return ""
}

// maxAffinity is the longest that Kubernetes takes.
const maxAffinity = 86400 * time.Second

// affinityOf is for how long a client keeps its endpoint, whole seconds.
func affinityOf(s *desired.Service) time.Duration {
	return min((s.Affinity + time.Second - 1).Truncate(time.Second), maxAffinity)
}
