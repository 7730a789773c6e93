// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

var (
	vip    = netip.MustParseAddr("192.0.2.10")
	vip6   = netip.MustParseAddr("2001:db8::10")
	client = netip.MustParseAddr("203.0.113.2")
	pod    = netip.MustParseAddr("10.0.1.2")
	host   = netip.MustParseAddr("203.0.113.1")
)

func newTally() *Tally {
	return &Tally{
		To: map[netip.Addr]bool{vip: true, vip6: true}, Inside: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")},
		Own:      map[netip.Addr]bool{host: true},
		Timeouts: Timeouts{TCP: []time.Duration{120 * time.Hour, 5 * time.Minute}, UDP: []time.Duration{30 * time.Second, 2 * time.Minute}},
	}
}

func TestCountsWhatComesInAndIsOpen(t *testing.T) {
	tcp := Flow{Protocol: protocolTCP, From: client, To: vip, State: established, Left: 120 * time.Hour}
	with := func(f Flow, change func(*Flow)) Flow { change(&f); return f }
	for name, c := range map[string]struct {
		flow Flow
		want Count
	}{
		"established":                {tcp, Count{1, 1}},
		"to another address":         {with(tcp, func(f *Flow) { f.To = client }), Count{}},
		"from a pod":                 {with(tcp, func(f *Flow) { f.From = pod }), Count{}},
		"from the node":              {with(tcp, func(f *Flow) { f.From = host }), Count{}},
		"from loopback":              {with(tcp, func(f *Flow) { f.From = netip.MustParseAddr("127.0.0.1") }), Count{}},
		"time-wait":                  {with(tcp, func(f *Flow) { f.State = 7 }), Count{}},
		"only a SYN":                 {with(tcp, func(f *Flow) { f.State = 1 }), Count{}},
		"half closed":                {with(tcp, func(f *Flow) { f.State, f.Left = closeWait, time.Minute }), Count{1, 1}},
		"quiet":                      {with(tcp, func(f *Flow) { f.Left -= BusyWithin }), Count{1, 0}},
		"not quiet yet":              {with(tcp, func(f *Flow) { f.Left -= BusyWithin - time.Second }), Count{1, 1}},
		"waits for an answer":        {with(tcp, func(f *Flow) { f.Left = 290 * time.Second }), Count{1, 1}},
		"has waited for long":        {with(tcp, func(f *Flow) { f.Left = 250 * time.Second }), Count{1, 0}},
		"beyond every timeout":       {with(tcp, func(f *Flow) { f.Left = 1000 * time.Hour }), Count{1, 1}},
		"UDP":                        {Flow{Protocol: protocolUDP, From: client, To: vip, Left: 115 * time.Second}, Count{1, 1}},
		"UDP, one datagram":          {Flow{Protocol: protocolUDP, From: client, To: vip, Left: 10 * time.Second}, Count{1, 1}},
		"UDP, quiet":                 {Flow{Protocol: protocolUDP, From: client, To: vip, Left: 40 * time.Second}, Count{1, 0}},
		"SCTP, of which nobody says": {Flow{Protocol: 132, From: client, To: vip, Left: time.Hour}, Count{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			tally := newTally()
			tally.Add(c.flow)
			if tally.Count != c.want {
				t.Errorf("%+v, want %+v", tally.Count, c.want)
			}
		})
	}
}

// attribute encodes one attribute as the kernel does.
func attribute(kind uint16, value ...byte) []byte {
	out := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	out = binary.NativeEndian.AppendUint16(out, kind)
	out = append(out, value...)
	for len(out)%4 != 0 {
		out = append(out, 0)
	}
	return out
}

// What was encoded is read, whatever is between; what was cut off or changed does no harm.
func TestPropertyMessagesAreRead(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		want := Flow{
			Protocol: rapid.SampledFrom([]uint8{6, 17, 132}).Draw(t, "protocol"), State: State(rapid.Uint8Max(11).Draw(t, "state")),
			Left: time.Duration(rapid.Uint32().Draw(t, "seconds")) * time.Second, From: client, To: vip,
		}
		src, dst := uint16(ctaV4Src), uint16(ctaV4Dst)
		if rapid.Bool().Draw(t, "v6") {
			want.From, want.To, src, dst = netip.MustParseAddr("2001:db8:c::2"), vip6, ctaV6Src, ctaV6Dst
		}
		const nested = 0x8000
		odd := rapid.SliceOfN(rapid.Byte(), 0, 9)
		noise := func(label string) []byte { return attribute(40, odd.Draw(t, label)...) }
		tuple := append(attribute(ctaTupleIP|nested, append(attribute(src, want.From.AsSlice()...), attribute(dst, want.To.AsSlice()...)...)...),
			attribute(ctaTupleProto|nested, append(attribute(ctaProtoNum, want.Protocol), attribute(2, 0, 80)...)...)...)
		message := []byte{2, 0, 0, 0}
		message = append(message, attribute(ctaTupleOrig|nested, tuple...)...)
		message = append(message, noise("between")...)
		message = append(message, attribute(ctaProtoInfo|nested, attribute(ctaProtoInfoTCP|nested, attribute(ctaTCPState, byte(want.State))...)...)...)
		message = append(message, attribute(ctaTimeout, binary.BigEndian.AppendUint32(nil, uint32(want.Left/time.Second))...)...)
		message = append(message, noise("after")...)
		if got, ok := parse(message); !ok || got != want {
			t.Fatalf("%+v %t, want %+v", got, ok, want)
		}
		at := rapid.IntRange(0, len(message)-1).Draw(t, "at")
		parse(message[:at])
		message[at] = rapid.Byte().Draw(t, "byte")
		parse(message)
	})
}
