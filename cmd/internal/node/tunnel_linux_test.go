// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// meshed gives nodes n1, which the agent is, n2 and n3 tunnels in the record.
func (w *world) meshed(t *testing.T) {
	t.Helper()
	w.group.Apply(t, &fsm.SetTunnels{Settings: fsm.TunnelSettings{Range4: netip.MustParsePrefix("10.250.0.0/24"), Port: 7446, VNI: 7446}})
	for n := 1; n <= 3; n++ {
		w.joins(t, n)
	}
}

func (w *world) joins(t *testing.T, n int) {
	t.Helper()
	at := netip.AddrFrom4([4]byte{198, 51, 100, byte(n)})
	w.group.Apply(t, &fsm.PutNode{ID: fsm.NodeID(fmt.Sprint("n", n)), Addresses: []netip.Addr{at}}, &fsm.PutTunnel{Host: fsm.TunnelID(fmt.Sprint("n", n)), Underlay: at})
}

// resolver stands for programs at sockets: it notes what ways to other hosts the kernel has when it is told where calls go.
type resolver struct {
	in   *netnstest.Namespace
	mu   sync.Mutex
	told []moment
}

// moment is a state that was told, and tunnel addresses of other hosts in it and in the kernel then.
type moment struct{ want, have string }

func (r *resolver) Apply(_ context.Context, s desired.State) ([]agent.Failure, error) {
	var m moment
	for _, h := range s.TunnelHosts() {
		if h.Name != "n1" {
			m.want += h.Addresses[0].String() + " "
		}
	}
	m.have = ways(r.in)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, m)
	return nil, nil
}

func (r *resolver) Run(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func (r *resolver) Close() {}

// last is the newest moment.
func (r *resolver) last() (m moment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.told) > 0 {
		m = r.told[len(r.told)-1]
	}
	return m
}

// ways are the tunnel addresses of other hosts that a kernel knows.
func ways(in *netnstest.Namespace) (out string) {
	text, _ := in.Try("ip", "neighbour", "show", "dev", "fairlead-tun", "nud", "permanent") // which is not always there
	for n := range 10 {
		if a := fmt.Sprintf("10.250.0.%d ", n); strings.Contains(text, a) {
			out += a
		}
	}
	return out
}

// Balancing §13.2: when sockets are told where calls go, the ways to hosts that came are in the kernel already, and those to hosts that left are
// still there; they go afterwards. Where there can be no tunnel sockets are told all the same, and the node says that its own address failed.
// Rule: balancing §13.
func TestWaysAreThereBeforeSocketsAreLedByThem(t *testing.T) {
	t.Parallel()
	m, w := newMachine(t), newWorld(t)
	w.meshed(t)
	r := &resolver{in: m.Namespace}
	e := machine.Agent()
	e.Probing = nil
	e.Sock = func(config.Agent, *slog.Logger, prometheus.Registerer) (node.Resolving, error) { return r, nil }
	c := w.config(t)
	c.Sock, c.Tunnel, c.Namespace, c.DrainDelay = &config.Sock{}, &config.Tunnel{}, m.FD(), 0
	m.Run("ip", "link", "add", "fairlead-tun", "type", "bridge") // somebody else's
	p := startOver(t, c, e, quiet)
	const two, three, four = "10.250.0.2 10.250.0.3 ", "10.250.0.2 10.250.0.3 10.250.0.4 ", "10.250.0.2 10.250.0.4 "
	wants := func(when, want, have string) {
		t.Helper()
		testkit.Until(t, when, func() bool { return r.last().want == want })
		if got := r.last().have; got != have {
			t.Errorf("%s: sockets are told of %s, and the kernel knows %s, not %s", when, want, got, have)
		}
	}
	wants("without a tunnel", two, "")
	testkit.Until(t, "the node says so", func() bool {
		s := p.Status()
		return !s.Acknowledged.IsZero() && len(s.Failed) == 1 && s.Failed[0].Prefix.Addr() == netip.MustParseAddr("10.250.0.1")
	})
	testkit.Until(t, "and nobody is led to it", func() bool {
		_, ready := w.group.Read().TunnelOf("n1")
		n, _ := fsm.Get[*fsm.Node](w.group.Read(), fsm.TableNodes, "n1")
		return !ready && len(n.Failed) == 1
	})
	m.Run("ip", "link", "delete", "fairlead-tun")
	testkit.Until(t, "a tunnel of its own", func() bool { return ways(m.Namespace) == two })
	w.joins(t, 4)
	wants("another host", three, three)
	w.group.Apply(t, &fsm.ReleaseTunnel{Host: "n3"})
	wants("a host less", four, three)
	testkit.Until(t, "the way goes", func() bool { return ways(m.Namespace) == four })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
}

// Balancing §13, S11: an agent whose configuration has no tunnel any more tells the group so, and removes what an earlier one left: not before a
// member took that in, and nothing of others'.
// Rule: balancing §13.
func TestTunnelThatIsNotConfiguredAnyMoreGoes(t *testing.T) {
	t.Parallel()
	m, w := newMachine(t), newWorld(t)
	w.meshed(t)
	c := w.config(t)
	c.Tunnel, c.Namespace, c.DrainDelay = &config.Tunnel{}, m.FD(), 0
	m.Run("nft", "add", "table", "inet", "others")
	m.Run("ip", "link", "add", "others-tun", "type", "vxlan", "id", "7447", "dstport", "7447", "local", "198.51.100.1")
	links := func() (out string) {
		for _, name := range []string{"others-tun", "fairlead-tun"} {
			if _, err := m.Try("ip", "link", "show", name); err == nil {
				out += name + " "
			}
		}
		return out + strings.Join(strings.Fields(m.Run("nft", "list", "tables")), " ")
	}
	before := links()
	makes := func() bool {
		n, _ := fsm.Get[*fsm.Node](w.group.Read(), fsm.TableNodes, "n1")
		return n.Tunnels
	}
	p := start(t, c)
	testkit.Until(t, "a tunnel", func() bool { return makes() && ways(m.Namespace) == "10.250.0.2 10.250.0.3 " })
	testkit.Until(t, "proxy ports", func() bool { return strings.Contains(links(), "inet "+node.ProxyTable) })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	had := links()
	w.api.Stop()
	c.Tunnel = nil
	again := start(t, c)
	testkit.Until(t, "what was told last is carried out", func() bool { return !again.Status().Applied.IsZero() })
	if got := links(); got != had || !makes() {
		t.Errorf("while no member is there: %s, before %s", got, had)
	}
	w.api = w.serve(w.api.Address, "m1")
	testkit.Until(t, "it is gone", func() bool { return links() == before && !makes() })
	if err := again.stop(); err != nil {
		t.Fatal(err)
	}
}
