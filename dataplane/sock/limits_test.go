// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"net/netip"
	"testing"
)

// defaultRoom is that of tables whose sizes nobody configured.
var defaultRoom = Capacity{Places: 65536, Slots: 262144, Nodes: 65536}

// address is the i-th of a /8.
func address(first byte, i int) netip.Addr {
	return netip.AddrFrom4([4]byte{first, byte(i >> 16), byte(i >> 8), byte(i)})
}

// numbered is rule i: a place of its own over TCP, and so many backends out of all that there are.
func numbered(kind Kind, mode Mode, i, backends, all int) *Rule {
	f := Front{Protocol: TCP, At: []At{{address(172, i), 80, mode}}, Empty: Refuse}
	for k := range backends {
		f.Backends = append(f.Backends, Backend{At: netip.AddrPortFrom(address(10, (i*backends+k)%all), 8080)})
	}
	return &Rule{ID: uint32(i + 1), Kind: kind, Fronts: []Front{f}}
}

// lead carries a step out, and gives how many rows it wrote.
func lead(t *testing.T, p *Planner, rows Rows, want Want) (writes int) {
	t.Helper()
	for _, c := range p.Step(want) {
		rows.Apply(c)
		writes += c.Writes()
	}
	if problems := p.Problems(); len(problems) > 0 {
		t.Fatalf("%d rules have no room, the first: %s", len(problems), problems[0].Why)
	}
	return writes
}

// getTo fails the test unless a call to the place of a rule gets to that backend, wherever it is among those drawn from.
func getTo(t *testing.T, rows Rows, r *Rule, backend int) {
	t.Helper()
	f := r.Fronts[0]
	to := Place{Address: f.At[0].Address, Port: 80, Protocol: TCP}
	for draw := range len(f.Backends) {
		a := rows.Resolve(Call{To: to, Draw: uint32(draw)})
		if a.Verdict != Use || a.Choice.Rule != r.ID {
			t.Fatalf("a call to %v: %+v", to, a)
		}
		if a.Backend == f.Backends[backend].At {
			return
		}
	}
	t.Fatalf("no call to %v gets to %s", to, f.Backends[backend].At)
}

// Balancing §23: tables of the default sizes hold 65,535 policies of four backends, and another policy in the place of one writes that one's rows.
// Rule: balancing §23.
func TestSixtyFiveThousandPolicies(t *testing.T) {
	const policies, backends = 65535, 4
	want := Want{Rules: make([]*Rule, policies)}
	for i := range want.Rules {
		want.Rules[i] = numbered(Balancing, BalancingAddress, i, backends, 1<<18)
	}
	p, rows := NewPlanner(defaultRoom), NewRows()
	lead(t, p, rows, want)
	if len(rows.Places) != policies || len(rows.Slots) != policies*backends {
		t.Fatalf("%d places and %d slots", len(rows.Places), len(rows.Slots))
	}
	for i := 0; i < policies; i += 4099 {
		getTo(t, rows, want.Rules[i], i%backends)
	}
	want.Rules[17] = numbered(Balancing, BalancingAddress, 17, 3, 1<<18)
	if writes := lead(t, p, rows, want); writes > 2*backends+1 {
		t.Errorf("one policy of %d writes %d rows", policies, writes)
	}
	getTo(t, rows, want.Rules[17], 2)
}

// Balancing §23: a rule has 10,000 backends, each of which is got to, and one more is no burden to others.
// Rule: balancing §23.
func TestTenThousandBackends(t *testing.T) {
	const backends = 10_000
	large := numbered(Balancing, BalancingAddress, 0, backends, backends)
	want := Want{Rules: []*Rule{large, numbered(Service, ServiceClusterIP, 1, 3, backends)}}
	p, rows := NewPlanner(defaultRoom), NewRows()
	lead(t, p, rows, want)
	got := map[netip.AddrPort]bool{}
	for draw := range backends {
		got[rows.Resolve(Call{To: Place{Address: address(172, 0), Port: 80, Protocol: TCP}, Draw: uint32(draw)}).Backend] = true
	}
	if len(got) != backends {
		t.Errorf("calls get to %d backends", len(got))
	}
	want.Rules[1] = numbered(Service, ServiceClusterIP, 1, 4, backends)
	if writes := lead(t, p, rows, want); writes > 3+1+4 {
		t.Errorf("a Service beside it writes %d rows", writes)
	}
}

// Balancing §24, row 17: of 5,000 Services with 100 endpoints each one endpoint more writes the rows of its Service alone.
// Rule: balancing §24.
func TestFiveThousandServicesOfAHundredEndpoints(t *testing.T) {
	const services, endpoints = 5000, 100
	want := Want{Rules: make([]*Rule, services)}
	for i := range want.Rules {
		want.Rules[i] = numbered(Service, ServiceClusterIP, i, endpoints, 500_000)
	}
	p, rows := NewPlanner(Capacity{Places: 65536, Slots: 1 << 20, Nodes: 16}), NewRows()
	lead(t, p, rows, want)
	if len(rows.Places) != services || len(rows.Slots) != services*endpoints {
		t.Fatalf("%d places and %d slots", len(rows.Places), len(rows.Slots))
	}
	for i := 0; i < services; i += 499 {
		getTo(t, rows, want.Rules[i], i%endpoints)
	}
	want.Rules[4711] = numbered(Service, ServiceClusterIP, 4711, endpoints+1, 500_000)
	if writes := lead(t, p, rows, want); writes > endpoints+1+endpoints+1 {
		t.Errorf("one endpoint writes %d rows", writes)
	}
	getTo(t, rows, want.Rules[4711], endpoints)
}
