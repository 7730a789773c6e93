// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/internal/testkit"
)

// Balancing §16: the kernel does not run programs of these hooks by BPF_PROG_TEST_RUN; that is why what they do is compared with a
// model call by call (TestPropertyKernelAnswersAsTheModel), by what is on the wire. Where a kernel can, this test says so.
// Rule: balancing §16.
func TestProgramsCannotBeRunAlone(t *testing.T) {
	l := newLab(t)
	p := l.open()
	var programs sockPrograms
	if err := p.spec.LoadAndAssign(&programs, &ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: p.folder}}); err != nil {
		t.Fatal(err)
	}
	defer programs.Close()
	_, err := programs.Connect4.Run(&ebpf.RunOptions{Context: make([]byte, 72)})
	if !errors.Is(err, ebpf.ErrNotSupported) {
		t.Errorf("connect4 was run alone (%v): compare it with the model that way, too", err)
	}
}

var (
	oracleIPs = map[bool][]netip.Addr{
		true:  {netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("10.96.0.2")},
		false: {netip.MustParseAddr("2001:db8:96::1"), netip.MustParseAddr("2001:db8:96::2")},
	}
	oraclePorts = []uint16{53, 53, 53, 80} // most calls meet
)

func drawOracleRule(t *rapid.T, id uint32) *sock.Rule {
	kind := rapid.SampledFrom([]sock.Kind{sock.LocalRedirect, sock.Balancing, sock.Service, sock.Service}).Draw(t, "kind")
	r := &sock.Rule{ID: id, Kind: kind, Name: fmt.Sprint("r", id), SparesBackends: kind != sock.Service && rapid.Bool().Draw(t, "spares")}
	seen := map[sock.At]bool{}
	for range rapid.IntRange(1, 3).Draw(t, "fronts") {
		v4 := rapid.Bool().Draw(t, "v4")
		addresses := slices.Clone(oracleIPs[v4])
		if kind == sock.Service {
			addresses = append(addresses, map[bool]netip.Addr{true: sock.AnyNode4, false: sock.AnyNode6}[v4])
		}
		f := sock.Front{
			Protocol: rapid.SampledFrom([]uint8{sock.TCP, sock.UDP}).Draw(t, "protocol"),
			Affinity: rapid.SampledFrom([]time.Duration{0, 24 * time.Hour, 24 * time.Hour}).Draw(t, "affinity"),
			Empty: rapid.SampledFrom(map[sock.Kind][]sock.Verdict{
				sock.LocalRedirect: {sock.Next}, sock.Balancing: {sock.Refuse, sock.Next}, sock.Service: {sock.Refuse, sock.Unreachable, sock.Pass},
			}[kind]).Draw(t, "empty"),
		}
		at := sock.At{
			Address: rapid.SampledFrom(addresses).Draw(t, "address"), Port: rapid.SampledFrom(oraclePorts).Draw(t, "port"), Mode: sock.ServiceClusterIP,
		}
		if kind == sock.LocalRedirect {
			at.Mode = rapid.SampledFrom([]sock.Mode{sock.LocalRedirectService, sock.LocalRedirectAddress}).Draw(t, "mode")
		}
		once := at
		if once.Mode = sock.Mode(f.Protocol); seen[once] {
			continue
		}
		seen[once] = true
		f.At = []sock.At{at}
		for _, n := range rapid.SliceOfNDistinct(rapid.ByteRange(1, 4), 0, 4, rapid.ID).Draw(t, "backends") {
			a := netip.AddrFrom4([4]byte{10, 1, 0, n})
			if !v4 {
				a = netip.AddrFrom16([16]byte{0xfd, 15: n})
			}
			f.Backends = append(f.Backends, sock.Backend{At: netip.AddrPortFrom(a, 8080)})
		}
		r.Fronts = append(r.Fronts, f)
	}
	return r
}

// remembers is what the model keeps of clients: which backend each had last. The key is of one client, or of one of its sockets.
type remembers map[string]netip.AddrPort

// oracle knows what becomes of calls, given rows: the model of the lookup, and what programs keep from call to call.
type oracle struct {
	rows     sock.Rows
	settings Settings
	own      map[uint32]bool // rules that spare the client of this name
	memory   remembers
	windows  map[sock.Place]sockWindow
}

// may are the answers that a call may get: where its packet goes, or the error. It is nil if the clock says nothing certain.
func (o *oracle) may(c call, client string, second uint64) (to []netip.AddrPort, errno syscall.Errno, keep func(netip.AddrPort)) {
	keep = func(netip.AddrPort) {}
	protocol := uint8(sock.TCP)
	if strings.HasPrefix(c.Net, "udp") {
		protocol = sock.UDP
	}
	at := sock.Place{Address: c.To.Addr(), Port: c.To.Port(), Protocol: protocol}
	if c.To.Addr().Is4() && !o.settings.IPv4 || c.To.Addr().Is6() && !o.settings.IPv6 {
		return []netip.AddrPort{c.To}, 0, keep
	}
	one := sock.Call{To: at}
	row := o.rows.Places[at]
	one.Own = client == "backend" && o.own[row.First.Rule]
	if row.First.Limited && !(row.First.Spares && one.Own) && o.settings.Limit > 0 {
		w := o.windows[at]
		if w.Second != second {
			w = sockWindow{Second: second}
		}
		if one.Spent = w.Taken >= o.settings.Limit; !one.Spent {
			w.Taken++
		}
		o.windows[at] = w
	}
	answer := o.rows.Resolve(one)
	switch answer.Verdict {
	case sock.Pass:
		return []netip.AddrPort{c.To}, 0, keep
	case sock.Refuse:
		return nil, refusal(syscall.ECONNREFUSED), keep
	case sock.Unreachable:
		return nil, refusal(syscall.EHOSTUNREACH), keep
	}
	choice := answer.Choice
	for draw := range choice.Count {
		one.Draw = draw
		to = append(to, o.rows.Resolve(one).Backend)
	}
	byClient, bySocket := fmt.Sprint(client, at, choice.Rule), fmt.Sprint(client, c.Net, c.Slot, at, choice.Rule)
	keep = func(got netip.AddrPort) {
		if choice.Affinity > 0 {
			o.memory[byClient] = got
		}
		if c.Slot > 0 {
			o.memory[bySocket] = got
		}
	}
	if had, ok := o.memory[bySocket]; ok && c.Slot > 0 && slices.Contains(to, had) {
		// The flow goes on; who its client is kept at is not looked at.
		return []netip.AddrPort{had}, 0, func(netip.AddrPort) {}
	}
	if had, ok := o.memory[byClient]; ok && choice.Affinity > 0 && slices.Contains(to, had) {
		return []netip.AddrPort{had}, 0, keep
	}
	return to, 0, keep
}

func monotonicSecond(t *rapid.T) uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return uint64(now.Sec)
}

func drawOracleCall(t *rapid.T) call {
	v4 := rapid.Bool().Draw(t, "call over v4")
	c := call{Op: "wire", To: netip.AddrPortFrom(rapid.SampledFrom(oracleIPs[v4]).Draw(t, "to"), rapid.SampledFrom(oraclePorts).Draw(t, "to port"))}
	c.Net = rapid.SampledFrom([]string{"tcp", "udp"}).Draw(t, "by")
	c.Net += map[bool]string{true: "4", false: "6"}[v4 && rapid.Bool().Draw(t, "not mapped")]
	if c.Net[:3] == "udp" {
		c.Slot = rapid.IntRange(0, 2).Draw(t, "socket") // 0: a new one, which is connected
	}
	return c
}

// Balancing §7, §10, §11, §12, §16.3, §17: whatever rules come and go, each call of each kind of socket goes on the wire where the model
// says (precedence, node ports, limits by the second, pods that are spared, families that are off, clients and flows that keep their backend).
func TestPropertyKernelAnswersAsTheModel(t *testing.T) {
	l := newLab(t)
	p := l.open()
	pod := l.Below("kubepods/burstable/pod" + podUID)
	clients := map[string]*client{"client": l.newClientApart(l.Lab), "backend": l.newClientApart(pod)}
	calls, skipped := 0, 0
	testkit.Check(t, func(t *rapid.T) {
		k := l.tables(p)
		k.hold(sock.Want{})
		for _, m := range []*ebpf.Map{p.maps.Affinity, p.maps.Flows} {
			forget(t, m)
		}
		o := &oracle{own: map[uint32]bool{}, memory: remembers{}, windows: map[sock.Place]sockWindow{}}
		rules := map[uint32]*sock.Rule{}
		var want sock.Want
		for range rapid.IntRange(2, 6).Draw(t, "states") {
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				id := rapid.Uint32Range(1, 5).Draw(t, "id")
				if rules[id] = drawOracleRule(t, id); rapid.IntRange(0, 4).Draw(t, "remove") == 0 {
					delete(rules, id)
				}
			}
			want = sock.Want{}
			for _, id := range rapid.Permutation([]uint32{1, 2, 3, 4, 5}).Draw(t, "order") {
				if rule, ok := rules[id]; ok {
					want.Rules = append(want.Rules, rule)
				}
			}
			for _, v4 := range []bool{true, false} {
				if rapid.Bool().Draw(t, "a node") {
					want.Nodes = append(want.Nodes, oracleIPs[v4][0])
				}
			}
			k.hold(want)
			own := map[sock.Own]bool{}
			for id := range uint32(5) {
				if o.own[id+1] = rapid.Bool().Draw(t, "own"); o.own[id+1] {
					own[sock.Own{Cgroup: pod.Number(), Rule: id + 1}] = true
				}
			}
			o.settings = Settings{
				IPv4: rapid.IntRange(0, 9).Draw(t, "IPv4") > 0, IPv6: rapid.IntRange(0, 9).Draw(t, "IPv6") > 0,
				Limit: rapid.Uint32Range(0, 2).Draw(t, "limit"),
			}
			if err := errors.Join(p.Spare(own), p.Set(o.settings)); err != nil {
				t.Fatal(err)
			}
			o.rows = k.planner.Rows()
			maps.DeleteFunc(o.windows, func(at sock.Place, _ sockWindow) bool { return !o.rows.Windows[at] })
			for range rapid.IntRange(10, 40).Draw(t, "calls") {
				c := drawOracleCall(t)
				from := rapid.SampledFrom([]string{"backend", "client"}).Draw(t, "from")
				second := monotonicSecond(t)
				got := clients[from].do(c)
				to, errno, keep := o.may(c, from, second)
				if calls++; monotonicSecond(t) != second {
					// In which second it was counted is not known: what was kept from before is in doubt.
					skipped++
					o.windows, o.memory = map[sock.Place]sockWindow{}, remembers{}
					k.hold(sock.Want{}) // windows go, and come anew
					k.hold(want)
					o.rows = k.planner.Rows()
					forget(t, p.maps.Affinity)
					forget(t, p.maps.Flows)
					continue
				}
				if got.Errno != errno || errno == 0 && (got.Error != "" || !slices.Contains(to, got.Peer)) {
					t.Fatalf("%s of a %s to %s went to %s (%q), want %v (errno %d)\nrow %+v", c.Net, from, c.To, got.Peer, got.Error, to, errno, o.rows.Places[sock.Place{Address: c.To.Addr(), Port: c.To.Port(), Protocol: map[string]uint8{"tcp": 6, "udp": 17}[c.Net[:3]]}])
				}
				keep(got.Peer)
			}
		}
	})
	if calls < 100 || skipped > calls/2 {
		t.Errorf("of %d calls %d were not compared", calls, skipped)
	}
}

// forget empties a table of what clients are remembered by.
func forget(t *rapid.T, m *ebpf.Map) {
	var key sockMemoryKey
	var value sockMemory
	var all []sockMemoryKey
	rows := m.Iterate()
	for rows.Next(&key, &value) {
		all = append(all, key)
	}
	if err := errors.Join(rows.Err(), drop(m, "memory", all)); err != nil {
		t.Fatal(err)
	}
}
