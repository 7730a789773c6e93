// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/wire"
	"fairlead.io/fairlead/internal/testkit"
)

// foul are addresses whose zones are no text: a log takes them from a member that does not check what it proposes.
func foul() netip.Addr { return netip.MustParseAddr("fd00::1").WithZone("\xff\xfe") }

// fataler is what tests and properties have in common here.
type fataler interface{ Fatal(args ...any) }

// logged is an entry as a member wrote it that checks nothing.
func logged(t fataler, epoch Epoch, cs ...Command) []byte {
	e := Entry{Epoch: epoch}
	for _, c := range cs {
		body, err := wire.Append(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		e.Items = append(e.Items, Item{Kind: c.Kind(), Actor: "a", Body: body})
	}
	data, err := wire.Append(nil, &e)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A command that makes a record which cannot be encoded is refused and leaves nothing; the commands of its entry beside it count. No release
// got past it.
func TestApplyRefusesWhatCannotBeRecorded(t *testing.T) {
	s := New()
	at, at6, hop := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("10.0.0.1")
	apply := func(cs ...Command) []Outcome {
		_, epoch, _ := s.Identity()
		return s.ApplyEntries([]LogEntry{{Index: s.applied + 1, Term: 1, Data: logged(t, epoch, cs...)}})[0]
	}
	apply(&InitGroup{Group: "g", Format: NewestFormat})
	apply(&PutService{Service: Service{ID: "a/b", UID: "u"}}, &Allocate{Address: at, Service: "a/b"})
	bad := SetRoute{Prefix: HostPrefix(at6), Hops: []HopSpec{{"n1", foul()}}} // its history would say where it leads
	before := s.Digest()
	out := apply(&Allocate{Address: at6, Service: "a/b"}, &bad, &SetRoute{Prefix: HostPrefix(at), Hops: []HopSpec{{"n1", hop}}})
	if out[0].Reject != Accepted || out[1].Reject != RejectUnfit || out[2].Reject != Accepted || !utf8.ValidString(says(out[1])) {
		t.Fatalf("got %v", out)
	}
	other := New()
	_, epoch, _ := s.Identity()
	other.ApplyEntries([]LogEntry{
		{Index: 1, Term: 1, Data: logged(t, 0, &InitGroup{Group: "g", Format: NewestFormat})},
		{Index: 2, Term: 1, Data: logged(t, epoch, &PutService{Service: Service{ID: "a/b", UID: "u"}}, &Allocate{Address: at, Service: "a/b"})},
		{Index: 3, Term: 1, Data: logged(t, epoch, &Allocate{Address: at6, Service: "a/b"}, &SetRoute{Prefix: HostPrefix(at), Hops: []HopSpec{{"n1", hop}}})},
	})
	if s.Digest() == before || s.Digest() != other.Digest() {
		t.Fatalf("digest %s, and %s without what was refused", s.Digest(), other.Digest())
	}
}

// says is why an outcome is a refusal, empty for none.
func says(o Outcome) string {
	if err := o.Err(); err != nil {
		return err.Error()
	}
	return ""
}

// stubborn is a command that puts records, some in place of others, and one that cannot be encoded at the end, if it is foul.
type stubborn struct {
	puts []string
	gone []string
	foul bool
}

func (stubborn) Kind() Kind { return KindPutRegister }

func (c stubborn) apply(tx *txn) Outcome {
	for i, name := range c.puts {
		tx.put(&Register{ID: RegisterID(name), Version: uint64(i)})
		tx.fence(name)
		tx.drawUID(name)
	}
	for _, name := range c.gone {
		if p, ok := find[*Register](tx.rows, TableRegisters, name); ok {
			tx.bury(p, nil, "gone")
		}
	}
	if c.foul {
		g := *tx.group()
		g.Checkpoint++
		tx.put(&g)
		tx.put(&Register{ID: "\xff"})
	}
	return tx.ok()
}

// Whatever a command did before it came to what cannot be recorded is undone: records, graves, indexes, fences and draws are as if it had not
// been there.
func TestPropertyUnrecordableLeavesNothing(t *testing.T) {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 6)
	testkit.Check(t, func(t *rapid.T) {
		with, without := New(), New()
		for _, s := range []*State{with, without} {
			s.ApplyEntries([]LogEntry{{Index: 1, Term: 1, Data: logged(t, 0, &InitGroup{Group: "g", Format: NewestFormat}, &PutSettings{Settings: Settings{GraveLimit: 2}})}})
		}
		for range rapid.IntRange(1, 5).Draw(t, "entries") {
			txs := []*txn{with.begin(), without.begin()}
			for i, s := range []*State{with, without} {
				s.applied++
				txs[i].item = &Item{Actor: "a"}
			}
			for range rapid.IntRange(1, 5).Draw(t, "commands") {
				c := stubborn{puts: names.Draw(t, "puts"), gone: names.Draw(t, "gone"), foul: rapid.Bool().Draw(t, "foul")}
				out := txs[0].attempt(c)
				if (out.Reject == RejectUnfit) != c.foul {
					t.Fatalf("%+v: %v", c, out)
				}
				if !c.foul {
					txs[1].attempt(c)
				}
			}
			for i, s := range []*State{with, without} {
				s.publish(txs[i].touched)
			}
			if with.Digest() != without.Digest() || with.graves != without.graves || txs[0].drawn != txs[1].drawn || len(txs[0].fenced) != len(txs[1].fenced) {
				t.Fatalf("digest %s and %s, %d graves and %d, %d draws and %d, fences %v and %v", with.Digest(), without.Digest(), with.graves, without.graves,
					txs[0].drawn, txs[1].drawn, txs[0].fenced, txs[1].fenced)
			}
			a, b := snapshotOf(t, with), snapshotOf(t, without)
			if !slices.Equal(a, b) {
				t.Fatal("snapshots differ")
			}
		}
	})
}

func snapshotOf(t *rapid.T, s *State) []byte {
	var out strings.Builder
	if err := s.Freeze().Write(&out); err != nil {
		t.Fatal(err)
	}
	return []byte(out.String())
}

// panicking is a command that cannot even be looked at.
type panicking struct{}

func (*panicking) Kind() Kind         { panic("no kind") }
func (*panicking) apply(*txn) Outcome { return Outcome{} }

// What no entry can hold is told before it is proposed, with the field; who asks and why is cut instead.
func TestFitTellsWhatNoEntryCanHold(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	for name, c := range map[string]struct {
		command Command
		why     string
	}{
		"sharing-key":  {&PutService{Service: Service{ID: "a/b", Rare: &Rare{SharingKey: "k\xff"}}}, "PutService.Service.SharingKey: not UTF-8"},
		"boot-id":      {&RegisterBoot{Node: "n1", Boot: BootID(long)}, "RegisterBoot.Boot: 70000 bytes, at most 128 are allowed"},
		"message":      {&FinishOperation{Subject: "s", Message: long}, "FinishOperation.Message: 70000 bytes, at most 1024 are allowed"},
		"returned":     {&FinishOperation{Subject: "s", Returned: []KV{{"k", long}}}, "FinishOperation.Returned[0].Value: 70000 bytes, at most 65536 are allowed"},
		"zone":         {&GrantLease{VIP: foul(), Holder: "n1"}, "GrantLease.VIP: the zone of an address: not UTF-8"},
		"whole":        {&PutHold{ID: "h", Subjects: slices.Repeat([]string{long[:60_000]}, 200)}, "at most 8388608 are allowed"},
		"prefix":       {&SetRoute{Prefix: netip.PrefixFrom(netip.MustParseAddr("10.0.0.1"), 99)}, "invalid prefix"},
		"panics":       {&panicking{}, "panic: no kind"},
		"nothing":      {nil, "encode <nil>"},
		"nil-of-a-one": {(*PutNode)(nil), "encode *fsm.PutNode"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Proposal{Command: c.command}
			_, err := Fit(p)
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Fatalf("got %v", err)
			}
			if o := Unfit(p, err); o.Reject != RejectUnfit || !utf8.ValidString(says(o)) {
				t.Fatalf("got %v", o)
			}
		})
	}
	p := Proposal{Actor: "a\xff", Reason: long + "\xff", Command: &PutNode{ID: "n1"}}
	size, err := Fit(p)
	if err != nil {
		t.Fatal(err)
	}
	data, err := EncodeEntry(1, []Proposal{p})
	if err != nil || len(data) > size {
		t.Fatalf("%d bytes, said to be %d: %v", len(data), size, err)
	}
	_, back, err := DecodeEntry(data)
	if err != nil || back[0].Actor != "a?" || back[0].Reason != long[:MaxReason] {
		t.Fatalf("%v, by %q since %q", err, back[0].Actor, back[0].Reason)
	}
	hold := &PutHold{ID: "h", Subjects: slices.Repeat([]string{long[:60_000]}, 100)}
	if _, err := EncodeEntry(1, []Proposal{{Command: hold}, {Command: hold}, {Command: hold}}); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
}

// A text that was cut is as long as it may be at most, is UTF-8, and begins as it did.
func TestPropertyTextIsCutAndUTF8(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "UTF-8") {
			s = rapid.String().Draw(t, "text")
		}
		most := rapid.IntRange(0, 40).Draw(t, "most")
		got := Text(s, most)
		switch {
		case !utf8.ValidString(got) || len(got) > most:
			t.Fatalf("%q, at most %d: %q", s, most, got)
		case utf8.ValidString(s) && (!strings.HasPrefix(s, got) || len(got) < min(len(s), most-utf8.UTFMax+1)):
			t.Fatalf("%q, at most %d: %q", s, most, got)
		}
	})
}

// FuzzFit: whatever texts a command has, it fits and can be applied, or is told why not; nothing panics.
func FuzzFit(f *testing.F) {
	f.Add("a/b", "u", "k\xff", "\xff", []byte{1, 2}, int64(3))
	f.Add("n1", "boot", strings.Repeat("k", 5000), "eth0", []byte{}, int64(70))
	f.Fuzz(func(t *testing.T, id, uid, text, zone string, raw []byte, number int64) {
		at := netip.MustParseAddr("fd00::1").WithZone(zone)
		s := New()
		apply := func(c Command) {
			_, epoch, _ := s.Identity()
			p := Proposal{Actor: uid, Reason: text, AtUnixMilli: number, Command: c}
			_, unfit := Fit(p)
			data, err := EncodeEntry(epoch, []Proposal{p})
			if (unfit == nil) != (err == nil) {
				t.Fatalf("%T: fit %v, encoded %v", c, unfit, err)
			}
			if err != nil {
				if !utf8.ValidString(says(Unfit(p, unfit))) {
					t.Fatalf("%q", says(Unfit(p, unfit)))
				}
				return
			}
			s.ApplyEntries([]LogEntry{{Index: s.applied + 1, Term: 1, Data: data}})
		}
		apply(&InitGroup{Group: "g", Format: NewestFormat})
		for _, c := range []Command{
			&PutService{Service: Service{ID: ServiceID(id), UID: uid, Pending: Pending{Text: text}, Rare: &Rare{SharingKey: text, Requested: []netip.Addr{at}}}},
			&Allocate{Address: at, Service: ServiceID(id), Pool: PoolName(uid), SharingKey: text},
			&PutNode{ID: NodeID(id), UID: uid, Why: text, Addresses: []netip.Addr{at}}, &RegisterBoot{Node: NodeID(id), Boot: BootID(text)},
			&GrantLease{VIP: at, Holder: NodeID(id)}, &PutRegister{ID: RegisterID(id), UID: uid, Spec: raw}, &PutHold{ID: HoldID(id), Of: uid, Subjects: []string{text}},
			&PutLoadBalancer{ID: BalancerID(id), Driver: uid, Info: []KV{{id, text}}}, &PutPeer{Peer: Peer{Name: PeerName(id), Address: at, Interface: text}},
			&SetRoute{Prefix: netip.PrefixFrom(at, 128), Hops: []HopSpec{{NodeID(id), at}}}, &FinishOperation{Subject: Subject(id), Message: text},
		} {
			apply(c)
		}
		var whole strings.Builder
		if err := s.Freeze().Write(&whole); err != nil {
			t.Fatal(err)
		}
		if err := New().Restore(strings.NewReader(whole.String())); err != nil {
			t.Fatal(err)
		}
	})
}
