// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/dataplane/sock/program"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/mounttest"
)

// Sizes of what is measured at sockets.
const (
	sockTurns = 60 // of each way to dial
	sockTurn  = 200 * time.Millisecond
	sockCalls = 500 // of connect, in each turn for its time
)

// sockLab is this process as a client of Services. It goes to and fro between two cgroups, with programs at one of them, so that
// one way to dial is without them and all else is alike.
type sockLab struct {
	t       *bench
	cgroup  string // with programs
	plain   string // beside it, without
	home    string // that this process began in
	program *program.Program
	planner *sock.Planner
	made    int // Services
}

func newSockLab(t *bench) *sockLab {
	sizes := program.DefaultSizes
	sizes.Slots *= 2 // 10,000 Services of 10 endpoints, over TCP and UDP
	return newSockLabOf(t, sizes)
}

func newSockLabOf(t *bench, sizes program.Sizes) *sockLab {
	s := &sockLab{t: t, planner: sock.NewPlanner(sizes.Capacity)}
	s.home = ownCgroup(t)
	s.cgroup, s.plain = s.newCgroup("sock"), s.newCgroup("plain")
	pins := mountPins(t)
	var err error
	if s.program, err = program.Open(program.Options{Cgroup: s.cgroup, Pins: pins, Sizes: sizes}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.program.Close()
		if err := program.Remove(pins); err != nil {
			t.Error(err)
		}
	})
	if err := s.program.Set(program.Settings{IPv4: true, IPv6: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.program.Attach(); err != nil {
		t.Fatal(err)
	}
	return s
}

// mountPins gives a folder for pins, which is not there yet, on a bpffs of its own.
func mountPins(t *bench) string {
	mount := t.TempDir()
	mounttest.Mount(t, "bpf", mount, "")
	return filepath.Join(mount, "fairlead")
}

// newCgroup makes a cgroup below the one that this process began in.
func (s *sockLab) newCgroup(name string) string {
	path := filepath.Join(s.home, fmt.Sprintf("fairlead-bench-%d-%s", os.Getpid(), name))
	if err := os.Mkdir(path, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		s.enter(s.home)
		if err := os.Remove(path); err != nil {
			s.t.Error(err)
		}
	})
	return path
}

// ownCgroup is the folder of the cgroup (v2) that this process is in.
func ownCgroup(t *bench) string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
			if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err == nil {
				return filepath.Join(mount, path)
			}
		}
	}
	t.Fatal("cgroup v2 is mounted nowhere")
	return ""
}

// endpointsHere has the addresses of all endpoints on loopback.
func endpointsHere(t *bench) {
	t.run("ip", "route", "add", "local", "10.0.0.0/11", "dev", "lo")
	t.Cleanup(func() { t.run("ip", "route", "del", "local", "10.0.0.0/11", "dev", "lo") })
}

// serveHere has all endpoints on loopback, with one server that answers every byte with one.
func serveHere(t *bench) {
	endpointsHere(t)
	acceptAll(t, natPort, func(c net.Conn) { _, _ = io.Copy(c, c) }) // the client resets it
}

// acceptAll serves every connection to a port of this namespace, and closes it then.
func acceptAll(t *bench, port uint16, serve func(net.Conn)) {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
}

func (s *sockLab) enter(cgroup string) {
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte("0"), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// grow makes Services until there are so many, and gives how long the tables took.
func (s *sockLab) grow(services int) time.Duration {
	var want sock.Want
	for i := range services {
		want.Rules = append(want.Rules, sockRule(i, natEndpoints))
	}
	begin := time.Now()
	s.step(want)
	s.made = services
	return time.Since(begin)
}

func (s *sockLab) step(want sock.Want) {
	for _, c := range s.planner.Step(want) {
		if err := s.program.Apply(c); err != nil {
			s.t.Fatal(err)
		}
	}
	if problems := s.planner.Problems(); len(problems) > 0 {
		s.t.Fatal(problems[0].Why)
	}
}

// sockRule is Service i over TCP and UDP, with so many endpoints.
func sockRule(i, endpoints int) *sock.Rule {
	r := &sock.Rule{ID: uint32(i + 1), Kind: sock.Service, Name: fmt.Sprintf("bench/s%d", i)}
	for _, protocol := range []uint8{sock.TCP, sock.UDP} {
		f := sock.Front{Protocol: protocol, At: []sock.At{{Address: lab.VIP(i), Port: 80, Mode: sock.ServiceLoadBalancer}}, Empty: sock.Refuse}
		for e := range endpoints {
			f.Backends = append(f.Backends, sock.Backend{At: sockEndpoint(i, e)})
		}
		r.Fronts = append(r.Fronts, f)
	}
	return r
}

func sockEndpoint(i, e int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(e), byte(i >> 8), byte(i)}), natPort)
}

// way is a way to dial.
type way struct {
	name   string
	inside bool // of the cgroup with programs
	to     func(i int) netip.AddrPort
}

func (s *sockLab) ways() []way {
	// As many endpoints as by the Services: the kernel remembers things of each address.
	direct := func(i int) netip.AddrPort { return sockEndpoint(i*7919%s.made, rand.IntN(natEndpoints)) }
	service := func(i int) netip.AddrPort { return netip.AddrPortFrom(lab.VIP(i*7919%s.made), 80) }
	// Directly once more, which tells how far apart two ways are that are one.
	return []way{{"direct", false, direct}, {"service", true, service}, {"direct_again", false, direct}}
}

// turns measures each way n times, by turns, and gives a figure of each turn.
func (s *sockLab) turns(n int, measure func(way) float64) map[string][]float64 {
	out, ways := map[string][]float64{}, s.ways()
	for turn := range n {
		for k := range ways {
			w := ways[(turn+k)%len(ways)]
			if w.inside {
				s.enter(s.cgroup)
			} else {
				s.enter(s.plain)
			}
			out[w.name] = append(out[w.name], measure(w))
		}
	}
	s.enter(s.home)
	return out
}

// sockOverhead is how much longer it takes to open a socket, connect it and close it by a Service's address than by an endpoint's.
// The sockets are of UDP, so that nothing but that is measured; a sample is the difference of two turns, in microseconds.
func sockOverhead(t *bench) figures {
	s := newSockLab(t)
	serveHere(t)
	var f figures
	detail := map[string]any{"endpoints": natEndpoints}
	for _, size := range natSizes {
		grown := s.grow(size)
		took := s.turns(sockTurns, s.connect)
		f.samples = nil
		for i, at := range took["service"] {
			f.samples = append(f.samples, at-took["direct"][i])
		}
		of := map[string]any{"overhead_p50": middle(f.samples), "tables_s": grown.Seconds()}
		for name, all := range took {
			of[name+"_us"] = spread(all)
		}
		detail[fmt.Sprintf("services_%d", size)] = of
	}
	detail["one_endpoint_of_10000_services_ms"] = s.update()
	f.detail = detail
	return f
}

// connect gives the microseconds of one socket that is opened, connected and closed.
func (s *sockLab) connect(w way) float64 {
	to := make([]syscall.SockaddrInet4, sockCalls)
	for i := range to {
		at := w.to(i)
		to[i] = syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	begin := time.Now()
	for i := range to {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
		if err == nil {
			err = syscall.Connect(fd, &to[i])
		}
		if err != nil {
			s.t.Fatal(err)
		}
		_ = syscall.Close(fd)
	}
	return time.Since(begin).Seconds() * 1e6 / sockCalls
}

// update gives the milliseconds in which one endpoint of one Service is replaced in the tables.
func (s *sockLab) update() map[string]float64 {
	var want sock.Want
	for i := range s.made {
		want.Rules = append(want.Rules, sockRule(i, natEndpoints))
	}
	s.step(want)
	var took []float64
	for turn := range sockTurns {
		i := turn * 7919 % s.made
		want.Rules[i] = sockRule(i, natEndpoints-1-turn%2)
		begin := time.Now()
		s.step(want)
		took = append(took, milliseconds(time.Since(begin)))
	}
	return spread(took)
}

// sockKinds are the requests that are made over each connection, and the turns of each way. A request over a kept connection meets no
// program; what a connection costs more is seen in the first figure. The last is within 1 % of one, which takes more turns to tell.
var sockKinds = []struct{ requests, turns int }{{1, sockTurns}, {100, sockTurns}, {1000, 4 * sockTurns}}

// sockRate compares how many requests a second go by Services' addresses and by endpoints'. A sample is the ratio of two turns with
// the most requests over each connection, as clients have it that keep connections.
func sockRate(t *bench) figures {
	s := newSockLab(t)
	serveHere(t)
	var f figures
	detail := map[string]any{"endpoints": natEndpoints}
	for _, size := range natSizes {
		s.grow(size)
		of := map[string]any{}
		for _, kind := range sockKinds {
			rates := s.turns(kind.turns, func(w way) float64 { return s.request(w, kind.requests) })
			f.samples = ratios(rates["service"], rates["direct"])
			each := map[string]any{"ratio": median(f.samples), "ratio_again": median(ratios(rates["direct_again"], rates["direct"]))}
			for name := range rates {
				each[name+"_requests_per_s"] = spread(rates[name])
			}
			of[fmt.Sprintf("requests_each_%d", kind.requests)] = each
		}
		detail[fmt.Sprintf("services_%d", size)] = of
	}
	f.detail = detail
	return f
}

// median gives the median of samples, and between which two of them the true one is with 95 % confidence (by their ranks, whatever
// their distribution).
func median(samples []float64) map[string]float64 {
	s := slices.Sorted(slices.Values(samples))
	n := float64(len(s))
	away := 0.98 / math.Sqrt(n) // 1.96 standard deviations of a rank, sqrt(n)/2 each
	return map[string]float64{"n": n, "p50": quantile(s, 0.5), "p50_from": quantile(s, 0.5-away), "p50_to": quantile(s, 0.5+away)}
}

// request gives the requests a second of one turn, so many over each connection.
func (s *sockLab) request(w way, requests int) float64 {
	return float64(requests) * rate(s.t, w.name, sockTurn, func(i int) error {
		_, err := askTimes(net.Dialer{}, w.to(i), requests)
		return err
	})
}
