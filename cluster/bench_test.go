// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// Three members in one process, over loopback TLS, fsync on.
func benchGroup(b *testing.B) (*realGroup, *member) {
	b.Helper()
	r := newRealGroup(b, "a", "b", "c")
	r.startAll()
	b.Cleanup(r.stopAll)
	leader := r.leader()
	mustPropose(b, leader, put(0))
	return r, leader
}

func BenchmarkProposeOne(b *testing.B) {
	_, leader := benchGroup(b)
	b.ResetTimer()
	for i := range b.N {
		if _, err := leader.node.Propose(context.Background(), Urgent, put(i)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProposeMany(b *testing.B) {
	_, leader := benchGroup(b)
	const callers = 1024
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	begin := time.Now()
	for range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				i := int(next.Add(1))
				if i > b.N {
					return
				}
				if _, err := leader.node.Propose(context.Background(), Bulk, put(i)); err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "commands/s")
}

// BenchmarkFailover kills the leading process (-9) and takes the time to the next committed command; run it with
// -benchtime 50x.
func BenchmarkFailover(b *testing.B) {
	p := startProcesses(b, Tuning{}, "a", "b", "c")
	var took []time.Duration
	for i := range b.N {
		p.propose(2 * i)
		leader := p.leader()
		begin := time.Now()
		p.kill(leader)
		p.propose(2*i + 1)
		took = append(took, time.Since(begin))
		p.start(leader)
		testkit.Until(b, "the killed member is back", func() bool {
			s := p.states()
			return len(s) == 3 && s[leader].Applied > 0
		})
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
	b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "max-ms")
}

// BenchmarkElectionsUnderLoad counts the elections of a group of processes that nobody disturbs, while more goroutines
// than there are processors burn cycles and proposals come in as fast as they are taken. Run it with -benchtime 30x:
// an iteration is a second.
func BenchmarkElectionsUnderLoad(b *testing.B) {
	p := startProcesses(b, Tuning{}, "a", "b", "c")
	p.propose(0)
	leader := p.leader()
	before := p.states()[leader].Term
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var commands atomic.Int64
	for range 2 * runtime.GOMAXPROCS(0) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default: //nolint:staticcheck // it is to spin: the processors are busy
				}
			}
		}()
	}
	for range 64 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				var ok bool
				if p.clients[leader].Call("Member.Propose", int(commands.Add(1)), &ok) != nil {
					time.Sleep(10 * time.Millisecond)
				}
			}
		}()
	}
	b.ResetTimer()
	time.Sleep(time.Duration(b.N) * time.Second)
	close(stop)
	wg.Wait()
	b.ReportMetric(float64(p.states()[p.leader()].Term-before), "elections")
	b.ReportMetric(float64(commands.Load())/float64(b.N), "commands/s")
}

// BenchmarkLargeEntries has a group take changes of 337 KB, each with a small one behind it, with a log that is bounded by entries alone and with one
// that is bounded in bytes: what a small change takes, and how large the leader's file is in the end. Run it with -benchtime 600x.
func BenchmarkLargeEntries(b *testing.B) {
	for name, limit := range map[string]uint64{"entries": math.MaxInt64, "bytes": 64 << 20} {
		b.Run(name, func(b *testing.B) {
			r := newRealGroup(b, "a", "b", "c")
			r.tuning.MaxLogBytes = limit
			r.startAll()
			b.Cleanup(r.stopAll)
			leader := r.leader()
			var took []time.Duration
			b.ResetTimer()
			for i := range b.N {
				p := put(0)
				p.Command.(*fsm.PutRegister).Spec = make([]byte, 337<<10)
				mustPropose(b, leader, p)
				begin := time.Now()
				mustPropose(b, leader, put(i%10))
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			info, err := os.Stat(filepath.Join(r.dirs[leader.name], "raft.db"))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(info.Size()>>20), "file-MB")
			b.ReportMetric(float64(leader.node.meter.Bytes()>>20), "log-MB")
		})
	}
}
