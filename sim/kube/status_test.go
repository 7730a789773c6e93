// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/informers"
	"fairlead.io/fairlead/k8s/status"
	"fairlead.io/fairlead/sim/kube"
)

// record is a record that tests write.
type record struct {
	*fsm.State
	t testing.TB
}

func newRecord(t testing.TB) *record {
	r := &record{fsm.New(), t}
	r.commit(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat},
		&fsm.ReportMember{Server: "m1", Name: "m1", Run: "r1", Format: fsm.NewestFormat},
		&fsm.PutPeer{Peer: fsm.Peer{Name: "switch", Address: netip.MustParseAddr("192.0.2.254"), ASN: 65001, LocalASN: 65000, IPv4: true}},
		&fsm.PutNode{ID: "n1", UID: "n1", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, Eligible: true},
		&fsm.RegisterBoot{Node: "n1", Boot: "boot1"})
	return r
}

func (r *record) commit(commands ...fsm.Command) {
	r.t.Helper()
	fsmtest.Tell(r.t, r.State, commands...)
}

// announce does all that leads to an address of a Service being announced through n1.
func (r *record) announce(id, uid, address string) {
	r.t.Helper()
	a := netip.MustParseAddr(address)
	port := fsm.Port{Protocol: fsm.TCP, Number: 80}
	r.commit(&fsm.PutService{Service: fsm.Service{ID: fsm.ServiceID(id), UID: uid, Frontends: []fsm.Frontend{{Port: port}}}},
		&fsm.Allocate{Address: a, Service: fsm.ServiceID(id), Pool: "public", Ports: []fsm.Port{port}},
		&fsm.SetRoute{Prefix: fsm.HostPrefix(a), Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("192.0.2.1")}}})
	r.commit(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n1", Boot: "boot1", Upto: r.Read().Revision()}}})
	r.commit(&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m1", Run: "r1", Upto: r.Read().Revision()}}})
}

// project runs a real source and a real projector over the model until the test ends.
func (b *bench) project(t *testing.T, r *record) {
	api, store := b.api(t, "m1"), status.NewStore()
	source, err := informers.New(informers.Options{API: api, Clock: b.clock, Services: store, Logger: discard})
	if err != nil {
		t.Fatal(err)
	}
	p, err := status.New(status.Config{Record: r, Store: store, API: status.Kubernetes{Services: api.Client.CoreV1(), Events: api.Client.EventsV1()},
		Waiting: func() []status.Explanation { return nil }, Clock: b.clock, Log: slog.New(slog.DiscardHandler),
		Options: status.Options{Class: "fairlead.io/fairlead"}, Instance: "m1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = source.Run(ctx) }) // it ends with ctx, without an error
	running.Go(func() { p.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

// shows waits until the status of a Service shows an address and nothing else.
func (b *bench) shows(t *testing.T, name, address string) {
	t.Helper()
	testkit.Eventually(t, name+" shows its address and nothing else", func() error {
		var have string
		b.do(func() {
			for _, in := range b.Get("Service", "default", name).(*corev1.Service).Status.LoadBalancer.Ingress {
				have += in.IP + " "
			}
		})
		if strings.TrimSpace(have) != address {
			b.pass(50 * time.Millisecond)
			return fmt.Errorf("%q, not %q", have, address)
		}
		return nil
	})
}

// The real projector writes status and Events to the model, through conflicts, lost answers and other managers.
func TestTheRealProjectorWritesToTheModel(t *testing.T) {
	b, r := newCluster(t, 1), newRecord(t)
	b.make(t, "web", "api")
	for name, address := range map[string]string{"web": "203.0.113.1", "api": "203.0.113.2"} {
		r.announce("default/"+name, string(b.Get("Service", "default", name).GetUID()), address)
	}
	b.run(t)
	b.project(t, r)
	b.shows(t, "web", "203.0.113.1")
	b.shows(t, "api", "203.0.113.2")

	b.do(func() {
		if _, err := b.ChangeStatus("other", "Service", "default", "web", func(o kube.Object) {
			o.(*corev1.Service).Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "198.51.100.1"}}
		}); err != nil {
			t.Error(err)
		}
	})
	b.shows(t, "web", "203.0.113.1")

	var end []func()
	b.do(func() {
		end = append(end, b.Begin(kube.ErrorOn, kube.Scope{Status: 504, Share: 0.5}), b.Begin(kube.WatchDelay, kube.Scope{}))
		if _, err := b.Change("user", "Service", "default", "api", func(o kube.Object) {
			o.(*corev1.Service).Spec.Type = corev1.ServiceTypeClusterIP
		}); err != nil {
			t.Error(err)
		}
	})
	b.shows(t, "api", "")
	b.do(func() {
		for _, f := range end {
			f()
		}
		if _, err := b.Change("user", "Service", "default", "api", func(o kube.Object) {
			o.(*corev1.Service).Spec.Type = corev1.ServiceTypeLoadBalancer
		}); err != nil {
			t.Error(err)
		}
	})
	b.shows(t, "api", "203.0.113.2")
	testkit.Until(t, "an Event tells of it", func() (announced bool) {
		b.pass(50 * time.Millisecond)
		b.do(func() {
			for _, o := range b.List("Event") {
				announced = announced || o.(*eventsv1.Event).Reason == status.EventAnnounced
			}
		})
		return announced
	})
	b.do(func() {
		if len(b.refused) > 0 {
			t.Errorf("refused %+v", b.refused)
		}
	})
}
