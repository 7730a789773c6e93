// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"fairlead.io/fairlead/api/desired"
)

// family is what differs between IPv4 and IPv6. Names of sets and chains end in its number.
type family struct {
	number       byte
	netfilter    byte // NFPROTO_*
	words        Register
	source       Field
	destination  Field
	addressType  Type
	addressBytes int
	unspecified  netip.Addr
}

var (
	ipv4 = family{4, 2, 1, Source4, Destination4, Address4, 4, netip.IPv4Unspecified()}
	ipv6 = family{6, 10, 4, Source6, Destination6, Address6, 16, netip.IPv6Unspecified()}
)

func familyOf(a netip.Addr) family {
	if a.Unmap().Is4() {
		return ipv4
	}
	return ipv6
}

func (f family) name(base string) string { return base + strconv.Itoa(int(f.number)) }

// Sets and maps of each family.
const (
	setAddresses = "addresses" // every service address
	setCluster   = "cluster"   // ranges that clients inside the cluster come from
	setLocal     = "local"     // endpoints on this node
	setHairpin   = "hairpin"   // the same twice: packets from an endpoint to itself
	mapRanged    = "ranged"    // address, protocol, port: verdict on who may come
	mapServices  = "services"  // address, protocol, port: verdict on where to
	mapSlots     = "slots"     // address, protocol, port, slot: endpoint
	mapInside    = "inside"    // as services, of those that differ for clients inside the cluster
	mapInSlots   = "inslots"   // as slots, likewise
)

// setWays has, twice each, the interfaces that packets came in by: who leaves by the same one is a pair in it. Rules cannot
// compare what they loaded.
const (
	setWays   = "ways"
	waysMost  = 1 << 12
	waysKnown = time.Minute // until the next packet
)

// Sets and chains of one service port; an id ends their names.
const (
	mapBuckets  = "buckets"  // number of a bucket: endpoint
	setFirst    = "first"    // of each endpoint, buckets of clients that it has first
	mapWeighted = "weighted" // of affinity, slot: verdict on which endpoint has a new client
	chainHash   = "hash"     // hashes a flow
	chainTurn   = "turn"     // has endpoints take turns
	chainKeep   = "keep"     // of affinity, whatever the choice; of each endpoint a set of that name, too
)

// affinityClients bounds how many clients are remembered of each endpoint of a service port with affinity. Further
// ones are served without. As many of IPv6 take about 8 MB.
const affinityClients = 1 << 16

// Chains that are always there; those of a family end in its number.
const (
	chainPrerouting  = "prerouting"
	chainOutput      = "output"
	chainPostrouting = "postrouting"
	chainArrive      = "arrive"       // packets to a service address from outside this node
	chainOutside     = "from-outside" // of a client outside the cluster
	chainInside      = "from-inside"  // of a client inside the cluster
	chainLeave       = "leave"        // packets of translated connections on their way out
)

// Translation comes just before kube-proxy's (-100 and 100): what was translated once is left alone by others.
const (
	priorityDestination = -110
	prioritySource      = 90
)

// Constants of the kernel, as rules compare them.
const (
	protocolTCP  = 6
	protocolUDP  = 17
	protocolSCTP = 132
	translated   = 1 << 5 // IPS_DST_NAT
)

// layout is what is there whatever the Services.
func (c Config) layout() Ruleset {
	r := newRuleset()
	entry := func(base string, hook Hook, priority int32, rules ...Rule) {
		chain := newChain(base, rules...)
		chain.Hook, chain.Priority = hook, priority
		r.Chains[base] = chain
	}
	entry(chainPrerouting, Prerouting, priorityDestination, c.entrance(chainArrive, chainOthers, chainPorts)...)
	entry(chainOutput, Output, priorityDestination, c.entrance(chainInside, chainOthersInside, chainPortsInside)...)
	entry(chainPostrouting, Postrouting, prioritySource, c.exits()...)
	for _, chain := range away() {
		r.add(chain)
	}
	r.Sets[setWays] = Set{Name: setWays, Key: []Type{Word, Word}, Dynamic: true, Size: waysMost}
	for _, f := range []family{ipv4, ipv6} {
		for _, s := range f.sets() {
			r.Sets[s.Name] = s
		}
		r.add(newChain(f.name(chainArrive), f.fromCluster(chainInside), Rule{Verdict{goTo(f.name(chainOutside))}}))
		r.add(newChain(f.name(chainOutside), c.elseRefuse(f.screen(), f.choose(mapServices, byAddress))...))
		r.add(newChain(f.name(chainInside), c.elseRefuse(f.screen(), f.choose(mapInside, byAddress), f.choose(mapServices, byAddress))...))
		r.add(newChain(f.name(chainLeave), c.leave(f, true)...))
		r.put(intervals(f.name(setCluster), f, c.ClusterCIDRs))
		if c.servesNodePorts(f) {
			c.addNodePorts(r, f)
			c.addOthers(r, f)
		}
	}
	return r
}

// elseRefuse ends rules that nothing may have come of: a port that no Service has.
func (c Config) elseRefuse(rules ...Rule) []Rule {
	if c.LeaveOthers {
		return rules
	}
	return append(rules, refuse(chainNoPort))
}

func (r Ruleset) add(c Chain) { r.Chains[c.Name] = c }

func (f family) sets() []Set {
	front := []Type{f.addressType, ProtocolNumber, PortNumber}
	slot := append(slices.Clone(front), Word)
	endpoint := []Type{f.addressType, PortNumber}
	return []Set{
		{Name: f.name(setAddresses), Key: []Type{f.addressType}},
		{Name: f.name(setCluster), Key: []Type{f.addressType}, Interval: true},
		{Name: f.name(setLocal), Key: []Type{f.addressType}},
		{Name: f.name(setHairpin), Key: []Type{f.addressType, f.addressType}},
		{Name: f.name(mapRanged), Key: front, Verdict: true},
		{Name: f.name(mapServices), Key: front, Verdict: true},
		{Name: f.name(mapSlots), Key: slot, Data: endpoint},
		{Name: f.name(mapInside), Key: front, Verdict: true},
		{Name: f.name(mapInSlots), Key: slot, Data: endpoint},
	}
}

// entrance sends packets on: those to service addresses, and after them those to addresses that others gave, and those to node ports,
// where they are served.
func (c Config) entrance(addresses, others, ports string) []Rule {
	rules := []Rule{c.enter(ipv4, setAddresses, goTo(ipv4.name(addresses))), c.enter(ipv6, setAddresses, goTo(ipv6.name(addresses)))}
	for _, f := range []family{ipv4, ipv6} {
		if c.servesNodePorts(f) {
			rules = append(rules, c.enter(f, setOthers, call(f.name(others))), f.enterNode(ports))
		}
	}
	return rules
}

// enter sends packets to addresses in a set on, marked. Only the first packet of a connection comes here.
func (c Config) enter(f family, set, verdict string) Rule {
	bits := c.mark()
	if c.servesNodePorts(f) {
		bits |= c.nodePortMark()
	}
	return Rule{
		Load{Family, 0}, Match{Register: 0, Value: string([]byte{f.netfilter})},
		Load{f.destination, 0}, Member{f.name(set), 0},
		SetMark{bits, c.mark(), 0},
		Verdict{verdict},
	}
}

// exits lets go what is none of ours, and sends on what is: first what has a mark more.
func (c Config) exits() []Rule {
	marked := func(mark uint32, is bool) Rule {
		return Rule{Load{PacketMark, 0}, Mask{word(mark), 0}, Match{Register: 0, Value: word(0), Not: is}}
	}
	rules := []Rule{append(marked(c.mark(), false), Verdict{VerdictReturn})}
	for _, f := range []family{ipv4, ipv6} {
		if c.servesNodePorts(f) {
			rules = append(rules, append(marked(c.nodePortMark(), true), c.exit(f, c.mark()|c.nodePortMark(), chainPortsLeave)...))
		}
	}
	return append(rules, c.exit(ipv4, c.mark(), chainLeave), c.exit(ipv6, c.mark(), chainLeave))
}

// exit sends translated packets to a chain that decides about their source, without their marks: a tunnel would hand those
// on to the packets around them.
func (c Config) exit(f family, marks uint32, chain string) Rule {
	return Rule{
		Load{Family, 0}, Match{Register: 0, Value: string([]byte{f.netfilter})},
		SetMark{marks, 0, 0},
		Load{ConnectionStatus, 0}, Mask{word(translated), 0}, Match{Register: 0, Value: word(0), Not: true},
		Verdict{goTo(f.name(chain))},
	}
}

// mark is the bit that leads packets from enter to exit.
func (c Config) mark() uint32 {
	if c.Mark == 0 {
		return DefaultMark
	}
	return c.Mark
}

func (f family) fromCluster(chain string) Rule {
	return Rule{Load{f.source, 0}, Member{f.name(setCluster), 0}, Verdict{goTo(f.name(chain))}}
}

// leave decides whose source is rewritten: where the answer would not come back by this node otherwise (K42). A packet
// that this node sent itself may have a service address as its source, to which no endpoint can answer. Clients inside the
// cluster are on this node, if they dialled an address that their own node translates. An endpoint behind the interface
// that its client is behind, as two pods of one bridge are, answers him there, untranslated; but not where br_netfilter
// shows us what the bridge passes on, which came in by no interface then.
func (c Config) leave(f family, inside bool) []Rule {
	if c.MasqueradeAll {
		return []Rule{{Masquerade{}}}
	}
	w := f.words
	rules := []Rule{
		{Load{Inbound, 0}, Match{Register: 0, Value: word(0)}, Load{SourceType, 0}, Match{Register: 0, Value: word(localAddress)}, Masquerade{}},
		{Load{Inbound, 0}, Match{Register: 0, Value: word(0)}, Load{f.source, 0}, Member{f.name(setAddresses), 0}, Masquerade{}},
		{Load{f.source, 0}, Load{f.destination, w}, Member{f.name(setHairpin), 0}, Masquerade{}},
		{Load{Inbound, 0}, Load{Inbound, 1}, Remember{setWays, 0, waysKnown}},
		{Load{Inbound, 0}, Load{Outbound, 1}, Member{setWays, 0}, Masquerade{}},
		{Load{f.destination, 0}, Member{f.name(setLocal), 0}, Verdict{VerdictReturn}},
	}
	if inside {
		rules = append(rules, Rule{Load{f.source, 0}, Member{f.name(setCluster), 0}, Verdict{VerdictReturn}})
	}
	return append(rules, Rule{Masquerade{}})
}

// front loads the key of the maps by service port, and tells where the next register is.
func (f family) front(by dialling) (ops []Op, next Register) {
	if by == byNodePort {
		return []Op{Load{Protocol, 0}, Load{DestinationPort, 1}}, 2
	}
	w := f.words
	return []Op{Load{f.destination, 0}, Load{Protocol, w}, Load{DestinationPort, w + 1}}, w + 2
}

// screen asks whether the client may come at all (K29).
func (f family) screen() Rule { return f.choose(mapRanged, byAddress) }

// choose does what a map says of the service port.
func (f family) choose(base string, by dialling) Rule {
	ops, _ := f.front(by)
	return append(ops, Branch{f.name(by.name(base)), 0})
}

func refuse(chain string) Rule { return Rule{Verdict{goTo(chain)}} }

// pick is the chain of all service ports with a number of endpoints, whose slots are in a map. A packet may be on its
// way while a transaction replaces what it is looking up, so that its slot is gone by now: there is always a first
// one, or none.
func (f family) pick(by dialling, slots string, endpoints int) Chain {
	among := func(endpoints int) Rule {
		ops, slot := f.front(by)
		return append(ops, Draw{uint32(endpoints), slot}, Get{f.name(by.name(slots)), 0, slot + 1}, Translate{f.netfilter, slot + 1, slot + 1 + f.words})
	}
	return newChain(fmt.Sprintf("%s-%d", f.name(by.name("pick-"+slots)), endpoints), among(endpoints), among(1), refuse(chainLost))
}

// turn is the chain of one service port whose endpoints take turns, which are counted there.
func (f family) turn(by dialling, id, slots string, endpoints int) Chain {
	ops, slot := f.front(by)
	among := func(number Op) Rule {
		return append(slices.Clone(ops), number, Get{f.name(by.name(slots)), 0, slot + 1}, Translate{f.netfilter, slot + 1, slot + 1 + f.words})
	}
	return newChain(f.name(by.name(chainTurn))+"-"+id, among(Count{uint32(endpoints), slot}), among(Draw{1, slot}), refuse(chainLost))
}

// hash is what serves a port whose choice is consistent: a map from buckets to endpoints, and a chain that hashes a
// flow, which is protocol, addresses and ports, or only the client's address, or the one that it dialled, into one. A
// packet may be on its way while a transaction gives its bucket to another endpoint, so it looks twice.
func (f family) hash(l lane) (Chain, Set, []Element) {
	set := Set{Name: f.name(mapBuckets) + "-" + l.id, Key: []Type{Word}, Data: []Type{f.addressType, PortNumber}}
	dealt := dealBuckets(l.targets)
	elements := make([]Element, len(dealt))
	for bucket, i := range dealt {
		elements[bucket] = Element{set.Name, word(uint32(bucket)), endpointBytes(l.at[i])}
	}
	look, from, to := f.hashed(l.scheduler)
	look = append(look, Hash{from, uint32(to-from) * registerBytes, uint32(len(dealt)), to},
		Get{set.Name, to, 0}, Translate{f.netfilter, 0, f.words})
	return newChain(f.name(chainHash)+"-"+l.id, look, look, refuse(chainLost)), set, elements
}

// hashed loads what a scheduler hashes, from a register up to another one.
func (f family) hashed(scheduler string) (ops []Op, from, to Register) {
	ops, source := f.front(byAddress)
	switch scheduler {
	case desired.DestinationHash:
		return ops, 0, f.words
	case desired.SourceHash:
		return append(ops, Load{f.source, source}), source, source + f.words
	}
	to = source + f.words
	return append(ops, Load{f.source, source}, Load{SourcePort, to}), 0, to + 1
}

// keep is what serves a port with affinity: a chain that looks which endpoint remembers the client, and else draws
// one; and of each endpoint a set of its clients and a chain that remembers one more. An endpoint that leaves takes
// its set along, and nobody else's client is touched (K36). Names are by id of service port and endpoint. First are rules
// that come before the draw.
func (f family) keep(id string, endpoints []netip.AddrPort, affinity time.Duration, first []Rule) (chain string, chains []Chain, sets []Set) {
	var known, drawn []Rule
	for i, e := range endpoints {
		name := f.keeper(id, e)
		sets = append(sets, Set{Name: name, Key: []Type{f.addressType}, Dynamic: true, Size: affinityClients})
		chains = append(chains, newChain(name,
			Rule{Load{f.source, 0}, Remember{name, 0, affinity}},
			Rule{Put{string(e.Addr().AsSlice()), 0}, Put{portBytes(e.Port())[:2], f.words}, Translate{f.netfilter, 0, f.words}}))
		known = append(known, Rule{Load{f.source, 0}, Member{name, 0}, Verdict{goTo(name)}})
		drawn = append(drawn, Rule{
			Draw{uint32(len(endpoints) - i), 0}, Match{Register: 0, Value: word(0)}, Verdict{goTo(name)},
		})
	}
	chain = f.name(chainKeep) + "-" + id
	return chain, append(chains, newChain(chain, slices.Concat(known, first, drawn)...)), sets
}

// keeper is the set and chain of an endpoint of a port with affinity.
func (f family) keeper(id string, e netip.AddrPort) string {
	return f.name(chainKeep) + "-" + id + "-" + shortHash(e.String())
}

// first are the rules by which a port with affinity chooses for clients that no endpoint remembers where the choice is
// consistent: by the client's address alone, or the one that it dialled, so that every node sends a client to the same
// endpoint. A packet whose bucket changes hands while it looks for it is left to the draw.
func (f family) first(l lane) (rules []Rule, sets []Set, elements []Element) {
	by := f.source
	if l.scheduler == desired.DestinationHash {
		by = f.destination
	}
	dealt := dealBuckets(l.targets)
	for _, e := range l.at {
		set := Set{Name: f.name(setFirst) + "-" + l.id + "-" + shortHash(e.String()), Key: []Type{Word}}
		sets = append(sets, set)
		rules = append(rules, Rule{
			Load{by, 0}, Hash{0, uint32(f.words) * registerBytes, uint32(len(dealt)), f.words},
			Member{set.Name, f.words}, Verdict{goTo(f.keeper(l.id, e))},
		})
	}
	for bucket, i := range dealt {
		elements = append(elements, Element{sets[i].Name, word(uint32(bucket)), ""})
	}
	return rules, sets, elements
}

// weighted is first where chance decides, and endpoints have weights: one draw among all slots.
func (f family) weighted(l lane) (rules []Rule, sets []Set, elements []Element) {
	set := Set{Name: f.name(mapWeighted) + "-" + l.id, Key: []Type{Word}, Verdict: true}
	dealt := l.dealt()
	for slot, e := range dealt {
		elements = append(elements, Element{set.Name, word(uint32(slot)), goTo(f.keeper(l.id, e))})
	}
	return []Rule{{Draw{uint32(len(dealt)), 0}, Branch{set.Name, 0}}}, []Set{set}, elements
}

// word is a number as registers have it.
func word(n uint32) string {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], n)
	return string(b[:])
}

// portBytes is a port as keys and data have it.
func portBytes(port uint16) string {
	var b [4]byte
	binary.BigEndian.PutUint16(b[:], port)
	return string(b[:])
}

// endpointBytes is an endpoint as data have it.
func endpointBytes(e netip.AddrPort) string { return string(e.Addr().AsSlice()) + portBytes(e.Port()) }

// shortHash makes a name out of what is too long for one.
func shortHash(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:8])
}
