// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// checkOutside holds what a host is told to the record, said in other words than the code: what nodes are told, without what is about
// nodes, pods and traffic policies, and of that only what programs of the host get to.
func checkOutside(t *rapid.T, s desired.State, v *fsm.View) {
	services := map[string]desired.Service{}
	for name, want := range expectedServices(v) {
		want.Local, want.InternalLocal, want.HealthCheckNodePort, want.SourceRanges = false, false, 0, nil
		for i := range want.Endpoints {
			want.Endpoints[i].Node = ""
		}
		services[name] = want
	}
	if have := fmt.Sprint(toldServices(s)); have != fmt.Sprint(services) {
		t.Fatalf("services\n%s\nwant\n%s", have, fmt.Sprint(services))
	}
	policies, told := map[string]desired.Policy{}, map[string]desired.Policy{}
	for name, want := range expectedPolicies(v) {
		if want.Outside && want.Mode != "local" {
			want.Nodes, want.EveryNode, want.SpareOwn = nil, false, false
			for i := range want.Backends {
				want.Backends[i].Node, want.Backends[i].UID = "", ""
			}
			policies[name] = want
		}
	}
	for _, r := range s.Policies() {
		told[r.Name] = *r
	}
	if have, want := fmt.Sprint(told), fmt.Sprint(policies); have != want {
		t.Fatalf("policies\n%s\nwant\n%s", have, want)
	}
	nodes := 0
	for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
		if len(n.Addresses)+len(n.Others) > 0 {
			nodes++
		}
	}
	if s.AddressCount() != 0 || s.Config != nil || s.Zone != "" || s.Leaving || s.Len() != len(services)+len(policies)+nodes+checkTunnelsOutside(t, s, v) {
		t.Fatalf("%d items besides, of them %d addresses; configuration %v", s.Len(), s.AddressCount(), s.Config)
	}
	s.Digest = desired.Digest{} // sums are by chance what they are
	data, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	data = data[sha256.Size:]
	for _, secret := range []string{"\x02n1", "\x02n2", "\x03nn1", "\x03nn2", "\x04ns/p", "thn1", "thn2", "outside/", "edge"} { // strings on the wire, with their lengths
		if strings.Contains(string(data), secret) {
			t.Fatalf("it is told the name %q", secret)
		}
	}
}

// checkTunnelsOutside: a host is told where nodes' tunnels end, without their names, and its own, and nothing of other hosts outside. It gives
// how many items that is.
func checkTunnelsOutside(t *rapid.T, s desired.State, v *fsm.View) int {
	g := v.Group().Tunnels
	var want, have []string
	own := ""
	for _, r := range fsm.List[*fsm.Tunnel](v, fsm.TableTunnels) {
		if r.Leaving || !g.On() {
			continue
		}
		text := fmt.Sprint(r.Underlay, r.Number, g.Addresses(r.Number))
		switch r.Host {
		case "n1", "n2":
			want = append(want, text)
		case "outside/n1":
			own = text
		}
	}
	for _, h := range s.TunnelHosts() {
		have = append(have, fmt.Sprint(h.Underlay, h.Number, h.Addresses))
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) || (s.Tunnels != nil) != g.On() {
		t.Fatalf("it is told tunnels %v by %+v, not %v", have, s.Tunnels, want)
	}
	told := ""
	if s.Tunnels != nil && s.Tunnels.Own != nil {
		told = fmt.Sprint(s.Tunnels.Own.Underlay, s.Tunnels.Own.Number, s.Tunnels.Own.Addresses)
	}
	if told != own {
		t.Fatalf("its own is %q, not %q", told, own)
	}
	return len(want)
}

// drawTunnel draws what becomes of tunnels of nodes, of the host that is looked at, and of another one.
func drawTunnel(t *rapid.T) fsm.Command {
	id := rapid.SampledFrom([]fsm.TunnelID{"n1", "n2", "outside/n1", "outside/edge"}).Draw(t, "end")
	switch rapid.IntRange(0, 5).Draw(t, "of tunnels") {
	case 0:
		return &fsm.SetTunnels{}
	case 1:
		return &fsm.SetTunnels{Settings: fsm.TunnelSettings{
			Range4: netip.MustParsePrefix("10.250.0.0/24"), Port: 7446, VNI: 7446, MTU: uint32(rapid.SampledFrom([]int{0, 1400}).Draw(t, "mtu")),
		}}
	case 2:
		return &fsm.ReleaseTunnel{Host: id}
	case 3:
		return &fsm.FreeTunnel{Host: id}
	}
	return &fsm.PutTunnel{Host: id, Underlay: netip.AddrFrom4([4]byte{198, 51, 100, byte(rapid.IntRange(1, 5).Draw(t, "underlay"))})}
}

// Balancing §15: hosts that follow, lag, come back, are the first or the last of the group, all end with what a fresh one gets, and that is no more than
// what their programs get to.
// Rule: balancing §15.
func TestPropertyHostsAreToldWhatTheirProgramsGetTo(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		g := grouptest.NewGroup(t)
		boards := []*board{newBoard(g), newBoard(g)}
		for _, b := range boards {
			b.limit = ringLimit{steps: rapid.IntRange(0, 6).Draw(t, "ring"), bytes: 1 << 20}
			refresh(t, b)
		}
		host := func() *agent { return &agent{outside: true} }
		followers := []*agent{host(), host()}
		g.Apply(t, &fsm.SetTunnels{Settings: fsm.TunnelSettings{Range4: netip.MustParsePrefix("10.250.0.0/24"), Port: 7446, VNI: 7446}})
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 8).Draw(t, "event") {
			case 7, 8:
				if _, err := g.Commit(fsm.Proposal{Command: drawTunnel(t)}); err != nil {
					t.Fatal(err)
				}
			case 0, 1, 2:
				if _, err := g.Commit(fsm.Proposal{Command: drawCommand(t, g)}); err != nil {
					t.Fatal(err)
				}
			case 3:
				refresh(t, boards[rapid.IntRange(0, 1).Draw(t, "board")])
			case 4:
				var c fsm.Command = &fsm.RegisterHost{ID: "edge", Admit: true}
				if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
					c = &fsm.RemoveHost{ID: "edge"}
				}
				if _, err := g.Commit(fsm.Proposal{Command: c}); err != nil {
					t.Fatal(err)
				}
			default:
				f, b := followers[rapid.IntRange(0, 1).Draw(t, "follower")], boards[rapid.IntRange(0, 1).Draw(t, "to")]
				if f.on == nil || rapid.Bool().Draw(t, "reconnect") {
					refresh(t, b)
					f.connect(b)
				}
				f.pull(t)
			}
		}
		g.Apply(t, &fsm.RegisterHost{ID: "edge", Admit: true})
		for _, b := range boards {
			refresh(t, b)
			fresh := host()
			fresh.connect(b)
			fresh.pull(t)
			checkOutside(t, fresh.steps.State, g.Read())
			for _, f := range followers {
				if f.on == b {
					if f.pull(t); !sameState(t, f.steps.State, fresh.steps.State) {
						t.Fatalf("followed %+v\nfresh    %+v", f.steps.State, fresh.steps.State)
					}
				}
			}
		}
	})
}

// outsiders serves s and gives the API as the agents of two reach it that are called alike, a host's and a node's.
func outsiders(t *testing.T, s *Service) (host, node fairleadv1connect.AgentServiceClient) {
	t.Helper()
	w := grouptest.NewWorld(t)
	api := w.Serve(t, "m1", func(opts ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewAgentServiceHandler(s, opts...)
	})
	return w.Client(t, pki.Host, "n1", api.Address).Agent, w.Client(t, pki.Agent, "n1", api.Address).Agent
}

// Balancing §15: a host says nothing in the name of a node, not even of one that is called as it is: it carries nothing out for it, does not
// keep it alive, ends no stream of its, and gets no leases and routes to announce.
// Rule: balancing §15.
func TestHostsSpeakForNoNode(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t, 1)
	g.Apply(t, &fsm.PutNode{ID: "n1"}, &fsm.PutNode{ID: "n2"}, &fsm.RegisterHost{ID: "n1", Admit: true})
	s := newService(t, g)
	s.reports.o.Tuning.Note = s.o.Tuning.Look
	runs(t, s)
	host, node := outsiders(t, s)
	ofNode, ofHost := open(t, node, "b1", nil), open(t, host, "b2", nil)
	seen := desired.RevisionOf(ofHost.Msg().GetRevision())
	if _, err := host.Acknowledge(t.Context(), &fairleadv1.AcknowledgeRequest{Node: "n1", Boot: "b2", Revision: desired.RevisionMessage(seen)}); err != nil {
		t.Fatal(err)
	}
	if _, err := grouptest.Beat(t.Context(), host, &fairleadv1.HeartbeatRequest{Node: "n1", Boot: "b2"}); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "it is noted for the host", func() bool {
		h, _ := fsm.Get[*fsm.Host](g.Read(), fsm.TableHosts, "n1")
		return h.Boot == "b2" && h.Acknowledged == seen
	})
	if n, _ := fsm.Get[*fsm.Node](g.Read(), fsm.TableNodes, "n1"); n.Boot != "b1" || !n.Acknowledged.IsZero() {
		t.Errorf("node %s runs under %s and acknowledged %s", n.ID, n.Boot, n.Acknowledged)
	}
	if list, _ := s.Beats(); len(list) > 0 {
		t.Errorf("nodes are alive by it: %+v", list)
	}
	g.Apply(t, &fsm.PutNode{ID: "n1", Zone: "z1"})
	if !ofNode.Receive() {
		t.Errorf("the node's stream ended: %v", ofNode.Err())
	}
	for name, call := range map[string]func() error{
		"acknowledge for another": func() error {
			_, err := host.Acknowledge(t.Context(), &fairleadv1.AcknowledgeRequest{Node: "n2", Boot: "b2", Revision: desired.RevisionMessage(seen)})
			return err
		},
		"another's slice": func() error {
			stream, err := host.Sync(t.Context(), &fairleadv1.SyncRequest{Node: "n2", Boot: "b2"})
			if err == nil {
				stream.Receive()
				err = errors.Join(stream.Err(), stream.Close())
			}
			return err
		},
		"leases": func() error {
			_, err := host.RenewLeases(t.Context(), &fairleadv1.RenewLeasesRequest{Node: "n1", Boot: "b2"})
			return err
		},
		"routes": func() error {
			stream, err := host.Announcements(t.Context(), &fairleadv1.AnnouncementsRequest{Node: "n1", Boot: "b2"})
			if err == nil {
				stream.Receive()
				err = errors.Join(stream.Err(), stream.Close())
			}
			return err
		},
		"a speaker": func() error {
			_, err := host.ReportSpeaker(t.Context(), &fairleadv1.ReportSpeakerRequest{Node: "n1", Boot: "b2", Speaks: true})
			return err
		},
	} {
		if err := call(); !errors.Is(err, admin.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A host that the group took out is told nothing from that moment on, whatever certificate it has; one that never was in is not, either.
// Rule: balancing §15.
func TestHostsThatAreTakenOutAreToldNothing(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t, 1)
	s := newService(t, g)
	runs(t, s)
	host, _ := outsiders(t, s)
	refused := func(when string) {
		t.Helper()
		stream, err := host.Sync(t.Context(), &fairleadv1.SyncRequest{Node: "n1", Boot: "b2"})
		if err != nil {
			t.Fatal(err)
		}
		if stream.Receive() || !errors.Is(stream.Err(), admin.Forbidden) {
			t.Errorf("%s it is served: %v", when, stream.Err())
		}
		_ = stream.Close()
		_, err = host.Acknowledge(t.Context(), &fairleadv1.AcknowledgeRequest{Node: "n1", Boot: "b2", Revision: desired.RevisionMessage(g.Read().Revision())})
		if !errors.Is(err, admin.Forbidden) {
			t.Errorf("%s it acknowledges: %v", when, err)
		}
		if _, err := grouptest.Beat(t.Context(), host, &fairleadv1.HeartbeatRequest{Node: "n1", Boot: "b2"}); !errors.Is(err, admin.Forbidden) {
			t.Errorf("%s its heartbeats are answered: %v", when, err)
		}
	}
	refused("before")
	g.Apply(t, &fsm.RegisterHost{ID: "n1", Admit: true})
	stream := open(t, host, "b2", nil)
	g.Apply(t, &fsm.RemoveHost{ID: "n1"})
	giveUp := time.AfterFunc(grouptest.Patience, func() { _ = stream.Close() })
	defer giveUp.Stop()
	for stream.Receive() {
	}
	if !errors.Is(stream.Err(), admin.Forbidden) {
		t.Errorf("the stream ended with %v", stream.Err())
	}
	refused("afterwards")
}

// Balancing §13.1: whether a host makes tunnels is what it said last. It is told its own at once, and acknowledges a tunnel of a node that goes, so that the
// node's number is free again.
// Rule: balancing §13.
func TestHostsOutsideHaveTunnels(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t, 1)
	g.Apply(t, &fsm.RegisterHost{ID: "n1", Admit: true}, &fsm.SetTunnels{Settings: fsm.TunnelSettings{Range4: netip.MustParsePrefix("10.250.0.0/24"), Port: 7446, VNI: 7446}},
		&fsm.PutTunnel{Host: "n2", Underlay: netip.MustParseAddr("198.51.100.2")})
	s := newService(t, g)
	s.reports.o.Tuning.Note = s.o.Tuning.Look
	runs(t, s)
	host, _ := outsiders(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 2*grouptest.Patience)
	defer cancel()
	stream, err := host.Sync(ctx, &fairleadv1.SyncRequest{Node: "n1", Boot: "b1", Tunnels: true})
	if err != nil {
		t.Fatal(err)
	}
	steps := desired.Steps{}
	next := func() desired.State {
		t.Helper()
		for stream.Receive() {
			whole, err := steps.Add(stream.Msg())
			if err != nil {
				t.Fatal(err)
			}
			if whole {
				return steps.State
			}
		}
		t.Fatal(stream.Err())
		return desired.State{}
	}
	says := func() {
		t.Helper()
		if _, err := host.Acknowledge(t.Context(), &fairleadv1.AcknowledgeRequest{Node: "n1", Boot: "b1", Revision: desired.RevisionMessage(steps.State.Revision)}); err != nil {
			t.Fatal(err)
		}
	}
	if first := next(); first.Tunnels == nil || first.Tunnels.Own != nil || len(first.TunnelHosts()) != 1 {
		t.Errorf("before it has a tunnel it is told %+v and %v", first.Tunnels, first.TunnelHosts())
	}
	if h, _ := fsm.Get[*fsm.Host](g.Read(), fsm.TableHosts, "n1"); !h.Tunnels {
		t.Error("the record does not know that it makes tunnels")
	}
	g.Apply(t, &fsm.PutTunnel{Host: fsm.HostTunnel("n1"), Underlay: netip.MustParseAddr("198.51.100.9")})
	if own := next().Tunnels.Own; own == nil || own.Number != 2 {
		t.Errorf("its own tunnel is %+v", own)
	}
	if _, ready := g.Read().TunnelOf(fsm.HostTunnel("n1")); ready {
		t.Error("it counts as ready before it said so")
	}
	says()
	testkit.Until(t, "it is ready", func() bool { _, ready := g.Read().TunnelOf(fsm.HostTunnel("n1")); return ready })
	_, err = g.Commit(fsm.Proposal{Command: &fsm.ReleaseTunnel{Host: "n2"}}, fsm.Proposal{Command: &fsm.PutTunnel{Host: "n2", Underlay: netip.MustParseAddr("198.51.100.2")}})
	if err != nil {
		t.Fatal(err)
	}
	next() // it went and came unseen, which is to be acknowledged all the same
	g.Apply(t, &fsm.ReleaseTunnel{Host: "n2"})
	n2, _ := fsm.Get[*fsm.Tunnel](g.Read(), fsm.TableTunnels, "n2")
	if holder := g.Read().Holder(n2); holder != "host n1" {
		t.Errorf("the tunnel of n2 is held by %q", holder)
	}
	if len(next().TunnelHosts()) != 0 {
		t.Error("it is still told of n2")
	}
	says()
	testkit.Until(t, "nobody holds it", func() bool { return g.Read().Holder(n2) == "" })
}

// Where a host is is what it said last, within bounds.
func TestHostsSayWhereTheyAre(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t, 1)
	g.Apply(t, &fsm.RegisterHost{ID: "n1", Admit: true})
	s := newService(t, g)
	runs(t, s)
	host, _ := outsiders(t, s)
	hello := func(addresses ...string) error {
		req := &fairleadv1.SyncRequest{Node: "n1", Boot: "b1"}
		for _, a := range addresses {
			req.Addresses = append(req.Addresses, netip.MustParseAddr(a).AsSlice())
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := host.Sync(ctx, req)
		if err != nil {
			return err
		}
		stream.Receive()
		return stream.Err()
	}
	for _, at := range [][]string{{"198.51.100.7"}, {"198.51.100.8", "2001:db8::8"}, nil} {
		if err := hello(at...); err != nil {
			t.Fatal(err)
		}
		if h, _ := fsm.Get[*fsm.Host](g.Read(), fsm.TableHosts, "n1"); fmt.Sprint(h.Addresses) != fmt.Sprint(at) {
			t.Errorf("it is at %v, want %v", h.Addresses, at)
		}
	}
	if err := hello(strings.Split(strings.Repeat("198.51.100.7 ", 17)[:17*13-1], " ")...); !errors.Is(err, admin.Invalid) {
		t.Errorf("17 addresses: %v", err)
	}
}

// Of two streams of one host the later one counts: the earlier one, which ends and may not have noticed yet, takes nothing back.
func TestEarlierStreamOfAHostTakesNothingBack(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t, 1)
	g.Apply(t, &fsm.RegisterHost{ID: "n1", Admit: true})
	s := newService(t, g)
	runs(t, s)
	said := func(at string) hostFacts { return hostFacts{boot: "b1", at: []netip.Addr{netip.MustParseAddr(at)}} }
	later := said("198.51.100.8")
	g.Apply(t, &fsm.RegisterHost{ID: "n1", Boot: "b1", Addresses: later.at})
	facts := said("198.51.100.7")
	earlier := &stream{s: s, node: "n1", boot: "b1", host: &facts, registered: true}
	if err := earlier.checkBoot(t.Context(), update{known: true, boot: "b1", facts: later}); !errors.Is(err, admin.NotReady) {
		t.Errorf("the earlier one ends with %v", err)
	}
	if h, _ := fsm.Get[*fsm.Host](g.Read(), fsm.TableHosts, "n1"); !factsOfHost(h).equal(later) {
		t.Errorf("it is at %v", h.Addresses)
	}
}
