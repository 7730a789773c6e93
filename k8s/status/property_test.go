// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

var (
	drawnServices  = []string{"default/a", "default/b", "default/c"}
	drawnAddresses = []string{"203.0.113.1", "203.0.113.2", "203.0.113.3"}
	drawnNodes     = []string{"n1", "n2", "n3"}
	drawnPorts     = []fsm.Port{{Protocol: fsm.TCP, Number: 80}, {Protocol: fsm.UDP, Number: 53}, {Protocol: fsm.SCTP, Number: 80}}
	drawnTypes     = []corev1.ServiceType{corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeClusterIP}
	drawnClasses   = []string{"", class, "example.com/other"}
)

// scene is one run: a record and an API server that change independently.
type scene struct {
	b        *book
	services map[string]*served
	epoch    fsm.Epoch
}

func newScene(t *rapid.T) *scene {
	x := &scene{b: newBook(t), services: map[string]*served{}, epoch: 1}
	for _, id := range drawnServices {
		x.services[id] = newServed(id[len("default/"):], corev1.ServiceTypeLoadBalancer, rapid.SampledFrom(drawnClasses).Draw(t, "class"))
	}
	return x
}

// record changes the record by a drawn command, which may be refused.
func (x *scene) record(t *rapid.T) {
	id := rapid.SampledFrom(drawnServices).Draw(t, "service")
	a := netip.MustParseAddr(rapid.SampledFrom(drawnAddresses).Draw(t, "address"))
	node := rapid.SampledFrom(drawnNodes).Draw(t, "node")
	ports := rapid.SliceOfNDistinct(rapid.SampledFrom(drawnPorts), 1, 3, rapid.ID).Draw(t, "ports")
	switch rapid.SampledFrom([]string{"put", "put", "allocate", "allocate", "route", "route", "acknowledge", "acknowledge",
		"announce", "announce", "sessions", "advertise", "release", "fail", "boot", "restart", "epoch", "calm", "unpeer", "finish", "delete"}).Draw(t, "command") {
	case "put":
		s := fsm.Service{ID: fsm.ServiceID(id), UID: "uid-" + id, Deleting: rapid.IntRange(0, 5).Draw(t, "deleting") == 0}
		for _, p := range ports {
			s.Frontends = append(s.Frontends, fsm.Frontend{Port: p})
		}
		if rapid.Bool().Draw(t, "external") {
			s.SetRare(fsm.Rare{External: []netip.Addr{a}})
		}
		if rapid.Bool().Draw(t, "pending") {
			s.Pending = fsm.Pending{Code: rapid.SampledFrom([]string{"address-taken", "port-closing"}).Draw(t, "code"), Text: a.String() + " is taken"}
		}
		if rapid.IntRange(0, 9).Draw(t, "earlier life") == 0 {
			s.UID = "uid-before"
		}
		_ = x.b.try(t, &fsm.PutService{Service: s})
	case "allocate":
		_ = x.b.try(t, &fsm.Allocate{Address: a, Service: fsm.ServiceID(id), Pool: "public", Ports: ports})
	case "release":
		_ = x.b.try(t, &fsm.ReleaseAllocation{Address: a, Service: fsm.ServiceID(id)})
	case "route":
		c := &fsm.SetRoute{Prefix: fsm.HostPrefix(a)}
		for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom(drawnNodes), 0, 3, rapid.ID).Draw(t, "hops") {
			c.Hops = append(c.Hops, fsm.HopSpec{Node: fsm.NodeID(n), Address: nodeAddress(n)})
		}
		_ = x.b.try(t, c)
	case "acknowledge":
		upto := x.b.now()
		if r, ok := fsm.Get[*fsm.Route](x.b.Read(), fsm.TableRoutes, fsm.HostPrefix(a).String()); ok && len(r.NextHops) > 0 && rapid.Bool().Draw(t, "just the route") {
			upto = r.NextHops[0].Since
		}
		_ = x.b.try(t, &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: fsm.NodeID(node), Boot: "boot1", Upto: upto}}})
	case "fail":
		_ = x.b.try(t, &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: fsm.NodeID(node), Boot: "boot1", Upto: x.b.now(), Failed: []netip.Prefix{fsm.HostPrefix(a)}}}})
	case "boot":
		_ = x.b.try(t, &fsm.RegisterBoot{Node: fsm.NodeID(node), Boot: "boot2"}, &fsm.RegisterBoot{Node: fsm.NodeID(node), Boot: "boot1"})
	case "announce":
		run := rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "run")
		_ = x.b.try(t, &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m1", Run: run, Upto: x.b.now()}}})
	case "sessions":
		said := fsm.MemberSessions{Server: "m1", Run: rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "run of sessions")}
		if rapid.Bool().Draw(t, "with the switch") {
			said.Open = []fsm.Reach{{Peer: "switch", IPv4: rapid.IntRange(0, 3).Draw(t, "takes IPv4") > 0}}
		}
		_ = x.b.try(t, &fsm.ReportSessions{Members: []fsm.MemberSessions{said}})
	case "advertise":
		_ = x.b.try(t, rapid.SampledFrom([]fsm.Command{
			&fsm.DeleteAdvertisement{Name: "ad"},
			&fsm.PutAdvertisement{Advertisement: fsm.Advertisement{Name: "ad", Peers: []fsm.PeerName{"switch"}}},
			&fsm.PutAdvertisement{Advertisement: fsm.Advertisement{Name: "ad", Peers: []fsm.PeerName{"other"}}},
		}).Draw(t, "advertisement"))
	case "restart":
		_ = x.b.try(t, &fsm.ReportMember{Server: "m1", Name: "m1", Run: rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "run"), Format: fsm.NewestFormat})
	case "epoch":
		x.epoch++
		_ = x.b.try(t, &fsm.NewEpoch{Group: "g", Epoch: x.epoch, Cause: "restore"})
	case "calm":
		_ = x.b.try(t, &fsm.EndQuarantine{Since: x.b.Read().Group().Quarantine})
	case "delete":
		_ = x.b.try(t, &fsm.DeleteService{ID: fsm.ServiceID(id), UID: "uid-" + id})
	case "unpeer":
		_ = x.b.try(t, &fsm.DeletePeer{Name: "switch"})
	case "finish":
		if r, ok := fsm.Get[*fsm.Route](x.b.Read(), fsm.TableRoutes, fsm.HostPrefix(a).String()); ok && len(r.NextHops) > 0 {
			h := r.NextHops[0]
			_ = x.b.try(t, &fsm.FinishWithdrawal{Prefix: r.Prefix, Node: h.Node(), Address: h.Address(), Since: h.Since})
		}
	}
}

// meddle is what others do to a Service.
func (x *scene) meddle(t *rapid.T) {
	s := x.services[rapid.SampledFrom(drawnServices).Draw(t, "meddled service")]
	switch rapid.SampledFrom([]string{"ingress", "turn", "clear", "condition", "going", "finalizer"}).Draw(t, "meddling") {
	case "ingress":
		s.update("other", rapid.SliceOfN(rapid.SampledFrom(append(drawnAddresses, "198.51.100.1")), 0, 2).Draw(t, "others' ingress")...)
	case "turn":
		s.turn(rapid.SampledFrom(drawnTypes).Draw(t, "type"), rapid.SampledFrom(drawnClasses).Draw(t, "class"))
	case "clear":
		s.ingress, s.owners, s.conditions = nil, map[string]map[string]bool{}, map[string]metav1.Condition{}
	case "going":
		s.going = true
	case "finalizer":
		s.finalizer["other"] = true
	case "condition":
		s.conditions["example.com/Other"] = metav1.Condition{Type: "example.com/Other", Message: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "message")}
		s.owners["example.com/Other"] = map[string]bool{"other": true}
	}
}

func (x *scene) current() []*Seen {
	var out []*Seen
	for _, id := range drawnServices {
		out = append(out, x.services[id].seen())
	}
	return out
}

// carryOut applies writes, and holds each to what may be touched at all.
func (x *scene) carryOut(t *rapid.T, writes []Write, o Options) {
	for _, w := range writes {
		s := x.services[string(w.ID)]
		before := *s
		before.conditions, before.finalizer = maps.Clone(s.conditions), maps.Clone(s.finalizer)
		mine, had := s.owners["ingress"][Manager], s.shows()
		s.apply(w)
		x.finalizers(t, before.finalizer, mine, s, w, o)
		if !reflect.DeepEqual(before.conditions["example.com/Other"], s.conditions["example.com/Other"]) {
			t.Fatalf("%s: somebody else's condition changed", w.ID)
		}
		handled := s.kind == corev1.ServiceTypeLoadBalancer && (s.class == class || s.class == "" && !o.IgnoreUnclassed)
		if !handled && (len(w.Ingress)+len(w.Conditions) > 0 || !mine && s.shows() != had) {
			t.Fatalf("%s of type %s and class %q: written %+v, showed %q, shows %q", w.ID, s.kind, s.class, w, had, s.shows())
		}
		if handled && !mine && had != s.shows() && s.shows() == "" {
			t.Fatalf("%s: somebody else's ingress %q taken away for nothing", w.ID, had)
		}
	}
}

// finalizers holds a write to when a finalizer may come and go (K33).
func (x *scene) finalizers(t *rapid.T, before map[string]bool, shown bool, after *served, w Write, o Options) {
	v := x.b.Read()
	_, held := fsm.Get[*fsm.Service](v, fsm.TableServices, string(w.ID))
	lifted := before[Manager] && !after.finalizer[Manager]
	switch {
	case before["other"] != after.finalizer["other"]:
		t.Fatalf("%s: somebody else's finalizer changed", w.ID)
	case !o.Finalizer && after.finalizer[Manager] && !before[Manager]:
		t.Fatalf("%s: a finalizer that nobody asked for", w.ID)
	case lifted && o.Finalizer && (held || len(v.Addresses(w.ID)) > 0 || v.Group().Quarantine != fsm.Revision{}):
		t.Fatalf("%s: the finalizer goes, and the record holds it still: %v", w.ID, v.Addresses(w.ID))
	case o.Finalizer && !after.going && len(w.Ingress) > 0 && !shown && !after.finalizer[Manager]:
		t.Fatalf("%s: shows %q before it has the finalizer", w.ID, after.shows())
	}
}

// settled carries out writes until there are none, few for each Service.
func (x *scene) settled(t *rapid.T, o Options) {
	for range 3 {
		x.carryOut(t, Project(x.b.Read(), nil, x.current(), o, noon), o)
	}
}

// K33: once the record is done with a Service that is going, or that is no longer ours, nothing of ours keeps it, nor does
// anything once the option is off, whatever the record holds.
// Rule: K33.
func TestPropertyNoServiceIsKeptForGood(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		x, o := newScene(t), drawOptions(t)
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			o.Finalizer = rapid.IntRange(0, 3).Draw(t, "finalizer") > 0
			for range rapid.IntRange(0, 12).Draw(t, "commands") {
				x.record(t)
			}
			for range rapid.IntRange(0, 2).Draw(t, "meddlings") {
				x.meddle(t)
			}
			x.settled(t, o)
			v := x.b.Read()
			for id, s := range x.services {
				_, held := fsm.Get[*fsm.Service](v, fsm.TableServices, id)
				over := !held && v.Group().Quarantine == fsm.Revision{} && (s.going || !o.ours(s.seen()))
				if s.finalizer[Manager] && (!o.Finalizer || over) {
					t.Fatalf("%s is kept: option %t, held %t, going %t", id, o.Finalizer, held, s.going)
				}
			}
		}
	})
}

func drawOptions(t *rapid.T) Options {
	return Options{Class: class, IgnoreUnclassed: rapid.Bool().Draw(t, "ignore unclassed"), ExternalIPs: rapid.Bool().Draw(t, "externalIPs"),
		Finalizer: rapid.Bool().Draw(t, "finalizer")}
}

// Whatever the record and other writers do: once its writes are done, the projection has nothing more to say, and what
// is not ours was not touched.
func TestPropertyProjectionIsIdempotentAndTouchesOnlyOurs(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		x, o := newScene(t), drawOptions(t)
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			for range rapid.IntRange(0, 12).Draw(t, "commands") {
				x.record(t)
			}
			for range rapid.IntRange(0, 2).Draw(t, "meddlings") {
				x.meddle(t)
			}
			x.settled(t, o)
			if again := Project(x.b.Read(), nil, x.current(), o, noon.Add(time.Hour)); len(again) > 0 {
				t.Fatalf("written again: %+v", again)
			}
		}
	})
}

// What stands in the ingress by our hand is owned by the Service, and was announced at some time since.
func TestPropertyShownAddressesAreOwned(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		x, o := newScene(t), drawOptions(t)
		announcedOnce := map[string]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			x.record(t)
			v := x.b.Read()
			for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
				for _, h := range r.NextHops {
					silent := len(fsm.List[*fsm.Peer](v, fsm.TablePeers)) == 0 && v.HopState(r, h) == fsm.HopAcknowledged
					if silent || v.HopState(r, h) == fsm.HopAnnounced {
						announcedOnce[r.Prefix.Addr().String()] = true
					}
				}
			}
			x.settled(t, o)
			if v.Group().Quarantine != (fsm.Revision{}) {
				continue // nothing is taken away meanwhile
			}
			for id, s := range x.services {
				svc, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, id)
				for _, in := range s.ingress {
					a := netip.MustParseAddr(in.IP)
					owns := slices.ContainsFunc(v.Owners(in.IP), func(h *fsm.Allocation) bool { return string(h.Service) == id && !h.Releasing })
					switch {
					case !ok || svc.UID != s.uid: // the record does not know this life of it
					case !owns:
						t.Fatalf("%s shows %s, which it does not own", id, a)
					case !announcedOnce[in.IP]:
						t.Fatalf("%s shows %s, which nobody ever announced", id, a)
					case slices.Contains(svc.External(), a) && !o.ExternalIPs:
						t.Fatalf("%s shows %s of externalIPs", id, a)
					case in.IPMode == nil || *in.IPMode != corev1.LoadBalancerIPModeVIP:
						t.Fatalf("%s shows %s without ipMode VIP", id, a)
					}
				}
			}
		}
	})
}

// K31: an entry says which ports do not serve, and lists all of them then, and none if all serve.
// Rule: K31.
func TestPropertyPortsThatAreNotToBeHadAreNamed(t *testing.T) {
	names := map[fsm.Protocol]corev1.Protocol{fsm.TCP: "TCP", fsm.UDP: "UDP", fsm.SCTP: "SCTP"}
	testkit.Check(t, func(t *rapid.T) {
		x, o := newScene(t), drawOptions(t)
		for i, id := range drawnServices {
			x.b.service(t, id)
			x.b.serve(t, id, drawnAddresses[i], "n1")
		}
		x.settled(t, o)
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			x.record(t)
			x.settled(t, o)
			v := x.b.Read()
			for id, s := range x.services {
				svc, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, id)
				if !ok || svc.UID != s.uid || !o.ours(s.seen()) || v.Group().Quarantine != (fsm.Revision{}) {
					continue
				}
				for _, in := range s.ingress {
					var has []fsm.Port
					for _, a := range v.Owners(in.IP) {
						if string(a.Service) == id {
							has = a.Ports()
						}
					}
					lacks := false
					for _, front := range svc.Frontends {
						lacks = lacks || !slices.Contains(has, front.Port)
					}
					if lacks != (len(in.Ports) > 0) || lacks && len(in.Ports) != len(svc.Frontends) {
						t.Fatalf("%s at %s has the ports %v of %v, and shows %+v", id, in.IP, has, svc.Frontends, in.Ports)
					}
					for i, p := range in.Ports {
						front := svc.Frontends[i].Port
						want := "fairlead.io/PortNotAllocated"
						if svc.Pending.Code == "port-closing" {
							want = "fairlead.io/PortClosing"
						}
						if p.Port != int32(front.Number) || p.Protocol != names[front.Protocol] {
							t.Fatalf("%s: %+v in the place of %s", id, p, front)
						}
						if slices.Contains(has, front) != (p.Error == nil) || p.Error != nil && *p.Error != want {
							t.Fatalf("%s: port %s is its own: %t, and has the error %v, want %s", id, front, slices.Contains(has, front), p.Error, want)
						}
					}
				}
			}
		}
	})
}

// scan may name too many, never too few: whoever it does not name, nothing new can be said of.
func TestPropertyScanNamesAllThatAreConcerned(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		x, o := newScene(t), drawOptions(t)
		told := map[string]story{}
		before := x.b.Read()
		x.settled(t, o)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			for range rapid.IntRange(1, 3).Draw(t, "commands") {
				x.record(t)
			}
			now := x.b.Read()
			concerned, all := scan(before, now)
			for _, id := range drawnServices {
				seen := x.services[id].seen()
				ws := Project(now, nil, []*Seen{seen}, o, noon)
				was := told[id]
				is := storyOf(factsOf(now, seen.ID, seen.UID), nil, &was)
				told[id] = is
				if all || concerned[seen.ID] {
					continue
				}
				if len(ws) > 0 {
					t.Fatalf("%s is not named, yet to be written: %+v", id, ws)
				}
				if said := tell(seen.ID, &was, &is); len(said) > 0 {
					t.Fatalf("%s is not named, yet to be told: %+v", id, said)
				}
			}
			x.settled(t, o)
			before = now
		}
	})
}

// Members may have announced the record up to a route before any node acknowledged it: then only what they announce after
// the acknowledgement counts, and that is seldom drawn.
func TestMarkAfterALateAcknowledgementIsNoticed(t *testing.T) {
	b := newBook(t)
	b.service(t, "default/web")
	b.allocate(t, "default/web", "203.0.113.10")
	b.route(t, "203.0.113.10", "n1")
	routed := b.now()
	b.announce(t)
	b.do(t, &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n1", Boot: "boot1", Upto: routed}}})
	before := b.Read()
	b.announce(t)
	if concerned, _ := scan(before, b.Read()); !concerned["default/web"] {
		t.Error("not named")
	}
}

// A node may acknowledge on before members announce what it acknowledged first: their mark, which was behind its
// acknowledgement, is then beyond the route.
func TestFurtherAcknowledgementOfAHopJustAcknowledgedIsNoticed(t *testing.T) {
	b := newBook(t)
	b.service(t, "default/web")
	b.allocate(t, "default/web", "203.0.113.10")
	b.route(t, "203.0.113.10", "n1")
	routed := b.now()
	b.announce(t)
	b.do(t, &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n1", Boot: "boot1", Upto: routed}}})
	before := b.Read()
	b.acknowledge(t, "n1")
	wantReworded(t, before, b.Read(), &Seen{ID: "default/web", UID: "uid-default/web", LoadBalancer: true})
}

// Of two addresses of a Service one is announced and one waits for its node. When all members restart, the first waits as
// well, and its condition names the first of those that wait.
func TestMarksThatRunBackAreNoticed(t *testing.T) {
	scene := func(t *testing.T) (*book, *Seen) {
		b := newBook(t)
		b.service(t, "default/web")
		b.serve(t, "default/web", "203.0.113.10", "n1")
		b.allocate(t, "default/web", "203.0.113.11")
		b.route(t, "203.0.113.11", "n2")
		return b, &Seen{ID: "default/web", UID: "uid-default/web", LoadBalancer: true}
	}
	t.Run("restarted", func(t *testing.T) {
		b, s := scene(t)
		before := b.Read()
		b.restart(t)
		wantReworded(t, before, b.Read(), s)
	})
	t.Run("forgotten", func(t *testing.T) {
		b, s := scene(t)
		before := b.Read()
		b.do(t, &fsm.RemoveMember{Server: "m1"})
		wantReworded(t, before, b.Read(), s)
	})
	t.Run("others-announce-it", func(t *testing.T) {
		b, _ := scene(t)
		b.do(t, &fsm.ReportMember{Server: "m2", Name: "m2", Run: "r1", Format: fsm.NewestFormat},
			&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m2", Run: "r1", Upto: b.now()}}})
		before := b.Read()
		b.restart(t)
		if concerned, all := scan(before, b.Read()); all || len(concerned) > 0 {
			t.Errorf("named %v, all: %t; another member announces as much", concerned, all)
		}
	})
}

// wantReworded holds scan to naming a Service of which something else is to be written than before.
func wantReworded(t *testing.T, before, now *fsm.View, s *Seen) {
	t.Helper()
	o := Options{Class: class}
	s.Conditions = Project(before, nil, []*Seen{s}, o, noon)[0].Conditions
	after := Project(now, nil, []*Seen{s}, o, noon)
	if len(after) == 0 || reflect.DeepEqual(after[0].Conditions, s.Conditions) {
		t.Fatalf("nothing else is to be said: %+v", after)
	}
	if concerned, all := scan(before, now); !all && !concerned[s.ID] {
		t.Errorf("not named, yet to be written: %+v", after[0].Conditions)
	}
}
