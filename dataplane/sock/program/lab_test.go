// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/internal/socktest"
	"fairlead.io/fairlead/internal/testkit"
)

// asClient has the test's own program be a client in a cgroup.
const asClient = "SOCK_TEST_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(asClient) != "" {
		serveCalls(os.Stdin, os.Stdout)
		return
	}
	if os.Getenv(asAgent) != "" {
		if err := serveOrder(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil { // they mostly wait for the kernel
		panic(err)
	}
	os.Exit(m.Run())
}

// call is what a client shall do, and result what came of it.
type call struct {
	Op   string // connect; hammer; peers; "… at once": of several threads; or send: from a socket of datagrams that stays and is not connected
	Net  string // tcp4, udp6, …; "mapped" takes sockets of IPv6 to IPv4, as the JVM does
	To   netip.AddrPort
	Keep bool // leave the connection open
	Slot int  // "wire": of a socket of datagrams that stays and is not connected; 0: a new one, connected

	Priority int // of the socket (SO_PRIORITY), for connect; 0: none of its own
}

type result struct {
	Error string
	Errno syscall.Errno
	Peer  netip.AddrPort // as the client sees it: getpeername, or where the answer came from
	Said  string         // by the server
}

// lab is a cgroup with a client in it, and a bpffs. Those of several tests are there at once.
type lab struct {
	*socktest.Lab
	t      testing.TB
	cgroup string
	pins   string
	client *client
}

func newLab(t testing.TB) *lab {
	if parallel, ok := t.(interface{ Parallel() }); ok {
		parallel.Parallel()
	}
	l := &lab{Lab: socktest.New(t), t: t}
	l.cgroup, l.pins = l.Lab.Cgroup, l.Lab.Pins
	t.Cleanup(func() {
		if err := Remove(l.pins); err != nil {
			t.Error(err)
		}
	})
	l.client = l.newClient()
	return l
}

func (l *lab) options() Options { return Options{Cgroup: l.cgroup, Pins: l.pins} }

// open gives programs that work, with all that is resolved switched on.
func (l *lab) open() *Program {
	l.t.Helper()
	p, err := Open(l.options())
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = p.Close() })
	if err := errors.Join(p.Set(Settings{IPv4: true, IPv6: true}), p.Attach()); err != nil {
		l.t.Fatal(err)
	}
	return p
}

// client is a process in the lab's cgroup.
type client struct {
	t   testing.TB
	in  *json.Encoder
	out *json.Decoder
	pid int
	end func() // the process; it may be called again
}

func (l *lab) newClient() *client { return l.newClientIn(l.Lab) }

// newClientIn makes a client in a cgroup.
func (l *lab) newClientIn(in *socktest.Lab) *client {
	return startClient(l.t, in, (*exec.Cmd).Start)
}

// removeBelow removes the cgroups below the lab's, whose processes are gone.
func (l *lab) removeBelow() {
	l.t.Helper()
	var all []string
	err := filepath.WalkDir(l.cgroup, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != l.cgroup {
			all = append(all, path)
		}
		return err
	})
	for _, path := range slices.Backward(all) {
		err = errors.Join(err, syscall.Rmdir(path))
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// startClient makes a client in a cgroup; what starts it may have it elsewhere than the test in other ways, too.
func startClient(t testing.TB, l *socktest.Lab, start func(*exec.Cmd) error) *client {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), asClient+"=1")
	l.Join(c)
	c.Stderr = os.Stderr
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, start(c)); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	t.Cleanup(end)
	return &client{t, json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out)), c.Process.Pid, end}
}

// refusal is what a refused call is told where it shall be told an error: before Linux 5.18 programs can say none but EPERM.
func refusal(e syscall.Errno) syscall.Errno {
	if features.HaveProgramHelper(ebpf.CGroupSockAddr, asm.FnSetRetval) != nil {
		return syscall.EPERM
	}
	return e
}

func (c *client) do(what call) result {
	c.t.Helper()
	var r result
	if err := errors.Join(c.in.Encode(what), c.out.Decode(&r)); err != nil {
		c.t.Fatal(err)
	}
	return r
}

func serveCalls(in io.Reader, out io.Writer) {
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	sockets := map[string]*net.UDPConn{}
	var kept []net.Conn
	var w wires
	for {
		var c call
		if from.Decode(&c) != nil {
			return
		}
		var r result
		var err error
		switch c.Op {
		case "connect":
			var conn net.Conn
			if r, conn, err = connect(c); conn != nil && c.Keep {
				kept = append(kept, conn)
			} else if conn != nil {
				_ = conn.Close()
			}
		case "hammer":
			err = hammer(c.To)
		case "connect at once", "send at once", "share at once":
			err = atOnce(c)
		case "peers":
			r.Said, err = peers(kept)
		case "send":
			r, err = send(c, sockets)
		case "go apart":
			err = goApart()
		case "wire":
			r, err = w.onWire(c)
		}
		if err != nil {
			r.Error = err.Error()
			errors.As(err, &r.Errno)
		}
		if to.Encode(r) != nil {
			return
		}
	}
}

const patience = testkit.Patience

func connect(c call) (r result, conn net.Conn, err error) {
	if c.Net == "mapped" {
		conn, err = dialMapped(c.To)
	} else {
		conn, err = (&net.Dialer{Timeout: patience, Control: c.prioritise}).Dial(c.Net, c.To.String())
	}
	if err != nil {
		return r, nil, err
	}
	if r.Peer, err = netip.ParseAddrPort(conn.RemoteAddr().String()); err != nil {
		return r, conn, err
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err = conn.Write([]byte("?")); err != nil {
		return r, conn, err
	}
	b := make([]byte, 64)
	n, err := conn.Read(b)
	r.Said = string(b[:n])
	return r, conn, err
}

// prioritise gives the socket its priority.
func (c call) prioritise(_, _ string, raw syscall.RawConn) error {
	if c.Priority == 0 {
		return nil
	}
	var err error
	return errors.Join(raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_PRIORITY, c.Priority)
	}), err)
}

// hammer connects sockets of datagrams one after the other, as fast as it can, and tells of one that did not get to loopback.
func hammer(to netip.AddrPort) error {
	for range 2000 {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
		from, nameErr := syscall.Getsockname(fd)
		_ = syscall.Close(fd)
		if err := errors.Join(err, nameErr); err != nil {
			return err
		}
		if a := from.(*syscall.SockaddrInet4).Addr; a != [4]byte{127, 0, 0, 1} {
			return fmt.Errorf("a socket got to %s itself, from %v", to, a)
		}
	}
	return nil
}

// peers are what getpeername says of connections that were kept.
func peers(kept []net.Conn) (string, error) {
	var out []string
	for _, c := range kept {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			return "", err
		}
		var name syscall.Sockaddr
		if err := errors.Join(raw.Control(func(fd uintptr) { name, err = syscall.Getpeername(int(fd)) }), err); err != nil {
			return "", err
		}
		four, ok := name.(*syscall.SockaddrInet4)
		if !ok {
			return "", fmt.Errorf("%T", name)
		}
		out = append(out, netip.AddrPortFrom(netip.AddrFrom4(four.Addr), uint16(four.Port)).String())
	}
	return strings.Join(out, " "), nil
}

// dialMapped connects a socket of IPv6 to an address of IPv4.
func dialMapped(to netip.AddrPort) (net.Conn, error) {
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Connect(fd, &syscall.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}); err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "mapped")
	defer f.Close()
	return net.FileConn(f)
}

func send(c call, sockets map[string]*net.UDPConn) (r result, err error) {
	s := sockets[c.Net]
	if s == nil {
		network, at := c.Net, &net.UDPAddr{}
		if network == "mapped" {
			network = "udp" // dual stack
		}
		if s, err = net.ListenUDP(network, at); err != nil {
			return r, err
		}
		sockets[c.Net] = s
	}
	_ = s.SetDeadline(time.Now().Add(patience))
	if _, err := s.WriteToUDPAddrPort([]byte("?"), c.To); err != nil {
		return r, err
	}
	b := make([]byte, 64)
	n, from, err := s.ReadFromUDPAddrPort(b)
	r.Said, r.Peer = string(b[:n]), netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	return r, err
}

// server answers every connection, or datagram, with where it listens.
type server struct {
	at netip.AddrPort
	mu sync.Mutex
	n  int
}

// serve listens at a loopback address, on a port that is free.
func serve(t testing.TB, network, host string) *server {
	t.Helper()
	return serveAt(t, network, net.JoinHostPort(host, "0"), func(f func() error) error { return f() })
}

// serveAt listens where a function has it do so.
func serveAt(t testing.TB, network, at string, in func(func() error) error) *server {
	t.Helper()
	s := &server{}
	if network[:3] == "udp" {
		var conn net.PacketConn
		err := in(func() (err error) { conn, err = net.ListenPacket(network, at); return err })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		s.at = netip.MustParseAddrPort(conn.LocalAddr().String())
		go s.echo(conn)
		return s
	}
	var l net.Listener
	err := in(func() (err error) { l, err = net.Listen(network, at); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s.at = netip.MustParseAddrPort(l.Addr().String())
	go s.accept(l)
	return s
}

func (s *server) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			b := make([]byte, 1)
			for {
				if _, err := c.Read(b); err != nil {
					return
				}
				s.count()
				fmt.Fprint(c, s.at)
			}
		}()
	}
}

func (s *server) echo(c net.PacketConn) {
	b := make([]byte, 1)
	for {
		_, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		s.count()
		_, _ = c.WriteTo([]byte(s.at.String()), from)
	}
}

func (s *server) count() {
	s.mu.Lock()
	s.n++
	s.mu.Unlock()
}

// tables keeps the rows of rules in the kernel.
type tables struct {
	t       testing.TB
	program *Program
	planner *sock.Planner
}

func (l *lab) tables(p *Program) *tables {
	rows, err := p.Read()
	if err != nil {
		l.t.Fatal(err)
	}
	planner := sock.NewPlanner(DefaultSizes.Capacity)
	planner.Adopt(rows)
	return &tables{l.t, p, planner}
}

func (k *tables) hold(w sock.Want) {
	k.t.Helper()
	for _, c := range k.planner.Step(w) {
		if err := k.program.Apply(c); err != nil {
			k.t.Fatal(err)
		}
	}
}

// front is one place with backends.
func front(protocol uint8, at netip.AddrPort, backends ...*server) sock.Front {
	f := sock.Front{Protocol: protocol, At: []sock.At{{Address: at.Addr(), Port: at.Port(), Mode: sock.ServiceClusterIP}}, Empty: sock.Refuse}
	for _, b := range backends {
		f.Backends = append(f.Backends, sock.Backend{At: b.at})
	}
	return f
}
