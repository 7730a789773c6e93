// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/sock"
)

// redirectTo is a LocalRedirectPolicy at an address of its own, or of a Service.
func redirectTo(mode sock.Mode, protocol uint8, at netip.AddrPort, backends ...*server) *sock.Rule {
	f := front(protocol, at, backends...)
	f.At[0].Mode, f.Empty = mode, sock.Next
	return &sock.Rule{ID: 2, Kind: sock.LocalRedirect, Name: "dns", Fronts: []sock.Front{f}}
}

func countersOf(t *testing.T, p *Program, kind sock.Kind) map[string]uint64 {
	t.Helper()
	all, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	return all[kind]
}

// Balancing §11: beyond the limit a call to an address behind which nothing stands is refused and counted, not let out; one to an address of a Service
// that nobody here resolves goes there.
// Rule: balancing §11.
func TestBeyondTheLimitNothingIsLetOut(t *testing.T) {
	l := newLab(t)
	p := l.open()
	k := l.tables(p)
	if err := p.Set(Settings{IPv4: true, Limit: 1}); err != nil {
		t.Fatal(err)
	}
	local := serve(t, "tcp4", "127.0.0.1")
	calls := func(to netip.AddrPort) map[string]int {
		out := map[string]int{}
		for range 20 {
			switch r := l.client.do(call{Op: "connect", Net: "tcp4", To: to}); {
			case r.Errno != 0:
				out[r.Errno.Error()]++
			default:
				out[r.Said]++
			}
		}
		return out
	}
	for mode, as := range map[sock.Mode]string{sock.LocalRedirectAddress: "refused", sock.LocalRedirectService: "passed"} {
		there := serve(t, "tcp4", "127.0.9.9") // what the address leads to without a rule
		beyond := there.at.String()
		if mode == sock.LocalRedirectAddress {
			beyond = refusal(syscall.ECONNREFUSED).Error()
		}
		k.hold(sock.Want{Rules: []*sock.Rule{redirectTo(mode, sock.TCP, there.at, local)}})
		before, start := countersOf(t, p, sock.LocalRedirect), time.Now()
		said := calls(there.at)
		most := int(time.Since(start)/time.Second) + 2
		if n := said[local.at.String()]; n < 1 || n > most || said[beyond] != 20-n {
			t.Errorf("%s: answers %v, want 1 to %d of %s, and %s", mode, said, most, local.at, beyond)
		}
		after := countersOf(t, p, sock.LocalRedirect)
		if n := uint64(said[beyond]); after["spent"]-before["spent"] != n || after[as]-before[as] != n {
			t.Errorf("%s: %d beyond the limit, counted %v, before %v", mode, said[beyond], after, before)
		}
	}
}

// Balancing §11: 0 is no limit; and a redirect without a backend spends nothing.
// Rule: balancing §11.
func TestOnlyRedirectedCallsAreCounted(t *testing.T) {
	l := newLab(t)
	p := l.open()
	k := l.tables(p)
	local, remote := serve(t, "tcp4", "127.0.0.1"), serve(t, "tcp4", "127.0.0.1")
	behind := service(1, front(sock.TCP, vip4, remote))
	said := func(n int) map[string]int {
		out := map[string]int{}
		for range n {
			out[l.client.do(call{Op: "connect", Net: "tcp4", To: vip4}).Said]++
		}
		return out
	}
	k.hold(sock.Want{Rules: []*sock.Rule{behind, redirectTo(sock.LocalRedirectService, sock.TCP, vip4, local)}})
	if got := said(20); got[local.at.String()] != 20 {
		t.Errorf("without a limit: %v, want %s alone", got, local.at)
	}
	if err := p.Set(Settings{IPv4: true, Limit: 1}); err != nil {
		t.Fatal(err)
	}
	k.hold(sock.Want{Rules: []*sock.Rule{behind, redirectTo(sock.LocalRedirectService, sock.TCP, vip4)}})
	if got := said(20); got[remote.at.String()] != 20 {
		t.Errorf("without a backend: %v, want %s alone", got, remote.at)
	}
	if c := countersOf(t, p, sock.LocalRedirect); c["spent"] != 0 {
		t.Errorf("without a backend the limit was reached: %v", c)
	}
}

// Balancing §11: processors that count at once do not exceed the limit together.
// Rule: balancing §11.
func TestProcessorsShareTheLimit(t *testing.T) {
	l := newLab(t)
	p := l.open()
	local, remote := serve(t, "udp4", "127.0.0.1"), serve(t, "udp4", "127.0.0.1")
	l.tables(p).hold(sock.Want{Rules: []*sock.Rule{service(1, front(sock.UDP, vip4, remote)), redirectTo(sock.LocalRedirectService, sock.UDP, vip4, local)}})
	const limit = 100
	if err := p.Set(Settings{IPv4: true, Limit: limit}); err != nil {
		t.Fatal(err)
	}
	clients := []*client{l.client, l.newClient(), l.newClient(), l.newClient()}
	start := time.Now()
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			if r := c.do(call{Op: "hammer", To: vip4}); r.Error != "" {
				t.Error(r.Error)
			}
		})
	}
	all.Wait()
	c := countersOf(t, p, sock.LocalRedirect)
	most := uint64(time.Since(start)/time.Second+2) * limit
	if c["resolved"] < limit || c["resolved"] > most || c["resolved"]+c["spent"] != uint64(2000*len(clients)) {
		t.Errorf("%d calls were redirected and %d were not, want %d to %d", c["resolved"], c["spent"], limit, most)
	}
	var last sockWindow
	if err := p.maps.Windows.Lookup(encodePlace(sock.Place{Address: vip4.Addr(), Port: vip4.Port(), Protocol: sock.UDP}), &last); err != nil || last.Taken > limit {
		t.Errorf("in the last second %d were taken (%v)", last.Taken, err)
	}
}
