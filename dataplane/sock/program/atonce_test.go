// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/dataplane/sock"
)

const (
	placesAtOnce = 200                     // from the port of a call on
	callsAtOnce  = 20                      // of each thread, at each place
	probe        = unix.MSG_CONFIRM | 0x10 // MSG_PROBE: all of sending but the packet
)

// processors are those that calls are made on at once, one thread each; where there is one, two threads take turns.
func processors() (out []int, err error) {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return nil, err
	}
	for n := 0; len(out) < min(may.Count(), 4); n++ {
		if may.IsSet(n) {
			out = append(out, n)
		}
	}
	if len(out) == 1 {
		out = append(out, out[0])
	}
	return out, nil
}

// atOnce calls each place from several threads, which begin together. Each has a socket of its own, or all have one.
func atOnce(c call) error {
	processors, err := processors()
	if err != nil {
		return err
	}
	var fds []int
	for range processors {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer syscall.Close(fd)
		fds = append(fds, fd)
	}
	var arrived atomic.Int64
	errs := make([]error, len(processors))
	var all sync.WaitGroup
	for n, processor := range processors {
		one := func(to syscall.Sockaddr) error { return syscall.Connect(fds[n], to) }
		switch c.Op {
		case "send at once":
			one = func(to syscall.Sockaddr) error { return syscall.Sendto(fds[n], nil, probe, to) }
		case "share at once":
			one = func(to syscall.Sockaddr) error { return syscall.Sendto(fds[0], nil, probe, to) }
		}
		all.Go(func() {
			runtime.LockOSThread() // which ends with the function
			var here unix.CPUSet
			here.Set(processor)
			err := unix.SchedSetaffinity(0, &here)
			for place := range placesAtOnce {
				to := &syscall.SockaddrInet4{Port: int(c.To.Port()) + place, Addr: c.To.Addr().As4()}
				arrived.Add(1)
				for turn := 0; arrived.Load() < int64((place+1)*len(processors)); turn++ {
					if turn > 10000 { // another one waits for a processor
						runtime.Gosched()
					}
				}
				for range callsAtOnce {
					if err == nil {
						err = one(to)
					}
				}
			}
			errs[n] = err
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Balancing §12: calls of one client that are made at once get to one backend, and so do datagrams of one socket: the first ones of all, those that
// follow, and the first ones after the memory ended or the backend left.
// Rule: balancing §12.
func TestCallsAtOnceKeepOneBackend(t *testing.T) {
	for op, affinity := range map[string]time.Duration{"connect at once": time.Hour, "send at once": time.Hour, "share at once": 0} {
		t.Run(strings.Fields(op)[0], func(t *testing.T) {
			l := newLab(t)
			p := l.open()
			k := l.tables(p)
			all, left := service(1), service(1)
			for place := range placesAtOnce {
				// Records are by socket and backend: no backend is at two places.
				port := vip4.Port() + uint16(place)
				f := front(sock.UDP, netip.AddrPortFrom(vip4.Addr(), port))
				f.Affinity = affinity
				for n := range byte(8) {
					f.Backends = append(f.Backends, sock.Backend{At: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 1, n}), port)})
				}
				all.Fronts = append(all.Fronts, f)
			}
			// calls makes them, and gives who was met at which place.
			calls := func(when string) map[sock.Place]sock.Place {
				t.Helper()
				if _, err := Clean(l.pins, "sockets"); err != nil {
					t.Fatal(err)
				}
				if r := l.client.do(call{Op: op, To: vip4}); r.Error != "" {
					t.Fatalf("%s: %s", when, r.Error)
				}
				records, err := p.Records()
				if err != nil {
					t.Fatal(err)
				}
				met, several := map[sock.Place]sock.Place{}, map[sock.Place]bool{}
				for _, r := range records {
					if other, ok := met[r.Original]; ok && other != r.Backend {
						several[r.Original] = true
					}
					met[r.Original] = r.Backend
				}
				// A socket that closes takes along what it was connected to last.
				if len(met) < placesAtOnce-1 || len(several) > 0 {
					t.Errorf("%s: several backends were met at %d of %d places", when, len(several), len(met))
				}
				return met
			}
			k.hold(sock.Want{Rules: []*sock.Rule{all}})
			calls("first calls")
			longAgo(t, p.maps.Affinity, time.Hour+time.Second)
			longAgo(t, p.maps.Flows, time.Hour+time.Second)
			met := calls("the memory ended")
			for _, f := range all.Fronts {
				f.Backends = slices.DeleteFunc(slices.Clone(f.Backends), func(b sock.Backend) bool {
					return met[sock.Place{Address: vip4.Addr(), Port: f.At[0].Port, Protocol: sock.UDP}].Address == b.At.Addr()
				})
				left.Fronts = append(left.Fronts, f)
			}
			k.hold(sock.Want{Rules: []*sock.Rule{left}})
			for at, now := range calls("backends left") {
				if now == met[at] {
					t.Errorf("%s left, and is met at %s", now, at)
				}
			}
		})
	}
}
