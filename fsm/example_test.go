// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// tell applies commands, each as an entry of its own at the next index, and wants all of them accepted.
func tell(t *testing.T, s *fsm.State, commands ...fsm.Command) {
	t.Helper()
	fsmtest.Tell(t, s, commands...)
}

func formed(t *testing.T) *fsm.State {
	t.Helper()
	return fsmtest.New(t, "g1")
}

// info is what the driver knows a balancer of the tests by, and identity what the record makes of it.
func info(name string) []fsm.KV { return []fsm.KV{{Key: "id", Value: name}} }

func identity(name string) fsm.Identity { return fsm.IdentityOf("drv", info(name)) }

// A binding is forgotten while a call for it is under way and wanted anew under the same id: the call's
// success says nothing of the new one, which nobody asked for yet. Rare in drawn histories, hence told here.
func TestCallForForgottenBindingConfirmsNoOtherOfItsID(t *testing.T) {
	const balancer, address = fsm.BalancerID("o1"), "203.0.113.1:80"
	for name, again := range map[string][]fsm.Command{
		"same-address":  {&fsm.PutBinding{ID: "x1", Balancer: balancer, Address: address}},
		"address-later": {&fsm.PutBinding{ID: "x1", Balancer: balancer}, &fsm.SetBindingAddress{ID: "x1", Address: address}},
		"other-address": {&fsm.PutBinding{ID: "x1", Balancer: balancer, Address: "203.0.113.2:80"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := formed(t)
			tell(t, s,
				&fsm.PutLoadBalancer{ID: balancer, Driver: "drv", Info: info("lb1")},
				&fsm.PutBinding{ID: "x1", Balancer: balancer, Address: address},
				&fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: "x1", Deadline: time.Second})
			attempt := s.Read().Revision()
			tell(t, s, &fsm.Forget{ID: "x1"})
			tell(t, s, again...)
			tell(t, s, &fsm.FinishOperation{
				Subject: fsm.SubjectOf(identity("lb1"), address, "x1"), Attempt: attempt, Result: fsm.ResultSucceeded,
			})
			b, _ := fsm.Get[*fsm.Binding](s.Read(), fsm.TableBindings, "x1")
			if b.State != fsm.BindingEnsuring {
				t.Fatalf("it is %s", b.State)
			}
		})
	}
}

// Two fences of one entry would be equal, and what is said of the first be taken for the second.
func TestOneEntryGivesASubjectOneFence(t *testing.T) {
	vip := vips[0]
	now := rev{Epoch: 1, Index: 6}
	for name, entry := range map[string][]fsm.Command{
		"lease": {
			&fsm.GrantLease{VIP: vip, Holder: "n1", Term: time.Second}, &fsm.EndLease{VIP: vip, Fence: now},
			&fsm.GrantLease{VIP: vip, Holder: "n2", Term: time.Second},
		},
		"operation": {
			&fsm.BeginOperation{Action: fsm.ActionEnsureBalancer, Balancer: "o1", Deadline: time.Second},
			&fsm.FinishOperation{Subject: "balancer drv?id=lb1", Attempt: now, Result: fsm.ResultFailed},
			&fsm.BeginOperation{Action: fsm.ActionEnsureBalancer, Balancer: "o1", Deadline: time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := formed(t)
			tell(t, s, &fsm.PutService{Service: fsm.Service{ID: "shop/a"}}, &fsm.Allocate{Address: vip, Service: "shop/a"},
				&fsm.PutLoadBalancer{ID: "o1", Driver: "drv", Info: info("lb1")}, &fsm.PutSettings{})
			var proposals []fsm.Proposal
			for _, c := range entry {
				proposals = append(proposals, fsm.Proposal{Actor: "test", Command: c})
			}
			got := fsmtest.Commit(t, s, proposals...)
			if got[0].Err() != nil || got[1].Err() != nil || got[2].Err() == nil {
				t.Fatalf("%v", got)
			}
			tell(t, s, entry[2]) // in the next entry it has a fence of its own
		})
	}
}

// What would fork the record stops the member instead (design §4).
func TestApplyStopsOnWhatWouldForkTheRecord(t *testing.T) {
	entry := func(s *fsm.State, index fsm.Index, c fsm.Command) fsm.LogEntry {
		_, epoch, _ := s.Identity()
		data, err := fsm.EncodeEntry(epoch, []fsm.Proposal{{Command: c}})
		if err != nil {
			t.Fatal(err)
		}
		return fsm.LogEntry{Index: index, Term: 1, Data: data}
	}
	report := &fsm.ReportMember{Server: "m1-x", Run: "r1", Format: fsm.NewestFormat + 1}
	for name, c := range map[string]struct {
		before []fsm.Command
		index  fsm.Index
		then   fsm.Command
		why    string
	}{
		"index-repeated":  {nil, 1, &fsm.PutSettings{}, "entry 1 comes after 1 was applied"},
		"format-unknown":  {[]fsm.Command{report}, 3, &fsm.RaiseFormat{Format: fsm.NewestFormat + 1}, "upgrade this member"},
		"group-too-young": {nil, 0, &fsm.InitGroup{Group: "g1", Format: fsm.NewestFormat + 1}, "upgrade this member"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fsm.New()
			if c.index != 0 {
				s = formed(t)
			}
			tell(t, s, c.before...)
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.why) {
					t.Fatalf("stopped with %q, want %q", got, c.why)
				}
			}()
			s.ApplyEntries([]fsm.LogEntry{entry(s, max(c.index, 1), c.then)})
			t.Fatal("went on")
		})
	}
}
