// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/testkit"
)

// memory is tables of a kernel that fails now and then, in the middle of a change.
type memory struct {
	mu       sync.Mutex
	rows     Rows
	fails    func() bool
	attached int
}

var errKernel = errors.New("kernel")

func newMemory() *memory { return &memory{rows: NewRows(), fails: func() bool { return false }} }

func (k *memory) Read() (Rows, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fails() {
		return Rows{}, errKernel
	}
	return Rows{
		Places: maps.Clone(k.rows.Places), Slots: maps.Clone(k.rows.Slots), Nodes: maps.Clone(k.rows.Nodes), Windows: maps.Clone(k.rows.Windows),
	}, nil
}

func (k *memory) Apply(c Change) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	half := Change{PutSlots: c.PutSlots, PutWindows: c.PutWindows}
	k.rows.Apply(half)
	if k.fails() {
		return errKernel
	}
	k.rows.Apply(c)
	return nil
}

func (k *memory) Attach() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fails() {
		return errKernel
	}
	k.attached++
	return nil
}

// lose empties the slots, as somebody else might, and tells how often programs were attached until then.
func (k *memory) lose() (attached int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.rows.Slots)
	return k.attached
}

func (k *memory) Counters() (map[Kind]map[string]uint64, error) { return nil, nil }

var room = Capacity{Places: 1000, Slots: 1000, Nodes: 10}

var (
	web  = desired.Frontend{Name: "http", Port: desired.Port{Protocol: TCP, Number: 80}}
	vip  = netip.MustParseAddr("192.0.2.1")
	here = Call{To: Place{Address: vip, Port: 80, Protocol: TCP}}
)

func pod(address, node string) desired.Endpoint {
	return desired.Endpoint{
		Address: netip.MustParseAddr(address), Node: node, Ready: true, Serving: true,
		Ports: []desired.EndpointPort{{Name: "http", Port: desired.Port{Protocol: TCP, Number: 8080}}},
	}
}

// Balancing §10: what clients of a host get at a Service's addresses.
// Rule: balancing §10, K21.
func TestWhatServicesLeadTo(t *testing.T) {
	plain := desired.Service{Name: "shop/web", Addresses: []netip.Addr{vip}, Frontends: []desired.Frontend{web}, Endpoints: []desired.Endpoint{pod("10.0.0.1", "n2")}}
	with := func(f func(*desired.Service)) desired.Service {
		s := plain
		f(&s)
		return s
	}
	inside := func(f func(*desired.Service)) desired.Service {
		s := plain
		s.Addresses, s.ClusterIPs = nil, []netip.Addr{vip}
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		service desired.Service
		verdict Verdict
		backend string
	}{
		"inside":                               {inside(func(*desired.Service) {}), Use, "10.0.0.1:8080"},
		"inside, beside an address":            {inside(func(s *desired.Service) { s.Addresses = []netip.Addr{netip.MustParseAddr("192.0.2.9")} }), Use, "10.0.0.1:8080"},
		"inside, whatever is outside":          {inside(func(s *desired.Service) { s.Local = true }), Use, "10.0.0.1:8080"},
		"inside, for all clients":              {inside(func(s *desired.Service) { s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }), Use, "10.0.0.1:8080"},
		"inside, none":                         {inside(func(s *desired.Service) { s.Endpoints = nil }), Refuse, ""},
		"inside, Local and elsewhere":          {inside(func(s *desired.Service) { s.InternalLocal = true }), Unreachable, ""},
		"inside, Local and nowhere":            {inside(func(s *desired.Service) { s.InternalLocal, s.Endpoints = true, nil }), Refuse, ""},
		"the policy Local inside, and outside": {with(func(s *desired.Service) { s.InternalLocal = true }), Use, "10.0.0.1:8080"},
		"inside, Local and here": {inside(func(s *desired.Service) {
			s.InternalLocal, s.Endpoints = true, []desired.Endpoint{pod("10.0.0.1", "n2"), pod("10.0.0.2", "n1")}
		}), Use, "10.0.0.2:8080"},
		"an endpoint": {plain, Use, "10.0.0.1:8080"},
		"also one elsewhere with the policy Local": {with(func(s *desired.Service) { s.Local = true }), Use, "10.0.0.1:8080"},
		"none":                       {with(func(s *desired.Service) { s.Endpoints = nil }), Refuse, ""},
		"none of the family":         {with(func(s *desired.Service) { s.Endpoints = []desired.Endpoint{pod("fd00::1", "n1")} }), Refuse, ""},
		"clients by their addresses": {with(func(s *desired.Service) { s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }), Pass, ""},
		"a port not on the address": {with(func(s *desired.Service) {
			f := web
			f.NotOn = []netip.Addr{vip}
			s.Frontends = []desired.Frontend{f}
		}), Pass, ""},
		"another protocol": {with(func(s *desired.Service) {
			s.Frontends = []desired.Frontend{{Name: "http", Port: desired.Port{Protocol: 132, Number: 80}}}
		}), Pass, ""},
	} {
		k := newMemory()
		s, err := Over(Options{Config: Config{Node: "n1"}, Room: room}, k)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.apply(wanted{services: held(&c.service)}); err != nil {
			t.Fatal(err)
		}
		a := k.rows.Resolve(here)
		if a.Verdict != c.verdict || c.backend != "" && a.Backend.String() != c.backend {
			t.Errorf("%s: %s %s, want %s %s", name, a.Verdict, a.Backend, c.verdict, c.backend)
		}
	}
}

// Balancing §10 row 2, K32: what other controllers wrote into the status of a Service leads to its endpoints as addresses of the group do,
// whatever ports are another one's on those, and nothing else there is resolved.
// Rule: balancing §10, K32.
func TestAddressesOfOthersAreResolved(t *testing.T) {
	elsewhere := netip.MustParseAddr("192.0.2.9")
	front := web
	front.NotOn = []netip.Addr{elsewhere}
	plain := desired.Service{
		Name: "shop/web", Addresses: []netip.Addr{elsewhere}, ByOthers: []netip.Addr{vip}, Frontends: []desired.Frontend{front},
		Endpoints: []desired.Endpoint{pod("10.0.0.1", "n2")},
	}
	for name, c := range map[string]struct {
		change  func(*desired.Service)
		port    uint16
		verdict Verdict
	}{
		"as it is":         {func(*desired.Service) {}, web.Port.Number, Use},
		"the policy Local": {func(s *desired.Service) { s.Local, s.InternalLocal = true, true }, web.Port.Number, Use},
		"without endpoint": {func(s *desired.Service) { s.Endpoints = nil }, web.Port.Number, Refuse},
		"source ranges":    {func(s *desired.Service) { s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }, web.Port.Number, Pass},
		"another port":     {func(*desired.Service) {}, web.Port.Number + 1, Pass},
		"taken back":       {func(s *desired.Service) { s.ByOthers = nil }, web.Port.Number, Pass},
	} {
		k, was, is := newMemory(), plain, plain
		c.change(&is)
		s, err := Over(Options{Config: Config{Node: "n1"}, Room: room}, k)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []*desired.Service{&was, &is} {
			if err := s.apply(wanted{services: held(v)}); err != nil {
				t.Fatal(err)
			}
		}
		if a := k.rows.Resolve(Call{To: Place{Address: vip, Port: c.port, Protocol: TCP}}); a.Verdict != c.verdict {
			t.Errorf("%s: %s, want %s", name, a.Verdict, c.verdict)
		}
	}
}

// Balancing §10: a node port leads to the endpoints wherever they are, at every node and in families that it is served in.
// Rule: balancing §10, K29.
func TestNodePortsLeadToEndpoints(t *testing.T) {
	n4, n6 := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("2001:db8:9::1")
	front := web
	front.NodePort = 30080
	plain := desired.Service{Name: "shop/web", NodePortsIPv4: true, Frontends: []desired.Frontend{front}, Endpoints: []desired.Endpoint{pod("10.0.0.1", "n2"), pod("fd00::1", "n2")}}
	for name, c := range map[string]struct {
		change func(*desired.Service)
		v4, v6 string
	}{
		"of one family":            {func(*desired.Service) {}, "10.0.0.1:8080", ""},
		"of both":                  {func(s *desired.Service) { s.NodePortsIPv6 = true }, "10.0.0.1:8080", "[fd00::1]:8080"},
		"of none":                  {func(s *desired.Service) { s.NodePortsIPv4 = false }, "", ""},
		"of the addresses' family": {func(s *desired.Service) { s.NodePortsIPv4, s.Addresses = false, []netip.Addr{vip} }, "10.0.0.1:8080", ""},
		"the policy Local":         {func(s *desired.Service) { s.Local, s.InternalLocal = true, true }, "10.0.0.1:8080", ""},
		"source ranges":            {func(s *desired.Service) { s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")} }, "10.0.0.1:8080", ""},
		"no node port":             {func(s *desired.Service) { s.Frontends = []desired.Frontend{web} }, "", ""},
		"a port not on the address": {func(s *desired.Service) {
			f := front
			f.NotOn, s.Addresses = []netip.Addr{vip}, []netip.Addr{vip}
			s.Frontends = []desired.Frontend{f}
		}, "10.0.0.1:8080", ""},
	} {
		k, v := newMemory(), plain
		c.change(&v)
		s, err := Over(Options{Config: Config{Node: "n1"}, Room: room}, k)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.apply(wanted{services: held(&v), nodes: []netip.Addr{n4, n6}}); err != nil {
			t.Fatal(err)
		}
		for at, want := range map[netip.Addr]string{n4: c.v4, n6: c.v6, netip.MustParseAddr("198.51.100.9"): ""} {
			a := k.rows.Resolve(Call{To: Place{Address: at, Port: 30080, Protocol: TCP}})
			if got := a.Backend; want == "" && a.Verdict != Pass || want != "" && (a.Verdict != Use || got.String() != want) {
				t.Errorf("%s: %s at %s: %s, want %q", name, a.Verdict, at, got, want)
			}
		}
		if err := s.apply(wanted{services: held(&v), nodes: []netip.Addr{n6}}); err != nil {
			t.Fatal(err)
		}
		if a := k.rows.Resolve(Call{To: Place{Address: n4, Port: 30080, Protocol: TCP}}); a.Verdict != Pass {
			t.Errorf("%s: %s at what was a node's address", name, a.Verdict)
		}
	}
}

// Balancing §18: whatever fails on the way, programs begin to work only once tables were whole, and what is wanted last is
// what is there once nothing fails any more; nothing is written then that is there.
func TestPropertyFailuresAreMadeUpFor(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		k := newMemory()
		s, err := Over(Options{Config: Config{Node: "n1"}, Room: room}, k)
		if err != nil {
			t.Fatal(err)
		}
		k.fails = func() bool { return rapid.IntRange(0, 2).Draw(t, "fails") == 0 }
		ever := false
		var last []*desired.Service
		for range rapid.IntRange(1, 5).Draw(t, "states") {
			var services []*desired.Service
			for i := range rapid.IntRange(0, 4).Draw(t, "services") {
				v := &desired.Service{Name: fmt.Sprintf("shop/web%d", i), Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})}, Frontends: []desired.Frontend{web}}
				for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
					v.Endpoints = append(v.Endpoints, pod(fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 9).Draw(t, "pod")), "n2"))
				}
				services = append(services, v)
			}
			last = services
			err := s.apply(wanted{services: held(last...)})
			ever = ever || err == nil
			if (k.attached > 0) != ever {
				t.Fatalf("attached %d times, tables were whole: %v", k.attached, ever)
			}
		}
		k.fails = func() bool { return false }
		if err := s.apply(wanted{services: held(last...)}); err != nil {
			t.Fatal(err)
		}
		fresh := newMemory()
		other, err := Over(Options{Config: Config{Node: "n1"}, Room: room}, fresh)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.apply(wanted{services: held(last...)}); err != nil {
			t.Fatal(err)
		}
		if len(fresh.rows.Places) != len(k.rows.Places) || len(fresh.rows.Slots) != len(k.rows.Slots) || k.attached == 0 {
			t.Fatalf("after failures %+v, without %+v", k.rows, fresh.rows)
		}
		for at := range fresh.rows.Places {
			for draw := range uint32(6) {
				c := Call{To: at, Draw: draw}
				have, want := k.rows.Resolve(c), fresh.rows.Resolve(c)
				if have.Verdict != want.Verdict || have.Backend != want.Backend {
					t.Fatalf("%s: %+v, without failures %+v", at, have, want)
				}
			}
		}
	})
}

// What somebody removes is put right at the next comparison, programs too; before the first state nothing is touched.
func TestTablesArePutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newMemory()
		stale := Change{PutPlaces: map[Place]Row{here.To: {First: Choice{Rule: 7, Verdict: Refuse}}}}
		k.rows.Apply(stale)
		s, err := Over(Options{Config: Config{Node: "n1"}, Room: room, Audit: time.Minute}, k)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(k.rows.Places) != 1 || k.attached != 0 {
			t.Errorf("before it was told anything, the agent made %+v", k.rows)
		}
		state := []*desired.Service{{Name: "shop/web", Addresses: []netip.Addr{vip}, Frontends: []desired.Frontend{web}, Endpoints: []desired.Endpoint{pod("10.0.0.1", "n2")}}}
		if err := s.apply(wanted{services: held(state...)}); err != nil {
			t.Fatal(err)
		}
		whole, err := k.Read()
		if err != nil {
			t.Fatal(err)
		}
		attached := k.lose()
		time.Sleep(time.Minute)
		synctest.Wait()
		if a := k.rows.Resolve(here); a.Verdict != Use || len(k.rows.Slots) != len(whole.Slots) || k.attached != attached+1 {
			t.Errorf("a minute later: %+v, attached %d times, then %d", a, attached, k.attached)
		}
		if reflect.DeepEqual(k.rows.Slots, whole.Slots) {
			t.Errorf("a set that was broken is written under the same number %+v", k.rows.Slots)
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// Balancing §21: a comparison that somebody asks for is made within a second, once each time, and again until it succeeds.
// Rule: balancing §21.
func TestComparisonIsMadeWhenAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newMemory()
		var asks atomic.Bool
		asked := func() bool { return asks.Swap(false) }
		s, err := Over(Options{Config: Config{Node: "n1"}, Room: room, Audit: time.Hour, Asked: asked}, k)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		state := []*desired.Service{{Name: "shop/web", Addresses: []netip.Addr{vip}, Frontends: []desired.Frontend{web}, Endpoints: []desired.Endpoint{pod("10.0.0.1", "n2")}}}
		if err := s.apply(wanted{services: held(state...)}); err != nil {
			t.Fatal(err)
		}
		look := func(what string, slots bool, attached int) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			k.mu.Lock()
			defer k.mu.Unlock()
			if k.attached != attached || (len(k.rows.Slots) > 0) != slots {
				t.Errorf("%s: attached %d times, want %d; slots %v", what, k.attached, attached, k.rows.Slots)
			}
		}
		k.lose()
		look("nobody asked", false, 1)
		asks.Store(true)
		look("asked", true, 2)
		look("not asked again", true, 2)
		k.lose()
		var broken atomic.Bool
		k.mu.Lock()
		k.fails = broken.Load
		k.mu.Unlock()
		broken.Store(true)
		asks.Store(true)
		look("the kernel fails", false, 2)
		broken.Store(false)
		look("it works again", true, 3)
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// Balancing §20, §23: how many backends each policy has here, how many sockets got to them, whether programs are in place, when tables were compared, and tables that are about to be full.
// Rule: balancing §20.
func TestWhatIsToBeSeenOfPolicies(t *testing.T) {
	var log bytes.Buffer
	metrics := prometheus.NewRegistry()
	s, err := Over(Options{
		Config: Config{Node: "n1", Usable: func(_ *desired.Policy, _ desired.Capture, of []netip.Addr) []netip.Addr { return of[:1] }},
		Room:   Capacity{Places: 4, Slots: 5, Nodes: 1}, Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: metrics,
	}, newMemory())
	if err != nil {
		t.Fatal(err)
	}
	listed := func(number uint32, ports ...uint16) *desired.Policy {
		r := &desired.Policy{Name: fmt.Sprintf("BalancingPolicy/%d", number), Number: number, EveryNode: true, Mode: desired.ToAddresses, Probe: desired.Probe{Type: "TCP"}}
		for i := range 2 {
			r.Backends = append(r.Backends, desired.PolicyBackend{Address: netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), Ready: true})
		}
		for _, p := range ports {
			r.Captures = append(r.Captures, desired.Capture{Address: vip, Port: desired.Port{Protocol: TCP, Number: p}, Target: 80})
		}
		return r
	}
	for i, c := range []struct {
		redirects []*desired.Policy
		warnings  int
	}{{[]*desired.Policy{listed(1, 1)}, 0}, {[]*desired.Policy{listed(1, 1, 2, 3, 4)}, 1}, {[]*desired.Policy{listed(1, 1, 2, 3)}, 1}, {[]*desired.Policy{listed(1, 1, 2, 3, 4)}, 2}} {
		if err := s.apply(wanted{redirects: c.redirects}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), "about to be full"); got != c.warnings {
			t.Errorf("step %d: %d warnings of room, want %d: %s", i, got, c.warnings, log.String())
		}
	}
	s.clients = func() (map[string]Held, error) {
		return map[string]Held{"records": {Rows: 5, Room: 9, Rules: map[uint32]int{1: 3, 77: 2}}}, nil
	}
	s.countClients()
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP fairlead_sock_attached Whether the programs are where they shall be, as far as is known.
# TYPE fairlead_sock_attached gauge
fairlead_sock_attached 1
# HELP fairlead_sock_policy_backends Backends of a policy on this host: used, or resting for failed probes.
# TYPE fairlead_sock_policy_backends gauge
fairlead_sock_policy_backends{policy="BalancingPolicy/1",state="resting"} 1
fairlead_sock_policy_backends{policy="BalancingPolicy/1",state="used"} 1
# HELP fairlead_sock_policy_sockets Sockets that got to a backend of a policy on this host.
# TYPE fairlead_sock_policy_sockets gauge
fairlead_sock_policy_sockets{policy="BalancingPolicy/1"} 3
`), "fairlead_sock_attached", "fairlead_sock_policy_backends", "fairlead_sock_policy_sockets"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(metrics, "fairlead_sock_compared_timestamp_seconds"); err != nil || n != 1 {
		t.Errorf("the time of the comparison: %d, %v", n, err)
	}
}

func held(services ...*desired.Service) (out []desired.Source) {
	for _, s := range services {
		out = append(out, desired.Held{Is: s})
	}
	return out
}
