// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/dataplane/sock/program"
	"fairlead.io/fairlead/e2e/lab"
)

// Sizes of what is measured at sockets.
const (
	sockTurns   = 60 // of each way to dial
	sockTurn    = 200 * time.Millisecond
	sockCalls   = 500 // of connect, in each turn for its time
	sockClients = 4
)

// sockLab is this process as a client of Services whose endpoints are on loopback, with one server for all. Programs are at a
// cgroup that it enters and leaves, so that one way to dial is without them.
type sockLab struct {
	t       *bench
	cgroup  string
	home    string // cgroup that this process began in
	program *program.Program
	planner *sock.Planner
	made    int // Services
}

func newSockLab(t *bench) *sockLab {
	t.run("ip", "route", "add", "local", "10.0.0.0/11", "dev", "lo")
	t.Cleanup(func() { t.run("ip", "route", "del", "local", "10.0.0.0/11", "dev", "lo") })
	sizes := program.DefaultSizes
	sizes.Slots *= 2 // 10,000 Services of 10 endpoints, over TCP and UDP
	s := &sockLab{t: t, planner: sock.NewPlanner(sizes.Capacity)}
	s.home = ownCgroup(t)
	s.cgroup = filepath.Join(s.home, "fairlead-bench-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(s.cgroup, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.enter(s.home)
		if err := os.Remove(s.cgroup); err != nil {
			t.Error(err)
		}
	})
	mount := t.TempDir()
	if err := syscall.Mount("bpf", mount, "bpf", 0, ""); err != nil {
		t.Fatal("mount bpffs: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(mount, 0) })
	pins := filepath.Join(mount, "fairlead")
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
	serveHere(t)
	return s
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

// serveHere answers every byte with one, at every address of this namespace.
func serveHere(t *bench) {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", natPort))
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
				_, _ = io.Copy(c, c) // the client resets it
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
	direct := func(i int) netip.AddrPort { return sockEndpoint(i*7919%s.made, i%natEndpoints) }
	service := func(i int) netip.AddrPort { return netip.AddrPortFrom(lab.VIP(i*7919%s.made), 80) }
	return []way{{"direct", false, direct}, {"service", true, service}, {"direct_with_programs", true, direct}}
}

// turns measures each way so often, by turns, and gives a figure of each turn.
func (s *sockLab) turns(measure func(way) float64) map[string][]float64 {
	out, ways := map[string][]float64{}, s.ways()
	for turn := range sockTurns {
		for k := range ways {
			w := ways[(turn+k)%len(ways)]
			if w.inside {
				s.enter(s.cgroup)
			} else {
				s.enter(s.home)
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
	var f figures
	detail := map[string]any{"endpoints": natEndpoints}
	for _, size := range natSizes {
		grown := s.grow(size)
		took := s.turns(s.connect)
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

// sockRate compares how many connections a second, each with a request and its answer, go by Services' addresses and by endpoints'.
func sockRate(t *bench) figures {
	s := newSockLab(t)
	var f figures
	detail := map[string]any{"endpoints": natEndpoints}
	for _, size := range natSizes {
		s.grow(size)
		rates := s.turns(s.request)
		f.samples = nil
		for i, rate := range rates["service"] {
			f.samples = append(f.samples, rate/rates["direct"][i])
		}
		of := map[string]any{"ratio_p50": middle(f.samples)}
		for name, all := range rates {
			of[name+"_connections_per_s"] = spread(all)
		}
		detail[fmt.Sprintf("services_%d", size)] = of
	}
	f.detail = detail
	return f
}

// request gives the connections a second of one turn.
func (s *sockLab) request(w way) float64 {
	var next, done atomic.Int64
	var failure atomic.Pointer[error]
	begin := time.Now()
	var clients sync.WaitGroup
	for range sockClients {
		clients.Go(func() {
			for time.Since(begin) < sockTurn {
				if err := ask(w.to(int(next.Add(1)))); err != nil {
					failure.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	clients.Wait()
	if err := failure.Load(); err != nil {
		s.t.Fatalf("%s: %v", w.name, *err)
	}
	return float64(done.Load()) / time.Since(begin).Seconds()
}

// ask makes a connection, a request, and waits for the answer.
func ask(to netip.AddrPort) error {
	c, err := net.DialTimeout("tcp", to.String(), soon)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.(*net.TCPConn).SetLinger(0) // leaves no port behind; Close resets what is over
	if _, err := io.WriteString(c, "x"); err != nil {
		return err
	}
	var answer [1]byte
	_, err = io.ReadFull(c, answer[:])
	return err
}
