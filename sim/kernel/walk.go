// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/kernel/message"
)

// Packet is the first packet of a flow that comes from outside the node.
type Packet struct {
	Source, Destination netip.Addr
	Protocol            uint8
	Port                uint16
	Hash                uint64 // of the flow: what is drawn for it depends on this, and its source port is made of it
}

// memory is what dynamic sets hold, by set and key, and until when.
type memory map[string]map[string]time.Duration

// walker takes a packet through the chains of a table.
type walker struct {
	t        *message.Table
	packet   Packet
	own      bool // it is for an address of the node's interfaces
	now      time.Duration
	known    memory
	mark     uint32
	values   [registers * 4]byte
	draws    int
	explores *exploring // what is drawn; nil: it depends on the flow
	verdict  string     // passed, dropped, refused, translated
	endpoint netip.AddrPort
}

// translate tells what a table makes of a packet that comes in. known is what dynamic sets hold, and will.
func (k *Kernel) translate(t *message.Table, p Packet, known memory) (verdict string, endpoint netip.AddrPort) {
	return k.walk(t, p, known, nil)
}

func (k *Kernel) walk(t *message.Table, p Packet, known memory, e *exploring) (verdict string, endpoint netip.AddrPort) {
	w := &walker{t: t, packet: p, own: k.own(p.Destination), now: k.world.Now(), known: known, explores: e, verdict: "passed"}
	var entries []message.Chain
	for _, name := range slices.Sorted(maps.Keys(t.Chains)) {
		if t.Chains[name].Hook == 1 {
			entries = append(entries, t.Chains[name])
		}
	}
	slices.SortStableFunc(entries, func(a, b message.Chain) int { return cmp.Compare(a.Priority, b.Priority) })
	for _, c := range entries {
		if w.chain(c.Name, 0) {
			break
		}
	}
	return w.verdict, w.endpoint
}

// depth bounds jumps, as Linux does.
const depth = 16

// chain tells whether the walk is over.
func (w *walker) chain(name string, deep int) (over bool) {
	if deep > depth {
		w.verdict = "dropped"
		return true
	}
	for _, rule := range w.t.Chains[name].Rules {
		verdict := w.rule(rule)
		switch {
		case verdict == "":
		case verdict == "return":
			return false
		case verdict == "over":
			return true
		case verdict == "drop":
			w.verdict = "dropped"
			return true
		case strings.HasPrefix(verdict, "jump "):
			if w.chain(verdictChain(verdict), deep+1) {
				return true
			}
		default:
			return w.chain(verdictChain(verdict), deep+1)
		}
	}
	return false
}

// rule gives a rule's verdict, none if a step did not hold.
func (w *walker) rule(rule []message.Step) string {
	for _, s := range rule {
		holds, verdict := w.step(s)
		if !holds {
			return ""
		}
		if verdict != "" {
			return verdict
		}
	}
	return ""
}

func (w *walker) step(s message.Step) (holds bool, verdict string) {
	data, _ := hex.DecodeString(s.Data) // was judged when the rule came
	switch s.Do {
	case "load":
		w.write(s.To, w.field(s.Field))
	case "put":
		w.write(s.To, data)
	case "draw":
		w.write(s.To, binary.NativeEndian.AppendUint32(nil, w.draw(s.Number)))
	case "hash":
		h := fnv.New64a()
		_, _ = h.Write(w.read(s.From, int(s.Bits))) // never fails
		w.write(s.To, binary.NativeEndian.AppendUint32(nil, uint32(h.Sum64()%uint64(s.Number))))
	case "mask":
		at := w.values[s.To*4:]
		for i, b := range data {
			at[i] &= b
		}
	case "match":
		return (string(w.read(s.From, len(data))) == string(data)) != s.Not, ""
	case "set-mark":
		w.mark = w.mark&^s.Bits | s.Number
	case "member":
		return w.member(s), ""
	case "get":
		found, ok := w.t.Elements[s.Set][w.key(s)]
		value, _ := hex.DecodeString(found)
		w.write(s.To, value)
		return ok, ""
	case "branch":
		found, ok := w.t.Elements[s.Set][w.key(s)]
		return ok, found
	case "remember":
		if w.known[s.Set] == nil {
			w.known[s.Set] = map[string]time.Duration{}
		}
		w.known[s.Set][w.key(s)] = w.now + s.For
	case "translate":
		a, _ := netip.AddrFromSlice(w.read(s.To, map[byte]int{2: 4, 10: 16}[s.Family]))
		w.verdict, w.endpoint = "translated", netip.AddrPortFrom(a, binary.BigEndian.Uint16(w.read(s.From, 2)))
		return true, "over"
	case "masquerade":
		return true, "over"
	case "refuse":
		w.verdict = "refused"
		return true, "over"
	}
	return true, s.Is
}

// draw is a number below of, which depends on the flow and on how many were drawn before.
func (w *walker) draw(of uint32) uint32 {
	if w.explores != nil {
		return w.explores.draw(of)
	}
	w.draws++
	h := w.packet.Hash + uint64(w.draws)*0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return uint32((h ^ h>>31) % uint64(of))
}

func (w *walker) field(field int) []byte {
	switch field {
	case fieldFamily:
		if w.packet.Destination.Is4() {
			return []byte{2}
		}
		return []byte{10}
	case fieldProtocol:
		return []byte{w.packet.Protocol}
	case fieldPort:
		return binary.BigEndian.AppendUint16(nil, w.packet.Port)
	case fieldSource4, fieldSource6:
		return w.packet.Source.AsSlice()
	case fieldDestination4, fieldDestination6:
		return w.packet.Destination.AsSlice()
	case fieldMark:
		return binary.NativeEndian.AppendUint32(nil, w.mark)
	case fieldSourcePort:
		return binary.BigEndian.AppendUint16(nil, uint16(w.packet.Hash))
	case fieldDestinationType:
		if w.own {
			return binary.NativeEndian.AppendUint32(nil, 2) // RTN_LOCAL
		}
		return binary.NativeEndian.AppendUint32(nil, 1) // RTN_UNICAST
	case fieldSourceType:
		return binary.NativeEndian.AppendUint32(nil, 1) // RTN_UNICAST
	case fieldOutbound:
		return binary.NativeEndian.AppendUint32(nil, 3) // where pods are
	case fieldInbound:
		return binary.NativeEndian.AppendUint32(nil, 2) // the card
	}
	return make([]byte, 4)
}

// write fills whole registers.
func (w *walker) write(at int, value []byte) {
	if at*4+len(value) > len(w.values) {
		return // an address of the other family: a later step does not hold
	}
	for i := range (len(value) + 3) / 4 * 4 {
		b := byte(0)
		if i < len(value) {
			b = value[i]
		}
		w.values[at*4+i] = b
	}
}

func (w *walker) read(at, n int) []byte { return w.values[at*4 : at*4+n] }

func (w *walker) key(s message.Step) string {
	return hex.EncodeToString(w.read(s.From, size(w.t.Sets[s.Set].Key)))
}

func (w *walker) member(s message.Step) bool {
	key, set := w.key(s), w.t.Sets[s.Set]
	switch {
	case set.Dynamic:
		return w.known[s.Set][key] > w.now
	case !set.Interval:
		_, there := w.t.Elements[s.Set][key]
		return there
	}
	in := false
	for _, k := range slices.Sorted(maps.Keys(w.t.Elements[s.Set])) {
		if k <= key {
			in = w.t.Elements[s.Set][k] != message.IntervalEnd
		}
	}
	return in
}
