// SPDX-License-Identifier: Apache-2.0

package l2_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/l2"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

var (
	vip4, vip6       = netip.MustParseAddr("192.0.2.50"), netip.MustParseAddr("2001:db8::50")
	client4, client6 = netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("2001:db8::9")
	clientMAC        = l2.MAC{2, 0, 0, 0, 0, 9}
	nodeMAC          = l2.MAC{2, 0, 0, 0, 0, 1}
)

func eth(name string, up bool, prefixes ...string) l2.Interface {
	i := l2.Interface{Name: name, Index: int(name[len(name)-1]), MAC: nodeMAC, Up: up}
	for _, p := range prefixes {
		i.Addresses = append(i.Addresses, netip.MustParsePrefix(p))
	}
	return i
}

func lease(a netip.Addr, fence uint64) l2.Lease {
	return l2.Lease{Address: a, Fence: fsm.Revision{Epoch: 1, Index: fsm.Index(fence)}, Term: 3 * time.Second}
}

// asks is a question for an address as a client puts it on the wire, written out from the RFCs.
func asks(from l2.MAC, source, target netip.Addr) []byte {
	var f []byte
	if target.Is4() {
		f = append(f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
		f = append(append(f, from[:]...), 8, 6, 0, 1, 8, 0, 6, 4, 0, 1)
		f = append(append(f, from[:]...), source.AsSlice()...)
		return append(append(f, 0, 0, 0, 0, 0, 0), target.AsSlice()...)
	}
	t := target.As16()
	group := netip.AddrFrom16([16]byte{0xff, 2, 11: 1, 12: 0xff, 13: t[13], 14: t[14], 15: t[15]})
	m := append([]byte{135, 0, 0, 0, 0, 0, 0, 0}, t[:]...)
	m = append(append(m, 1, 1), from[:]...)
	pseudo := append(append(source.AsSlice(), group.AsSlice()...), 0, 0, 0, byte(len(m)), 0, 0, 0, 58)
	var sum uint32
	for b := append(pseudo, m...); len(b) > 0; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	binary.BigEndian.PutUint16(m[2:], ^uint16(sum>>16+sum&0xffff))
	f = append(f, 0x33, 0x33, 0xff, t[13], t[14], t[15])
	f = append(append(f, from[:]...), 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(m)), 58, 255)
	return append(append(append(f, source.AsSlice()...), group.AsSlice()...), m...)
}

// says reads who a frame says has an address.
func says(t interface{ Fatalf(string, ...any) }, f []byte) (address netip.Addr, mac l2.MAC) {
	switch {
	case len(f) == 42 && f[12] == 8 && f[13] == 6:
		return netip.AddrFrom4([4]byte(f[28:32])), l2.MAC(f[22:28])
	case len(f) == 86 && f[12] == 0x86 && f[54] == 136 && f[78] == 2:
		return netip.AddrFrom16([16]byte(f[62:78])), l2.MAC(f[80:86])
	}
	t.Fatalf("neither ARP nor an advertisement: %x", f)
	return
}

// holding is a responder that was granted leases at a time.
func holding(t *testing.T, now time.Duration, links []l2.Interface, leases ...l2.Lease) *l2.Responder {
	r := l2.NewResponder()
	r.SetInterfaces(now, links)
	if !r.Grant(now, r.Renew(now).Sent, leases) {
		t.Fatal("the answer to the newest renewal does not count")
	}
	return r
}

func TestAnswersAreWhatClientsNeed(t *testing.T) {
	t.Parallel()
	r := holding(t, 0, []l2.Interface{eth("eth0", true, "192.0.2.1/24", "2001:db8::1/64")}, lease(vip4, 5), lease(vip6, 6))
	for _, c := range []struct{ source, target netip.Addr }{{client4, vip4}, {client6, vip6}} {
		f := r.Hear(1, "eth0", asks(clientMAC, c.source, c.target))
		if a, mac := says(t, f); a != c.target || mac != nodeMAC {
			t.Errorf("%s: answered with %s at %x", c.target, a, mac)
		}
		if l2.MAC(f[:6]) != clientMAC || l2.MAC(f[6:12]) != nodeMAC {
			t.Errorf("%s: from %x to %x", c.target, f[6:12], f[:6])
		}
	}
	f := r.Hear(1, "eth0", asks(clientMAC, client4, vip4))
	if f[21] != 2 || netip.AddrFrom4([4]byte(f[38:42])) != client4 || l2.MAC(f[32:38]) != clientMAC {
		t.Errorf("not a reply to the asker: %x", f)
	}
	f = r.Hear(1, "eth0", asks(clientMAC, client6, vip6))
	if f[58] != 0x60 || f[21] != 255 || netip.AddrFrom16([16]byte(f[38:54])) != client6 {
		t.Errorf("not a solicited advertisement that overrides: %x", f)
	}
}

// Whoever looks whether an address is taken has none yet: the answer goes to all (RFC 4862), or to its card (RFC 5227).
func TestProbesForDuplicatesAreAnswered(t *testing.T) {
	t.Parallel()
	r := holding(t, 0, []l2.Interface{eth("eth0", true)}, lease(vip4, 5), lease(vip6, 6))
	f := r.Hear(1, "eth0", asks(clientMAC, netip.IPv6Unspecified(), vip6))
	if f == nil || l2.MAC(f[:6]) != (l2.MAC{0x33, 0x33, 0, 0, 0, 1}) || f[58] != 0x20 {
		t.Errorf("%x", f)
	}
	if f = r.Hear(1, "eth0", asks(clientMAC, netip.IPv4Unspecified(), vip4)); f == nil || l2.MAC(f[:6]) != clientMAC {
		t.Errorf("%x", f)
	}
}

func TestWhatIsNotAQuestionIsNotAnswered(t *testing.T) {
	t.Parallel()
	r := holding(t, 0, []l2.Interface{eth("eth0", true)}, lease(vip4, 5), lease(vip6, 6))
	good4, good6 := asks(clientMAC, client4, vip4), asks(clientMAC, client6, vip6)
	broken := func(f []byte, at int, to byte) []byte {
		f = slices.Clone(f)
		f[at] = to
		return f
	}
	for name, f := range map[string][]byte{
		"reply": broken(good4, 21, 2), "gratuitous": asks(clientMAC, vip4, vip4), "token-ring": broken(good4, 15, 6),
		"group-asker": broken(good4, 22, 3), "group-source": broken(good4, 6, 3), "cut-off": good4[:41], "own": asks(nodeMAC, client4, vip4),
		"routed": broken(good6, 21, 254), "checksum": broken(good6, 56, 1), "code": broken(good6, 55, 1), "option-of-no-length": broken(good6, 79, 0),
		"option-too-long": broken(good6, 79, 2), "extension-header": broken(good6, 20, 44), "short": good6[:80],
		"other-address": asks(clientMAC, client4, client4.Next()), "empty": nil,
	} {
		if got := r.Hear(1, "eth0", f); got != nil {
			t.Errorf("%s: answered with %x", name, got)
		}
	}
}

func TestOnlyLinksOfTheAddressAnswer(t *testing.T) {
	t.Parallel()
	data, management := eth("eth1", true, "192.0.2.1/24"), eth("eth0", true, "198.51.100.1/24")
	answers := func(l l2.Lease, links ...l2.Interface) (on []string) {
		r := holding(t, 0, links, l)
		for _, i := range links {
			if r.Hear(1, i.Name, asks(clientMAC, client4, l.Address)) != nil {
				on = append(on, i.Name)
			}
		}
		return on
	}
	far := netip.MustParseAddr("203.0.113.7")
	named := lease(far, 5)
	named.Interfaces = []string{"eth1"}
	dead := eth("eth1", false, "192.0.2.1/24")
	for name, c := range map[string]struct{ got, want []string }{
		"in-one-network": {answers(lease(vip4, 5), management, data), []string{"eth1"}},
		"in-no-network":  {answers(lease(far, 5), management, data), []string{"eth0", "eth1"}},
		"named":          {answers(named, management, data), []string{"eth1"}},
		"dead":           {answers(lease(vip4, 5), management, dead), nil},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v answer, not %v", name, c.got, c.want)
		}
	}
}

// sent collects what is said unasked from a time on, looking whenever the responder asks for it.
func sent(t *testing.T, r *l2.Responder, from, until time.Duration) (at []time.Duration, frames []l2.Frame) {
	for now := from; now <= until; {
		due, next := r.Due(now)
		for range due {
			at = append(at, now)
		}
		frames = append(frames, due...)
		if next <= now {
			t.Fatalf("at %s it asks to be asked again at %s", now, next)
		}
		now = next
	}
	return at, frames
}

func TestANewOwnerAnnouncesThroughATerm(t *testing.T) {
	t.Parallel()
	r := holding(t, time.Second, []l2.Interface{eth("eth0", true)}, lease(vip4, 5))
	r.Grant(2*time.Second, r.Renew(2*time.Second).Sent, []l2.Lease{lease(vip4, 5)})
	at, frames := sent(t, r, 2*time.Second, 8*time.Second)
	if len(at) < 5 || at[0] != 2*time.Second || at[len(at)-1] < 4*time.Second || at[len(at)-1] > 5*time.Second {
		t.Errorf("announced at %v", at)
	}
	for _, f := range frames {
		if a, mac := says(t, f.Bytes); a != vip4 || mac != nodeMAC || f.Interface != "eth0" || l2.MAC(f.Bytes[:6]) != (l2.MAC{255, 255, 255, 255, 255, 255}) {
			t.Errorf("%x on %s", f.Bytes, f.Interface)
		}
	}
}

func TestACarrierThatComesBackIsAnnouncedOn(t *testing.T) {
	t.Parallel()
	r := holding(t, 0, []l2.Interface{eth("eth0", true, "2001:db8::1/64"), eth("eth1", true, "198.51.100.1/24")}, lease(vip6, 5))
	sent(t, r, 0, 4*time.Second)
	now := 4 * time.Second
	keep := func(links ...l2.Interface) {
		r.SetInterfaces(now, links)
		r.Grant(now, r.Renew(now).Sent, []l2.Lease{lease(vip6, 5)})
	}
	keep(eth("eth0", false), eth("eth1", true, "198.51.100.1/24")) // IPv6 addresses go with the carrier
	if _, frames := sent(t, r, now, now+time.Second); len(frames) > 0 {
		t.Errorf("announced while down: %v", frames)
	}
	now += time.Second
	if r.Hear(now, "eth1", asks(clientMAC, client6, vip6)) != nil {
		t.Error("the other network is answered on while the link is down")
	}
	keep(eth("eth0", true, "2001:db8::1/64"), eth("eth1", true, "198.51.100.1/24"))
	_, frames := sent(t, r, now, now+time.Second)
	frames = slices.DeleteFunc(frames, func(f l2.Frame) bool { return f.Bytes[54] == 135 }) // who asks who there is on eth1
	if len(frames) == 0 || frames[0].Interface != "eth0" {
		t.Fatalf("said on carrier: %v", frames)
	}
	if a, _ := says(t, frames[0].Bytes); a != vip6 {
		t.Errorf("%s", a)
	}
}

// second gives an interface a card of its own.
func second(i l2.Interface) l2.Interface {
	i.MAC = l2.MAC{2, 0, 0, 0, 0, 2}
	return i
}

// Of several links in one segment one answers, and when it does not any more the next one does, and says so at once. Rule of
// the order: who hears somebody, then the name.
func TestOfLinksInOneSegmentOneAnswersAndTheNextTakesOver(t *testing.T) {
	t.Parallel()
	near := [][]string{{"192.0.2.1/24", "2001:db8::1/64", "fe80::1/64"}, {"192.0.2.2/24", "2001:db8::2/64", "fe80::2/64"}}
	both := []l2.Interface{eth("eth0", true, near[0]...), second(eth("eth1", true, near[1]...))}
	far := netip.MustParseAddr("203.0.113.7") // which is in no network: all links are for it
	for name, after := range map[string][]l2.Interface{
		"it falls":                   {eth("eth0", false, near[0]...), both[1]},
		"it goes":                    {both[1]},
		"its addresses go elsewhere": {eth("eth0", true), second(eth("eth1", true, append(near[1], near[0]...)...))},
		"it hears nobody":            both,
	} {
		t.Run(name, func(t *testing.T) {
			leases := []l2.Lease{lease(vip4, 1), lease(vip6, 2), lease(far, 3)}
			if name == "its addresses go elsewhere" {
				leases = leases[:2] // nobody knows that eth0 is in the segment still
			}
			r := holding(t, 0, both, leases...)
			now, knows := time.Duration(0), ""
			renew := func() { r.Grant(now, r.Renew(now).Sent, leases) }
			answer := func() (on string) {
				for _, l := range leases {
					for _, i := range []string{"eth0", "eth1"} {
						source := client4
						if l.Address.Is6() {
							source = client6
						}
						if r.Hear(now, i, asks(clientMAC, source, l.Address)) != nil {
							if on != "" && on != i {
								t.Fatalf("%s: both links answer", l.Address)
							}
							on = i
						}
					}
				}
				return on
			}
			if knows = answer(); knows != "eth0" {
				t.Fatalf("%q answers, not the first by name", knows)
			}
			for ; now < 5*time.Second; now += time.Second {
				renew()
				sent(t, r, now, now+900*time.Millisecond)
				answer()
			}
			r.SetInterfaces(now, after)
			if name == "it hears nobody" {
				for range 5 {
					renew()
					r.Due(now)
					now += time.Second
					r.Hear(now, "eth1", asks(clientMAC, client4, client4))
				}
				renew()
			}
			frames, _ := r.Due(now)
			told := map[netip.Addr]bool{}
			for _, f := range frames {
				if f.Bytes[13] != 6 && f.Bytes[54] == 135 || f.Bytes[13] == 6 && netip.AddrFrom4([4]byte(f.Bytes[28:32])).Compare(client4) < 0 {
					continue // a question that tests the link
				}
				if a, mac := says(t, f.Bytes); f.Interface == "eth1" && mac == both[1].MAC {
					told[a] = true
				}
			}
			if len(told) != len(leases) {
				t.Errorf("told at once that eth1 answers: %v", told)
			}
			if name == "it hears nobody" {
				return // who asks eth0 is heard there
			}
			if on := answer(); on != "eth1" {
				t.Errorf("%q answers", on)
			}
		})
	}
}

func TestThousandsAreAnnouncedInBursts(t *testing.T) {
	t.Parallel()
	var many []l2.Lease
	for a := netip.MustParseAddr("203.0.113.0"); len(many) < 200; a = a.Next() {
		many = append(many, lease(a, uint64(len(many)+1)))
	}
	r := holding(t, 0, []l2.Interface{eth("eth0", true)}, many...)
	first, next := r.Due(0)
	if len(first) != 64 || next != 10*time.Millisecond {
		t.Fatalf("%d frames at once, then again in %s", len(first), next)
	}
	heard := map[netip.Addr]bool{}
	_, frames := sent(t, r, next, 100*time.Millisecond)
	for _, f := range append(first, frames...) {
		a, _ := says(t, f.Bytes)
		heard[a] = true
	}
	if len(heard) != len(many) {
		t.Errorf("%d of %d announced", len(heard), len(many))
	}
}

func TestALinkThatHearsNobodyIsDeaf(t *testing.T) {
	t.Parallel()
	r := holding(t, 0, []l2.Interface{eth("eth0", true, "192.0.2.1/24")})
	deaf := func(now time.Duration) bool { return r.Renew(now).Links[0].Deaf }
	if deaf(time.Hour) {
		t.Fatal("nobody was ever heard: nothing is known")
	}
	now := time.Hour
	r.Hear(now, "eth0", asks(clientMAC, client4, vip4))
	_, frames := sent(t, r, now, now+3*time.Second)
	if deaf(now+3*time.Second) || len(frames) < 3 || netip.AddrFrom4([4]byte(frames[0].Bytes[38:42])) != client4 {
		t.Fatalf("who was heard is asked again, and given time: %v", frames)
	}
	if !deaf(now + 4*time.Second) {
		t.Error("nobody answered for four seconds")
	}
	r.Hear(now+5*time.Second, "eth0", asks(clientMAC, client4, vip4))
	if deaf(now + 6*time.Second) {
		t.Error("somebody was heard again")
	}
}

// What was announced while nobody was heard may not have been heard either.
func TestWhoIsHeardAgainIsToldAgain(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"again": true, "for the first time": false} {
		t.Run(name, func(t *testing.T) { testToldAgain(t, before) })
	}
}

func testToldAgain(t *testing.T, before bool) {
	r := holding(t, 0, []l2.Interface{eth("eth0", true, "192.0.2.1/24")}, lease(vip4, 1))
	if before {
		r.Hear(0, "eth0", asks(clientMAC, client4, client4))
	}
	announced := func(from, until time.Duration) (n int) {
		_, frames := sent(t, r, from, until)
		for _, f := range frames {
			if netip.AddrFrom4([4]byte(f.Bytes[28:32])) == vip4 {
				n++
			}
		}
		return n
	}
	last := 0
	pass := func(from, until time.Duration, heard bool) {
		for now := from; now < until; now += time.Second {
			r.Grant(now, r.Renew(now).Sent, []l2.Lease{lease(vip4, 1)})
			if heard {
				r.Hear(now, "eth0", asks(clientMAC, client4, client4))
			}
			last = announced(now, now+900*time.Millisecond)
		}
	}
	pass(0, 5*time.Second, false)
	if last > 0 {
		t.Fatalf("%d announcements after five seconds", last)
	}
	pass(5*time.Second, 6*time.Second, true)
	if last == 0 {
		t.Error("nothing is announced to who is heard again")
	}
	pass(6*time.Second, 10*time.Second, true)
	if n := last; n > 0 {
		t.Errorf("%d announcements where somebody is heard all the time", n)
	}
}

// Whatever comes in whatever order, an address is answered for and announced only within a lease, as a plain account of
// renewals and answers has it.
func TestPropertyNothingIsSaidOutsideALease(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		r := l2.NewResponder()
		now := time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "start"))
		r.SetInterfaces(now, []l2.Interface{eth("eth0", true)})
		type right struct {
			until time.Duration
			keep  bool
		}
		rights := map[netip.Addr]right{}
		var newest time.Duration = -1
		var open []time.Duration // renewals that may still be answered
		addresses := []netip.Addr{vip4, vip4.Next(), vip6}
		may := func(a netip.Addr) bool { return rights[a].keep || now < rights[a].until }
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) { now += time.Duration(rapid.Int64Range(0, 4e9).Draw(t, "wait")) },
			"renew": func(t *rapid.T) {
				renewal := r.Renew(now)
				if renewal.Sent <= newest || renewal.Sent > now && renewal.Sent != newest+1 {
					t.Fatalf("sent at %d after %d, at %d", renewal.Sent, newest, now)
				}
				newest = renewal.Sent
				open = append(open, newest)
				for a, right := range rights {
					if !right.keep && now >= right.until {
						delete(rights, a)
					}
				}
				if len(renewal.Held) != len(rights) {
					t.Fatalf("says it holds %v, may %v", renewal.Held, rights)
				}
			},
			"grant": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("nothing was asked")
				}
				at := rapid.SampledFrom(open).Draw(t, "sent")
				var leases []l2.Lease
				next := map[netip.Addr]right{}
				for _, a := range addresses {
					if rapid.Bool().Draw(t, "mine") {
						l := lease(a, rapid.Uint64Range(1, 3).Draw(t, "fence"))
						l.Keep = rapid.Bool().Draw(t, "keep")
						leases = append(leases, l)
						next[a] = right{at + l.Term, l.Keep}
					}
				}
				if counts := r.Grant(now, at, leases); counts != (at == newest) {
					t.Fatalf("an answer to %d counts: %v, the newest is %d", at, counts, newest)
				}
				if at == newest {
					rights = next
				}
			},
			"": func(t *rapid.T) {
				for _, a := range addresses {
					source := client4
					if a.Is6() {
						source = client6
					}
					if answered := r.Hear(now, "eth0", asks(clientMAC, source, a)) != nil; answered != may(a) {
						t.Fatalf("%s answered: %v, may be: %v", a, answered, may(a))
					}
				}
				frames, _ := r.Due(now)
				for _, f := range frames {
					if f.Bytes[13] == 6 && netip.AddrFrom4([4]byte(f.Bytes[38:42])) == client4 || f.Bytes[13] != 6 && f.Bytes[54] == 135 {
						continue // a question that tests the link
					}
					if a, _ := says(t, f.Bytes); !may(a) {
						t.Fatalf("%s announced", a)
					}
				}
			},
		})
	})
}

func FuzzFrames(f *testing.F) {
	f.Add(asks(clientMAC, client4, vip4))
	f.Add(asks(clientMAC, client6, vip6))
	f.Fuzz(func(t *testing.T, frame []byte) {
		r := l2.NewResponder()
		r.SetInterfaces(0, []l2.Interface{eth("eth0", true)})
		r.Grant(0, r.Renew(0).Sent, []l2.Lease{lease(vip4, 1), lease(vip6, 2)})
		if got := r.Hear(0, "eth0", frame); got != nil {
			if a, mac := says(t, got); a != vip4 && a != vip6 || mac != nodeMAC {
				t.Fatalf("%s at %x", a, mac)
			}
		}
	})
}
