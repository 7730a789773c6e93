// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/internal/testkit"
)

// asAgent has the test's own program be an agent, which is told once what shall be.
const asAgent = "SOCK_TEST_AGENT"

// order is what an agent is told.
type order struct {
	Cgroup, Pins string
	Sizes        Sizes
	Rule         sock.Rule
}

// serveOrder brings the kernel to an order, says so, and stays until its input ends.
func serveOrder(in io.Reader, out io.Writer) error {
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return err
	}
	p, err := Open(Options{Cgroup: o.Cgroup, Pins: o.Pins, Sizes: o.Sizes})
	if err != nil {
		return err
	}
	if err := p.Set(Settings{IPv4: true, IPv6: true}); err != nil {
		return err
	}
	rows, err := p.Read()
	if err != nil {
		return err
	}
	planner := sock.NewPlanner(o.Sizes.Capacity)
	planner.Adopt(rows)
	for _, c := range planner.Step(sock.Want{Rules: []*sock.Rule{&o.Rule}}) {
		if err := p.Apply(c); err != nil {
			return err
		}
	}
	if err := p.Attach(); err != nil {
		return err
	}
	fmt.Fprintln(out, "done")
	_, _ = io.Copy(io.Discard, in)
	return p.Close()
}

// agents starts one agent after the other.
type agents struct {
	t     *testing.T
	lab   *lab
	sizes Sizes
}

// run starts an agent with these backends. It is killed after a while, or, if that is 0, ends once it is done. It tells
// whether the agent said that it was done, and when that was heard.
func (a *agents) run(backends []*server, kill time.Duration) (done bool, at time.Time) {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), asAgent+"=1")
	c.Stderr = os.Stderr
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		a.t.Fatal(err)
	}
	if kill > 0 {
		timer := time.AfterFunc(kill, func() { _ = c.Process.Kill() })
		defer timer.Stop()
	}
	// A killed agent breaks the pipes, which is as well.
	_ = json.NewEncoder(in).Encode(order{a.lab.cgroup, a.lab.pins, a.sizes, *service(1, front(sock.TCP, vip4, backends...), front(sock.UDP, vip4, backends...))})
	line, _ := bufio.NewReader(out).ReadString('\n')
	at = time.Now()
	_ = in.Close()
	_ = c.Wait()
	if kill == 0 && line != "done\n" {
		a.t.Fatalf("an agent that nobody killed said %q", line)
	}
	return line == "done\n", at
}

// storm connects a thousand times a second over TCP, and over UDP as often as it can, until it is told to end.
type storm struct {
	mu    sync.Mutex
	calls []stormCall
	end   chan struct{}
	done  sync.WaitGroup
}

// stormCall is one connection: from when to when it was made, and who answered or why nobody did.
type stormCall struct {
	began, ended time.Time
	said         netip.AddrPort
	err          string
}

func (l *lab) storm(clients int) *storm {
	s := &storm{end: make(chan struct{})}
	for range clients {
		c := l.newClient()
		s.done.Go(func() {
			pace := time.NewTicker(time.Duration(clients) * time.Millisecond)
			defer pace.Stop()
			for {
				select {
				case <-s.end:
					return
				case <-pace.C:
				}
				one := stormCall{began: time.Now()}
				r := c.do(call{Op: "connect", Net: "tcp4", To: vip4})
				one.ended, one.err, one.said = time.Now(), r.Error, parsed(r.Said)
				s.mu.Lock()
				s.calls = append(s.calls, one)
				s.mu.Unlock()
			}
		})
	}
	hammering := l.newClient()
	s.done.Go(func() {
		for {
			select {
			case <-s.end:
				return
			default:
			}
			if r := hammering.do(call{Op: "hammer", To: vip4}); r.Error != "" {
				s.mu.Lock()
				s.calls = append(s.calls, stormCall{err: r.Error})
				s.mu.Unlock()
			}
		}
	})
	return s
}

func parsed(text string) netip.AddrPort {
	at, _ := netip.ParseAddrPort(text) // nobody answered
	return at
}

func (s *storm) stop() []stormCall {
	close(s.end)
	s.done.Wait()
	return s.calls
}

// Balancing §18: agents are killed a hundred times, at any moment of their work, or end by themselves, while backends come and go and
// clients connect a thousand times a second: nobody fails, and nobody gets to a backend that an agent had said to be gone.
// Rule: balancing §18.
func TestAgentsAreKilledUnderLoad(t *testing.T) {
	l := newLab(t)
	a := &agents{t, l, DefaultSizes}
	var all []*server
	for range 4 {
		all = append(all, serve(t, "tcp4", "127.0.0.1"))
	}
	a.run(all, 0)
	s := l.storm(8)
	type removal struct {
		at   time.Time
		back time.Time // when an agent was started that may have put it back
	}
	gone := map[netip.AddrPort][]removal{}
	runs, killed, random := 100, 0, testkit.Random(t)
	if testing.Short() {
		runs = 20 // as rapid checks a fifth then
	}
	for i := range runs {
		backends := make([]*server, 0, len(all))
		for _, k := range random.Perm(len(all))[:1+random.IntN(len(all))] {
			backends = append(backends, all[k])
		}
		for at := range gone {
			last := &gone[at][len(gone[at])-1]
			for _, b := range backends {
				if b.at == at && last.back.IsZero() {
					last.back = time.Now()
				}
			}
		}
		kill := time.Duration(0)
		if i%4 != 0 {
			kill = time.Millisecond + time.Duration(random.Int64N(int64(250*time.Millisecond)))
		}
		if i%10 == 9 { // other sizes now and then: new tables
			a.sizes.Slots = DefaultSizes.Slots + random.IntN(2)
		}
		done, at := a.run(backends, kill)
		if !done {
			killed++
			continue
		}
		for _, b := range all {
			wanted := false
			for _, w := range backends {
				wanted = wanted || w == b
			}
			open := len(gone[b.at]) > 0 && gone[b.at][len(gone[b.at])-1].back.IsZero()
			if !wanted && !open {
				gone[b.at] = append(gone[b.at], removal{at: at})
			}
		}
	}
	calls := s.stop()
	for _, c := range calls {
		if c.err != "" {
			t.Fatalf("a client failed: %s", c.err)
		}
		for _, r := range gone[c.said] {
			// Who was at it while an agent put the backend back may have got to it.
			if c.began.After(r.at) && (r.back.IsZero() || c.ended.Before(r.back)) {
				t.Fatalf("a client that began at %v got to %s, which was gone from %v to %v", c.began, c.said, r.at, r.back)
			}
		}
	}
	if len(calls) < 100 || killed < runs/10 {
		t.Errorf("%d connections, %d agents killed before they were done: that shows little", len(calls), killed)
	}
	t.Logf("%d connections, %d agents of %d killed before they were done", len(calls), killed, runs)
}
