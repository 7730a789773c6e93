// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/fabric/message"
)

func drawNLRI() *rapid.Generator[message.NLRI] {
	return rapid.Custom(func(t *rapid.T) message.NLRI {
		text := rapid.SampledFrom([]string{"203.0.113.1/32", "198.51.100.0/24", "0.0.0.0/0", "2001:db8::1/128", "::/0"}).Draw(t, "prefix")
		return message.NLRI{Prefix: netip.MustParsePrefix(text), PathID: rapid.Uint32().Draw(t, "id")}
	})
}

func drawMessage() *rapid.Generator[message.Message] {
	seconds := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(0, 1<<16-1).Draw(t, "seconds")) * time.Second
	})
	return rapid.Custom(func(t *rapid.T) message.Message {
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			o := message.Open{
				ASN: rapid.Uint32().Draw(t, "asn"), RouterID: netip.MustParseAddr("192.0.2.1"), Hold: seconds.Draw(t, "hold"),
				Families: []message.Family{4, 6}, AddPath: rapid.Bool().Draw(t, "add-path"), SendMax: rapid.Byte().Draw(t, "send-max"),
				Key: rapid.StringN(0, 8, 16).Draw(t, "key"),
			}
			if rapid.Bool().Draw(t, "restart") {
				o.Restart = &message.Restart{
					Time: seconds.Draw(t, "time"), Forwarding: rapid.Bool().Draw(t, "forwarding"),
					Notification: rapid.Bool().Draw(t, "notification"), Stale: seconds.Draw(t, "stale"),
				}
			}
			return o
		case 1:
			u := message.Update{Withdrawn: rapid.SliceOfN(drawNLRI(), 0, 5).Draw(t, "withdrawn")}
			if len(u.Withdrawn) == 0 {
				u.Withdrawn = nil
			}
			if rapid.Bool().Draw(t, "announces") {
				u.Announced = rapid.SliceOfN(drawNLRI(), 1, 5).Draw(t, "announced")
				u.Attributes = message.Attributes{
					NextHop: netip.MustParseAddr(rapid.SampledFrom([]string{"192.0.2.1", "2001:db8::2"}).Draw(t, "next hop")),
					Origin:  rapid.Byte().Draw(t, "origin"), MED: rapid.Uint32().Draw(t, "med"), LocalPref: rapid.Uint32().Draw(t, "local pref"),
					ASPath: []uint32{64512, rapid.Uint32().Draw(t, "as")}, Communities: []uint32{rapid.Uint32().Draw(t, "community")},
					LargeCommunities: [][3]uint32{{1, 2, rapid.Uint32().Draw(t, "large")}},
				}
			}
			return u
		case 2:
			return message.Notification{Code: rapid.Byte().Draw(t, "code"), Subcode: rapid.Byte().Draw(t, "subcode"), Text: rapid.StringN(0, 20, 60).Draw(t, "text")}
		case 6:
			return message.Deadly{}
		case 7:
			return message.Confusing{}
		case 3:
			return message.Arrived{Count: rapid.Uint32().Draw(t, "count")}
		case 4:
			return message.EndOfRIB{Family: message.Family(rapid.Byte().Draw(t, "family"))}
		}
		return message.Keepalive{}
	})
}

// Whatever was encoded is decoded, however the stream is cut into pieces.
func TestDecodeGivesWhatEncodeTook(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(drawMessage(), 1, 4).Draw(t, "messages")
		var stream []byte
		for _, m := range want {
			stream = append(stream, message.Encode(m)...)
		}
		var d message.Decoder
		var got []message.Message
		for len(stream) > 0 {
			n := rapid.IntRange(1, len(stream)).Draw(t, "piece")
			d.Add(stream[:n])
			stream = stream[n:]
			for {
				m, err := d.Next()
				if err != nil {
					t.Fatal(err)
				}
				if m == nil {
					break
				}
				got = append(got, m)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("decoded %+v", got)
		}
	})
}

// Bytes that nobody encoded are an error, or wait for more; they never do harm.
func TestGarbageIsAnError(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		b := message.Encode(drawMessage().Draw(t, "message"))
		b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		var d message.Decoder
		d.Add(append(b, rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "more")...))
		for {
			if m, err := d.Next(); m == nil || err != nil {
				return
			}
		}
	})
}

// Room is what fits: one path more makes a message too long.
func TestRoomIsWhatFits(t *testing.T) {
	a := message.Attributes{NextHop: netip.MustParseAddr("192.0.2.1"), ASPath: []uint32{64512}, Communities: []uint32{1, 2, 3}}
	u := message.Update{Attributes: a}
	one := message.NLRI{Prefix: netip.MustParsePrefix("203.0.113.1/32")}
	for range a.Room() / one.Size() {
		u.Announced = append(u.Announced, one)
	}
	for _, fits := range []bool{true, false} {
		var d message.Decoder
		d.Add(message.Encode(u))
		if m, err := d.Next(); (err == nil && m != nil) != fits {
			t.Errorf("%d paths: %v", len(u.Announced), err)
		}
		u.Announced = append(u.Announced, one)
	}
}
