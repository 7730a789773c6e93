// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
)

const class = "fairlead.io/lb"

var (
	ours = Options{Class: class}
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// one projects one Service and carries that out.
func one(b *book, s *served, why []Explanation, o Options, now time.Time) (Write, bool) {
	ws := Project(b.Read(), Explain(why), []*Seen{s.seen()}, o, now)
	if len(ws) == 0 {
		return Write{}, false
	}
	s.apply(ws[0])
	return ws[0], true
}

func (s *served) shows() string {
	var out []string
	for _, in := range s.ingress {
		text := in.IP
		if in.IPMode != nil {
			text += "/" + string(*in.IPMode)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// says gives a condition as "True Reason: message".
func (s *served) says(kind string) string {
	c, ok := s.conditions[kind]
	if !ok {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// K31: an address is shown once it can be used.
func TestAddressIsShownOnceItIsAnnounced(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	expect := func(shows, allocated, announced string) {
		t.Helper()
		one(b, s, nil, ours, noon)
		if s.shows() != shows || s.says(Allocated) != allocated || s.says(Announced) != announced {
			t.Fatalf("shows %q\n%s\n%s", s.shows(), s.says(Allocated), s.says(Announced))
		}
		if w, again := one(b, s, nil, ours, noon.Add(time.Hour)); again {
			t.Fatalf("written twice: %+v", w)
		}
	}
	expect("", "", "")
	b.service(t, "default/web")
	expect("", "False Undecided: no address was decided on yet", "False NotAllocated: it has no address yet")
	b.allocate(t, "default/web", "203.0.113.10")
	expect("", "True Allocated: 203.0.113.10 (pool public)", "False NoNextHop: 203.0.113.10: no node can carry it now")
	b.route(t, "203.0.113.10", "n1", "n2")
	expect("", "True Allocated: 203.0.113.10 (pool public)",
		"False WaitingForNodes: 203.0.113.10: waits until its rules are acknowledged by n1 (192.0.2.1), n2 (192.0.2.2)")
	b.acknowledge(t, "n2")
	expect("", "True Allocated: 203.0.113.10 (pool public)", "False WaitingForMembers: 203.0.113.10: no member has announced it yet")
	b.announce(t)
	expect("203.0.113.10/VIP", "True Allocated: 203.0.113.10 (pool public)", "True Announced: 203.0.113.10")
	b.acknowledge(t, "n1")
	b.announce(t)
	expect("203.0.113.10/VIP", "True Allocated: 203.0.113.10 (pool public)", "True Announced: 203.0.113.10")
}

func TestAddressStaysShownUntilItIsGivenUp(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, class)
	b.service(t, "default/web")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	one(b, s, nil, ours, noon)
	b.route(t, "203.0.113.10")
	w, _ := one(b, s, []Explanation{{"routes", "203.0.113.10/32", "no-next-hop", "no endpoint of default/web is ready on a node"}}, ours, noon.Add(time.Minute))
	if s.shows() != "203.0.113.10/VIP" || s.says(Announced) != "False NoNextHop: 203.0.113.10: no endpoint of default/web is ready on a node" {
		t.Fatalf("shows %q, %s", s.shows(), s.says(Announced))
	}
	if got := w.Conditions[0].LastTransitionTime.Time; !got.Equal(noon) {
		t.Errorf("Allocated changed at %s though it did not", got)
	}
	if got := w.Conditions[1].LastTransitionTime.Time; !got.Equal(noon.Add(time.Minute)) {
		t.Errorf("Announced changed at %s", got)
	}
	b.do(t, &fsm.ReleaseAllocation{Address: netip.MustParseAddr("203.0.113.10"), Service: "default/web"})
	b.serve(t, "default/web", "203.0.113.11", "n1")
	one(b, s, nil, ours, noon)
	if s.shows() != "203.0.113.11/VIP" {
		t.Fatalf("shows %q after another address replaced it", s.shows())
	}
}

// All members lose their marks when they restart together; what they announce, they announce still.
func TestAnnouncedStaysTrueWhileMembersRestart(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	b.service(t, "default/web")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	one(b, s, nil, ours, noon)
	b.restart(t)
	if w, again := one(b, s, nil, ours, noon); again {
		t.Fatalf("written: %+v", w)
	}
	if f := factsOf(b.Read(), "default/web", "uid-default/web"); f.addresses[0].stage() != waitingForMembers {
		t.Fatal("this test shows nothing: the mark was not lost")
	}
}

func TestWithoutPeersAcknowledgedIsAllThatCanBeHad(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	b.do(t, &fsm.DeletePeer{Name: "switch"})
	b.service(t, "default/web")
	b.allocate(t, "default/web", "203.0.113.10")
	b.route(t, "203.0.113.10", "n1")
	if one(b, s, nil, ours, noon); s.shows() != "" {
		t.Fatalf("shows %q before any node acknowledged", s.shows())
	}
	b.acknowledge(t, "n1")
	if one(b, s, nil, ours, noon); s.shows() != "203.0.113.10/VIP" {
		t.Fatalf("shows %q", s.shows())
	}
}

func TestExternalIPsAreShownOnlyWhenSwitchedOn(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	b.service(t, "default/web", external("203.0.113.10"))
	b.serve(t, "default/web", "203.0.113.10", "n1")
	on := ours
	on.ExternalIPs = true
	for _, step := range []struct {
		o    Options
		want string
	}{{ours, ""}, {on, "203.0.113.10/VIP"}, {ours, ""}} {
		one(b, s, nil, step.o, noon)
		if s.shows() != step.want || s.says(Announced) != "True Announced: 203.0.113.10" {
			t.Fatalf("externalIPs %v: shows %q, %s", step.o.ExternalIPs, s.shows(), s.says(Announced))
		}
	}
	if got := s.says(Allocated); got != "True Allocated: 203.0.113.10 (spec.externalIPs)" {
		t.Error(got)
	}
}

func TestReasonsSayWhyAnAddressIsMissing(t *testing.T) {
	for code, reason := range map[string]string{
		"no-pool": "NoPool", "pool-exhausted": "PoolExhausted", "outside-pools": "OutsidePools",
		"address-taken": "AddressTaken", "invalid-address": "InvalidAddress", "quota-exceeded": "QuotaExceeded", "not-allowed": "NotAllowed",
	} {
		t.Run(code, func(t *testing.T) {
			b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
			b.service(t, "default/web", pending(code, "because"))
			one(b, s, nil, ours, noon)
			if got := s.says(Allocated); got != "False "+reason+": because" {
				t.Error(got)
			}
			if got := s.says(Announced); !strings.HasPrefix(got, "False NotAllocated") {
				t.Error(got)
			}
		})
	}
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	b.service(t, "default/web", requested("203.0.113.10", "203.0.113.11"), pending("address-taken", "203.0.113.11 belongs to Service a/b"))
	b.serve(t, "default/web", "203.0.113.10", "n1")
	one(b, s, nil, ours, noon)
	if s.shows() != "203.0.113.10/VIP" || s.says(Allocated) != "False AddressTaken: 203.0.113.11 belongs to Service a/b; it has 203.0.113.10 (pool public)" {
		t.Errorf("half of it: shows %q, %s", s.shows(), s.says(Allocated))
	}
}

func TestFailedAndSilentNodesAreTold(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	b.service(t, "default/web")
	b.allocate(t, "default/web", "203.0.113.10")
	b.route(t, "203.0.113.10", "n1")
	b.do(t, &fsm.Acknowledge{Marks: []fsm.AppliedMark{{
		Node: "n1", Boot: "boot1", Upto: b.now(), Failed: []netip.Prefix{netip.MustParsePrefix("203.0.113.10/32")},
	}}})
	one(b, s, nil, ours, noon)
	if got := s.says(Announced); !strings.HasPrefix(got, "False NodesFailed: 203.0.113.10: could not be set up on n1 (192.0.2.1)") {
		t.Error(got)
	}
	b.acknowledge(t, "n1")
	b.announce(t)
	one(b, s, []Explanation{{"routes", "203.0.113.10/32", "last-hop", "it leads to silent nodes still"}}, ours, noon)
	if got := s.says(Announced); got != "True SilentNodes: 203.0.113.10: it leads to silent nodes still" {
		t.Error(got)
	}
}

// K28: other classes are untouched, including their status.
func TestOtherClassesAreUntouched(t *testing.T) {
	only := ours
	only.IgnoreUnclassed = true
	for name, c := range map[string]struct {
		kind  corev1.ServiceType
		class string
		o     Options
	}{
		"another-class": {corev1.ServiceTypeLoadBalancer, "example.com/other", ours},
		"no-class":      {corev1.ServiceTypeLoadBalancer, "", only},
		"cluster-ip":    {corev1.ServiceTypeClusterIP, "", ours},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := newBook(t), newServed("web", c.kind, c.class)
			b.service(t, "default/web")
			b.serve(t, "default/web", "203.0.113.10", "n1")
			s.update("other", "198.51.100.1")
			if w, any := one(b, s, nil, c.o, noon); any {
				t.Fatalf("written: %+v", w)
			}
		})
	}
}

func TestChangeOfTypeOrClassTakesOursBack(t *testing.T) {
	for name, turn := range map[string]func(*served){
		"type":  func(s *served) { s.turn(corev1.ServiceTypeClusterIP, "") },
		"class": func(s *served) { s.turn(corev1.ServiceTypeLoadBalancer, "example.com/other") },
	} {
		t.Run(name, func(t *testing.T) {
			b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
			b.service(t, "default/web")
			b.serve(t, "default/web", "203.0.113.10", "n1")
			one(b, s, nil, ours, noon)
			turn(s)
			s.conditions["example.com/Other"] = metav1.Condition{Type: "example.com/Other"}
			s.owners["example.com/Other"] = map[string]bool{"other": true}
			w, any := one(b, s, nil, ours, noon)
			if !any || !w.Urgent || len(s.ingress) != 0 || len(s.conditions) != 1 {
				t.Fatalf("left: %q %v, written %v", s.shows(), s.conditions, any)
			}
			if _, again := one(b, s, nil, ours, noon); again {
				t.Error("written again")
			}
		})
	}
}

func TestDeletionTakesTheAddressBack(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	b.service(t, "default/web")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	one(b, s, nil, ours, noon)
	b.service(t, "default/web", func(s *fsm.Service) { s.Deleting = true })
	one(b, s, nil, ours, noon)
	if s.shows() != "" || s.says(Announced) != "False Deleting: its addresses are withdrawn" {
		t.Fatalf("shows %q, %s", s.shows(), s.says(Announced))
	}
	// One that somebody's finalizer holds is no longer to be dialled either, whatever the record says yet.
	b, s = newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	b.service(t, "default/web")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	one(b, s, nil, ours, noon)
	o := s.object()
	o.DeletionTimestamp = &metav1.Time{Time: noon}
	ws := Project(b.Read(), nil, []*Seen{SeenOf(o)}, ours, noon)
	if len(ws) != 1 || len(ws[0].Ingress) != 0 {
		t.Errorf("written: %+v", ws)
	}
}

// S12: what a restored record does not know yet is not taken away.
func TestQuarantineTakesNothingAway(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	other := newServed("other", corev1.ServiceTypeLoadBalancer, "")
	b.service(t, "default/web", requested("203.0.113.11"))
	b.service(t, "default/other")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	b.serve(t, "default/other", "203.0.113.20", "n1")
	one(b, s, nil, ours, noon)
	one(b, other, nil, ours, noon)

	b.do(t, &fsm.ReleaseAllocation{Address: netip.MustParseAddr("203.0.113.10"), Service: "default/web"})
	b.serve(t, "default/web", "203.0.113.11", "n1") // as the backup knows it
	b.do(t, &fsm.NewEpoch{Group: "g", Epoch: 2, Cause: "restore"})
	one(b, s, nil, ours, noon)
	if s.shows() != "203.0.113.10/VIP 203.0.113.11/VIP" {
		t.Errorf("shows %q", s.shows())
	}
	other.turn(corev1.ServiceTypeLoadBalancer, "example.com/other")
	if w, any := one(b, other, nil, ours, noon); any {
		t.Errorf("taken away: %+v", w)
	}
	b.do(t, &fsm.EndQuarantine{Since: b.Read().Group().Quarantine})
	if one(b, s, nil, ours, noon); s.shows() != "203.0.113.11/VIP" {
		t.Errorf("afterwards shows %q", s.shows())
	}
}

func TestForeignIngressStaysWhileThereIsNothingToShow(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	s.update("other", "198.51.100.1")
	b.service(t, "default/web", pending("no-pool", "add a pool"))
	one(b, s, nil, ours, noon)
	if s.shows() != "198.51.100.1" || s.owners["ingress"][Manager] {
		t.Fatalf("shows %q, owned by %v", s.shows(), s.owners["ingress"])
	}
	b.service(t, "default/web")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	if one(b, s, nil, ours, noon); s.shows() != "203.0.113.10/VIP" {
		t.Fatalf("shows %q", s.shows())
	}
}

func TestWhatIsEditedOrDeletedByHandIsWrittenBack(t *testing.T) {
	for name, edit := range map[string]func(*served){
		"deleted": func(s *served) {
			s.ingress, s.owners, s.conditions = nil, map[string]map[string]bool{}, map[string]metav1.Condition{}
		},
		"other-ip":  func(s *served) { s.update("kubectl", "198.51.100.1") },
		"hostname":  func(s *served) { s.ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example.com"}} },
		"condition": func(s *served) { delete(s.conditions, Announced) },
		"proxy": func(s *served) {
			mode := corev1.LoadBalancerIPModeProxy
			s.ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.10", IPMode: &mode}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
			b.service(t, "default/web")
			b.serve(t, "default/web", "203.0.113.10", "n1")
			one(b, s, nil, ours, noon)
			edit(s)
			w, any := one(b, s, nil, ours, noon)
			if !any || !w.Urgent || s.shows() != "203.0.113.10/VIP" || s.says(Announced) != "True Announced: 203.0.113.10" {
				t.Fatalf("written %v: shows %q, %s", any, s.shows(), s.says(Announced))
			}
		})
	}
}

func TestAnEarlierLifeOfTheServiceIsNotShown(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	b.service(t, "default/web", func(s *fsm.Service) { s.UID = "uid-before" })
	b.serve(t, "default/web", "203.0.113.10", "n1")
	if w, any := one(b, s, nil, ours, noon); any {
		t.Fatalf("written: %+v", w)
	}
}

// K32, K34: an address of each family is shown, as one that nodes intercept.
func TestBothFamiliesAreShownIPv4First(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	b.do(t, &fsm.PutNode{ID: "n6", UID: "n6", Addresses: []netip.Addr{netip.MustParseAddr("2001:db8::6")}, Eligible: true}, &fsm.RegisterBoot{Node: "n6", Boot: "boot1"})
	b.service(t, "default/web")
	b.allocate(t, "default/web", "2001:db8:1::10")
	b.do(t, &fsm.SetRoute{Prefix: netip.MustParsePrefix("2001:db8:1::10/128"), Hops: []fsm.HopSpec{{Node: "n6", Address: netip.MustParseAddr("2001:db8::6")}}})
	b.acknowledge(t, "n6")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	one(b, s, nil, ours, noon)
	if s.shows() != "203.0.113.10/VIP 2001:db8:1::10/VIP" {
		t.Fatalf("shows %q", s.shows())
	}
	if got := s.says(Announced); got != "True Announced: 203.0.113.10, 2001:db8:1::10" {
		t.Error(got)
	}
}

// A Service whose addresses were all announced gets one that nobody can carry just when all members have restarted: what is said
// of it is said in the same way when it is looked at again.
func TestWhatWasSaidBeforeDoesNotRewordWhatIsSaid(t *testing.T) {
	b := newBook(t)
	b.service(t, "default/web")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	s := &Seen{ID: "default/web", UID: "uid-default/web", LoadBalancer: true}
	o := Options{Class: class}
	s.Conditions = Project(b.Read(), nil, []*Seen{s}, o, noon)[0].Conditions
	b.restart(t)
	b.allocate(t, "default/web", "203.0.113.11")
	first := Project(b.Read(), nil, []*Seen{s}, o, noon)[0]
	s.Conditions = first.Conditions
	for _, again := range Project(b.Read(), nil, []*Seen{s}, o, noon) {
		if !reflect.DeepEqual(again.Conditions, first.Conditions) {
			t.Errorf("said %+v, and then %+v", first.Conditions, again.Conditions)
		}
	}
}

// What members have on all their sessions is announced to nobody where no peer that is to be sent it has a session that takes it: the
// condition names the peer. A session that goes for good takes the condition back, and not what is shown: the address stays the Service's.
func TestAnnouncedIsFalseWhileNobodyIsSentTheAddress(t *testing.T) {
	b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
	expect := func(what, shows, announced string) {
		t.Helper()
		if one(b, s, nil, ours, noon); s.shows() != shows || !strings.HasPrefix(s.says(Announced), announced) {
			t.Fatalf("%s: shows %q, %s", what, s.shows(), s.says(Announced))
		}
	}
	unheard := "False NoSession: 203.0.113.10: no session that takes IPv4 is open with whom it is to be sent to: BGPPeer switch (192.0.2.254); "
	b.service(t, "default/web")
	b.sessions(t)
	b.serve(t, "default/web", "203.0.113.10", "n1")
	expect("no session", "", unheard)
	b.sessions(t, fsm.Reach{Peer: "switch", IPv6: true})
	expect("one of another family", "", unheard)
	b.sessions(t, fsm.Reach{Peer: "switch", IPv4: true})
	expect("a session", "203.0.113.10/VIP", "True Announced: 203.0.113.10")
	b.do(t, &fsm.PutAdvertisement{Advertisement: fsm.Advertisement{Name: "ad", Peers: []fsm.PeerName{"tor-a"}}})
	expect("another peer is named", "203.0.113.10/VIP", "False NoSession: 203.0.113.10: of the BGPPeers that take IPv4 none is to be sent it by BGPAdvertisement ad: ")
	b.do(t, &fsm.PutPeer{Peer: fsm.Peer{Name: "tor-a", Address: netip.MustParseAddr("192.0.2.253"), ASN: 65001, LocalASN: 65000, IPv4: true}})
	expect("which has no session", "203.0.113.10/VIP", "False NoSession: 203.0.113.10: no session that takes IPv4 is open with whom it is to be sent to: BGPPeer tor-a (192.0.2.253); ")
	b.do(t, &fsm.DeleteAdvertisement{Name: "ad"})
	expect("all are sent it", "203.0.113.10/VIP", "True Announced: 203.0.113.10")
	b.restart(t)
	expect("the member restarts", "203.0.113.10/VIP", "True Announced: 203.0.113.10")
	b.announce(t)
	b.sessions(t)
	expect("no session any more", "203.0.113.10/VIP", "False NoSession: ")
	b.do(t, &fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{"public"}, EveryNode: true}})
	expect("nodes answer for it at layer 2", "203.0.113.10/VIP", "True Announced: 203.0.113.10")
}

// An Event says that nobody is sent an address any more, and another one that somebody is again.
func TestEventsTellWhenNobodyIsSentTheAddress(t *testing.T) {
	b := newBook(t)
	l := &listener{b: b, told: story{uid: "uid-default/web"}}
	expect := func(want string) {
		t.Helper()
		if got := l.hears(); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Fatalf("told\n%s\nwant\n%s...", got, want)
		}
	}
	b.sessions(t, fsm.Reach{Peer: "switch", IPv4: true})
	b.service(t, "default/web")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	l.hears()
	b.sessions(t)
	expect("Warning NotAnnounced: 203.0.113.10: no session that takes IPv4 is open")
	b.sessions(t, fsm.Reach{Peer: "switch", IPv4: true})
	expect("Normal Announced: 203.0.113.10 via n1 (192.0.2.1)")
}
