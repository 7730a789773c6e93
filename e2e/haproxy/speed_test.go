// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/internal/testkit"
)

// callers is how many calls Fairlead makes at a time.
const callers = 16

// numbered is the address of a backend that nobody asks anything of.
func numbered(i int) string {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), 80).String()
}

// atOnce ensures backends, some at a time, and gives how long that took.
func (d *process) atOnce(from, to, callers int, parameters webhook.Map) time.Duration {
	d.t.Helper()
	next := make(chan int)
	var wait sync.WaitGroup
	began := time.Now()
	for range callers {
		wait.Go(func() {
			for i := range next {
				a, err := d.client.EnsureBackend(d.t.Context(), driver.Call{}, about(numbered(i), parameters))
				if err != nil || a.Status != webhook.Succ {
					d.t.Errorf("ensure %s: %+v, %v", numbered(i), a, err)
				}
			}
		})
	}
	for i := from; i < to; i++ {
		next <- i
	}
	close(next)
	wait.Wait()
	return time.Since(began)
}

// Beside a thousand servers calls that come at the same time share what is slow, HAProxy's table: all together ask for less than one at a time would.
// After a restart all servers are back. How many calls there are in a second BenchmarkEnsure tells.
func TestManyServersAreEnsuredTogetherAndComeBack(t *testing.T) {
	const n = 1000
	p := startProxy(t, startPod(t, "static"))
	counted, asked := countExchanges(t, p.socket)
	d := startDriver(t, p, "--socket", counted)
	d.atOnce(0, n, callers, nil)
	before := asked.Load()
	d.atOnce(0, n, 1, webhook.Map{"weight": "6"})
	alone := asked.Load() - before
	d.atOnce(0, n, callers, webhook.Map{"weight": "7"})
	together := asked.Load() - before - alone
	t.Logf("%d ensures asked HAProxy %d times one after the other, %d times by %d callers", n, alone, together, callers)
	if alone < n || together > alone/2 {
		t.Errorf("%d ensures asked HAProxy %d times one after the other, %d times by %d callers", n, alone, together, callers)
	}
	want := p.servers()
	if len(want) != n+1 || want[serverOf(numbered(3))] != numbered(3)+" state 0 weight 7" {
		t.Fatalf("%d servers, such as %q", len(want), want[serverOf(numbered(3))])
	}
	p.kill()
	p.start()
	testkit.Until(t, "HAProxy has its servers back", func() bool { return maps.Equal(p.servers(), want) })
}

// countExchanges is a way to HAProxy's socket on which exchanges are counted.
func countExchanges(t *testing.T, socket string) (path string, exchanges *atomic.Int64) {
	t.Helper()
	path, exchanges = socket+".counted", new(atomic.Int64)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			exchanges.Add(1)
			go func() {
				defer near.Close()
				far, err := net.Dial("unix", socket)
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(far, near) // whoever hangs up
					_ = far.Close()
				}()
				_, _ = io.Copy(near, far) // likewise
			}()
		}
	}()
	return path, exchanges
}

// BenchmarkEnsure changes and adds servers of a backend that has a thousand.
func BenchmarkEnsure(b *testing.B) {
	p := startProxy(b, startPod(b, "static"))
	d := startDriver(b, p)
	const there = 1000
	d.atOnce(0, there, callers, nil)
	for _, callers := range []int{1, callers} {
		for weight, what := range []string{"changed", "unchanged"} {
			b.Run(fmt.Sprintf("%s/callers=%d", what, callers), func(b *testing.B) {
				for round := 0; b.Loop(); round++ {
					w := 1 + (1-weight)*(round%2+callers)
					took := d.atOnce(0, there, callers, webhook.Map{"weight": fmt.Sprint(w)})
					b.ReportMetric(there/took.Seconds(), "ensures/s")
				}
			})
		}
	}
}

// Whatever HAProxy does meanwhile, calls that come at the same time are repeated until they succeed, as Fairlead does, and
// then HAProxy has just what was asked for last, without another call.
func TestCallsWhileHAProxyIsReloadedAndKilledEndRight(t *testing.T) {
	const n = 120
	p := startProxy(t, startPod(t, "static"))
	d := startDriver(t, p, "--drain", "1s")
	foreign := p.servers()
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			for round := 1; ; round++ {
				last := false
				select {
				case <-stop:
					last = true // and all of them once more, for an end that is known
				default:
				}
				for i := caller; i < n; i += callers {
					d.until(t, numbered(i), round, last && i%3 == 0)
				}
				if last {
					return
				}
			}
		})
	}
	for range 3 {
		p.reload()
		testkit.Until(t, "calls go on", func() bool { return len(p.servers()) > n/2 })
	}
	p.kill()
	p.start()
	close(stop)
	wait.Wait()
	asked := func() bool {
		have := p.servers()
		for i := range n {
			if name := serverOf(numbered(i)); i%3 == 0 == (have[name] != "") {
				return false
			}
		}
		return len(have) == n-n/3+len(foreign) && have["static"] == foreign["static"]
	}
	testkit.Until(t, "HAProxy has what was asked for", asked)
	d.end(syscall.SIGKILL)
	p.kill()
	p.start()
	d.start()
	testkit.Until(t, "HAProxy has it back", asked)
}

// until ensures a backend, or deregisters it, until that is done.
func (d *process) until(t *testing.T, address string, weight int, gone bool) {
	for deadline := time.Now().Add(testkit.Patience); ; {
		var a webhook.Answer
		var err error
		if gone {
			a, err = d.client.DeregisterBackend(t.Context(), driver.Call{}, about(address, nil))
		} else {
			var e webhook.EnsureBackendResponse
			e, err = d.client.EnsureBackend(t.Context(), driver.Call{}, about(address, webhook.Map{"weight": fmt.Sprint(1 + weight%200)}))
			a = e.Answer
		}
		switch {
		case err == nil && a.Status == webhook.Succ:
			return
		case time.Now().After(deadline):
			t.Errorf("%s: still %+v, %v", address, a, err)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
