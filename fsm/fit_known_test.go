// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// longAgo is a record as an earlier release wrote it, which had no bounds: of a node, a Service and what it has, with texts of so many bytes.
func longAgo(t fataler, size int) (*State, []Command) {
	s := New()
	id, boot, key := ServiceID("a/"+strings.Repeat("i", size)), BootID(strings.Repeat("b", size)), strings.Repeat("k", size)
	at, hop := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("10.0.0.1")
	apply := func(cs ...Command) {
		_, epoch, _ := s.Identity()
		for i, o := range s.ApplyEntries([]LogEntry{{Index: s.applied + 1, Term: 1, Data: logged(t, epoch, cs...)}})[0] {
			if err := o.Err(); err != nil {
				t.Fatal(ObjectOf(cs[i]), err)
			}
		}
	}
	apply(&InitGroup{Group: "g", Format: NewestFormat, Settings: Settings{Unsteered: true}})
	apply(&PutNode{ID: "n1", UID: "u", Eligible: true, Addresses: []netip.Addr{hop}}, &PutNode{ID: "n2", UID: "u2"}, &RegisterBoot{Node: "n1", Boot: boot},
		&PutService{Service: Service{ID: id, UID: "u", Rare: &Rare{SharingKey: key}}}, &Allocate{Address: at, Service: id, SharingKey: key},
		&SetRoute{Prefix: HostPrefix(at), Hops: []HopSpec{{"n1", hop}}})
	more := []Endpoint{{Address: netip.MustParseAddr("10.1.0.1"), Ready: true}}
	return s, []Command{
		&SetLiveness{Node: "n1", Boot: boot, Liveness: NodeDown},
		&PutService{Service: Service{ID: id, UID: "u", Endpoints: more, Rare: &Rare{SharingKey: key}}},
		&Allocate{Address: at, Service: id, Pool: "p", SharingKey: key},
		&SetRoute{Prefix: HostPrefix(at)},
		&ReleaseAllocation{Address: at, Service: id},
		&RegisterBoot{Node: "n1", Boot: "next"},
		&PutService{Service: Service{ID: id, UID: "u", Deleting: true, Rare: &Rare{SharingKey: key}}},
		&FinishWithdrawal{Prefix: HostPrefix(at), Node: "n1", Address: hop},
		&FreeAllocation{Address: at, Service: id},
		&DeleteService{ID: id, UID: "u"},
	}
}

// What the record has from before bounds were held can be named, changed and taken away, through a log and a snapshot, however long it is.
// Nothing else comes in by that.
func TestPropertyWhatIsRecordedCanBeNamed(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s, commands := longAgo(t, rapid.SampledFrom([]int{8, 200, 5_000, 70_000, 1 << 20}).Draw(t, "bytes"))
		other := New()
		if err := other.Restore(strings.NewReader(string(snapshotOf(t, s)))); err != nil {
			t.Fatal(err)
		}
		for _, c := range commands {
			if w, ok := c.(*FinishWithdrawal); ok {
				r, _ := Get[*Route](s.Read(), TableRoutes, w.Prefix.String())
				w.Since = r.NextHops[0].Since
			}
			p := Proposal{Actor: "leader", Command: c}
			if _, err := s.Read().Fit(p); err != nil {
				t.Fatalf("%T: %.200s", c, err)
			}
			_, epoch, _ := s.Identity()
			data, err := s.Read().EncodeEntry(epoch, []Proposal{p})
			if err != nil {
				t.Fatalf("%T: %.200s", c, err)
			}
			for _, s := range []*State{s, other} {
				if o := s.ApplyEntries([]LogEntry{{Index: s.applied + 1, Term: 1, Data: data}})[0][0]; o.Reject != Accepted {
					t.Fatalf("%T: %.200s", c, says(o))
				}
			}
			if s.Digest() != other.Digest() {
				t.Fatalf("%T: %s from the log, %s from a snapshot", c, s.Digest(), other.Digest())
			}
		}
		if n := s.Read().Count(TableServices) + s.Read().Count(TableAllocations) + s.Read().Count(TableRoutes); n != 0 {
			t.Fatalf("%d records are left", n)
		}
	})
}

// Bounds hold for what the record does not have of the thing that a command names: it is no way in for another text, or to another thing.
func TestWhatIsRecordedIsNoWayIn(t *testing.T) {
	s, commands := longAgo(t, 70_000)
	boot, key := commands[0].(*SetLiveness).Boot, commands[1].(*PutService).Service.SharingKey()
	for name, c := range map[string]Command{
		"another-boot":    &RegisterBoot{Node: "n1", Boot: boot + "b"},
		"another-node":    &SetLiveness{Node: "n2", Boot: boot},
		"another-service": &PutService{Service: Service{ID: "a/b", UID: "u", Rare: &Rare{SharingKey: key}}},
		"unknown-service": &DeleteService{ID: ServiceID("b/" + strings.Repeat("i", 70_000))},
		"in-a-list":       &Acknowledge{Marks: []AppliedMark{{Node: "n1", Boot: boot}}},
		"not-text":        &PutService{Service: Service{ID: "a/b", Rare: &Rare{SharingKey: key[:10] + "\xff"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Proposal{Command: c}
			if _, err := s.Read().Fit(p); err == nil {
				t.Error("it is fit")
			}
			if _, err := s.Read().EncodeEntry(1, []Proposal{p}); err == nil {
				t.Error("it is encoded")
			}
		})
	}
	fits := Proposal{Command: commands[0]}
	if _, err := EncodeEntry(1, []Proposal{fits}); err == nil {
		t.Error("without the record it is encoded, too")
	}
	if !slices.ContainsFunc(commands, func(c Command) bool { _, err := Fit(Proposal{Command: c}); return err != nil }) {
		t.Error("nothing of it is beyond bounds")
	}
}
