// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"sort"
	"strings"
)

// machine walks packets through a Ruleset as the kernel would. It knows the steps and nothing of Services.
type machine struct {
	rules  Ruleset
	memory map[string]map[string]bool // elements of dynamic sets
	own    []netip.Addr               // addresses of the node
	looked int                        // how often something was looked up
	draw   func(call int, of uint32) uint32
	hash   func(data string, of uint32) uint32
}

func newMachine(r Ruleset) *machine {
	return &machine{rules: r, memory: map[string]map[string]bool{}, own: nodes, hash: fnvHash}
}

// fnvHash is as good as the kernel's, and another one.
func fnvHash(data string, of uint32) uint32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(data)) // never fails
	return uint32(h.Sum64() % uint64(of))
}

// packet is the first of a connection.
type packet struct {
	source, destination netip.Addr
	protocol            uint8
	port                uint16
	sourcePort          uint16
	local               bool // sent by this node
	way                 way
}

// way is how a packet of others passes this node.
type way int

const (
	routed  way = iota // out by another interface than it came in by
	back               // out by the same
	bridged            // from port to port of a bridge, shown by br_netfilter
)

// fate is what became of a packet.
type fate struct {
	verdict     string // passed, dropped, refused, translated
	endpoint    netip.AddrPort
	masqueraded bool
	tallied     []string // chains that counted it
}

// walk sends a packet through the hooks that it meets.
func (m *machine) walk(p packet) (is fate) {
	w := &walker{machine: m, packet: p}
	defer func() { is.tallied = w.tallied }()
	hook := Prerouting
	if p.local {
		hook = Output
	}
	w.enter(hook)
	if w.fate.verdict != "passed" && w.fate.verdict != "translated" {
		return w.fate
	}
	if w.fate.verdict == "translated" {
		w.packet.destination, w.packet.port = w.fate.endpoint.Addr(), w.fate.endpoint.Port()
		w.status = translated
	}
	if w.mark != 0 && w.fate.verdict == "passed" && slices.Contains(m.own, p.destination) {
		panic("a packet for a program of this node is marked")
	}
	before := w.fate
	w.leaves = true
	w.enter(Postrouting)
	before.masqueraded = w.fate.masqueraded
	if w.mark != 0 {
		panic("the mark leaves the node")
	}
	return before
}

type walker struct {
	*machine
	packet    packet
	mark      uint32
	status    uint32
	registers [64]byte
	written   [16]bool // by this rule
	calls     int
	leaves    bool   // it is at the last hook
	at        string // the chain
	tallied   []string
	fate      fate
}

func (w *walker) enter(hook Hook) {
	w.fate = fate{verdict: "passed"}
	for _, c := range w.rules.Chains {
		if c.Hook == hook {
			w.chain(c.Name)
		}
	}
}

// chain tells whether the walk is over.
func (w *walker) chain(name string) (over bool) {
	c, ok := w.rules.Chains[name]
	if !ok {
		panic("no chain " + name)
	}
	for _, r := range c.Rules {
		w.written, w.at = [16]bool{}, name
		verdict := w.rule(r)
		target, jump := strings.CutPrefix(verdict, "jump ")
		switch {
		case verdict == "":
		case verdict == "return":
			return false
		case verdict == "over":
			return true
		case verdict == "drop":
			w.fate.verdict = "dropped"
			return true
		case jump:
			if w.chain(target) {
				return true
			}
		default:
			return w.chain(strings.TrimPrefix(verdict, "goto "))
		}
	}
	return false
}

// rule gives the verdict, none if a step did not hold.
func (w *walker) rule(r Rule) string {
	for _, op := range r {
		holds, verdict := w.step(op)
		if !holds {
			return ""
		}
		if verdict != "" {
			return verdict
		}
	}
	return ""
}

func (w *walker) step(op Op) (holds bool, verdict string) {
	switch op.(type) {
	case Member, Get, Branch:
		w.looked++
	}
	switch o := op.(type) {
	case Load:
		w.write(o.Into, w.field(o.Field))
	case Put:
		w.write(o.Into, o.Value)
	case Draw:
		w.write(o.Into, native(w.draw(w.calls, o.Of)))
		w.calls++
	case Count: // the state of the count is as good as drawn
		w.write(o.Into, native(w.draw(w.calls, o.Of)))
		w.calls++
	case Hash:
		w.write(o.Into, native(w.hash(w.read(o.From, int(o.Bytes)), o.Of)))
	case Mask:
		b := []byte(w.read(o.In, len(o.Bits)))
		for i := range b {
			b[i] &= o.Bits[i]
		}
		w.write(o.In, string(b))
	case SetMark:
		w.mark = w.mark&^o.Bits | o.Value
	case Match:
		return (w.read(o.Register, len(o.Value)) == o.Value) != o.Not, ""
	case Member:
		return w.member(o), ""
	case Get:
		data, ok := w.rules.Elements[o.Map][w.key(o.Map, o.Key)]
		if ok {
			w.write(o.Into, data)
		}
		return ok, ""
	case Branch:
		verdict, ok := w.rules.Elements[o.Map][w.key(o.Map, o.Key)]
		return ok, verdict
	case Remember:
		if w.memory[o.Set] == nil {
			w.memory[o.Set] = map[string]bool{}
		}
		w.memory[o.Set][w.key(o.Set, o.Key)] = true
	case Translate:
		addr, _ := netip.AddrFromSlice([]byte(w.read(o.Address, map[byte]int{2: 4, 10: 16}[o.Family])))
		w.fate = fate{verdict: "translated", endpoint: netip.AddrPortFrom(addr, binary.BigEndian.Uint16([]byte(w.read(o.Port, 2))))}
		return true, "over"
	case Masquerade:
		w.fate.masqueraded = true
		return true, "over"
	case Refuse:
		w.fate.verdict = "refused"
		if o.Reset != (w.packet.protocol == 6) {
			w.fate.verdict = "refused in another protocol's way"
		}
		return true, "over"
	case Tally:
		w.tallied = append(w.tallied, w.at)
	case Verdict:
		return true, o.Is
	default:
		panic(fmt.Sprintf("unknown step %T", op))
	}
	return true, ""
}

func native(n uint32) string {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], n)
	return string(b[:])
}

func (w *walker) field(f Field) string {
	switch f {
	case Family:
		if w.packet.destination.Is4() {
			return "\x02"
		}
		return "\x0a"
	case Protocol:
		return string([]byte{w.packet.protocol})
	case SourcePort:
		return string(binary.BigEndian.AppendUint16(nil, w.packet.sourcePort))
	case DestinationPort:
		return string(binary.BigEndian.AppendUint16(nil, w.packet.port))
	case Source4, Source6:
		return string(w.packet.source.AsSlice())
	case Destination4, Destination6:
		return string(w.packet.destination.AsSlice())
	case DestinationType:
		if slices.Contains(w.own, w.packet.destination) {
			return native(2)
		}
		return native(1)
	case PacketMark:
		return native(w.mark)
	case ConnectionStatus:
		return native(w.status | 1<<3)
	case SourceType:
		if slices.Contains(w.own, w.packet.source) {
			return native(2)
		}
		return native(1)
	case Inbound:
		if w.packet.local || w.packet.way == bridged && w.leaves {
			return native(0)
		}
		return native(3)
	case Outbound:
		if w.packet.way == routed {
			return native(4)
		}
		return native(3)
	}
	panic("unknown field")
}

func (w *walker) write(r Register, value string) {
	for len(value)%4 != 0 {
		value += "\x00"
	}
	copy(w.registers[int(r)*4:], value)
	for i := range len(value) / 4 {
		w.written[int(r)+i] = true
	}
}

// read fails at what this rule did not write, as the kernel does when it takes a rule.
func (w *walker) read(r Register, n int) string {
	for i := range (n + 3) / 4 {
		if !w.written[int(r)+i] {
			panic(fmt.Sprintf("register %d is read, but was not written", int(r)+i))
		}
	}
	return string(w.registers[int(r)*4 : int(r)*4+n])
}

func (w *walker) key(set string, r Register) string {
	s, ok := w.rules.Sets[set]
	if !ok {
		panic("no set " + set)
	}
	n := 0
	for _, t := range s.Key {
		n += map[Type]int{Address4: 4, Address6: 16, ProtocolNumber: 4, PortNumber: 4, Word: 4}[t]
	}
	return w.read(r, n)
}

func (w *walker) member(o Member) bool {
	key := w.key(o.Set, o.Key)
	set := w.rules.Sets[o.Set]
	if set.Dynamic {
		return w.memory[o.Set][key]
	}
	elements := w.rules.Elements[o.Set]
	if !set.Interval {
		_, ok := elements[key]
		return ok
	}
	ends := make([]string, 0, len(elements))
	for k := range elements {
		ends = append(ends, k)
	}
	sort.Strings(ends)
	in := false
	for _, k := range ends {
		if k <= key {
			in = elements[k] == ""
		}
	}
	return in
}
