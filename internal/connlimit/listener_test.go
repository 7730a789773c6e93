// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// ends is a listener to which the test itself connects, from any address.
type ends struct {
	net.Listener
	accepts chan end
}

type end struct {
	conn net.Conn
	err  error
}

func (e ends) Accept() (net.Conn, error) {
	next := <-e.accepts
	return next.conn, next.err
}

// from gives a connection an address that it comes from.
type from struct {
	net.Conn
	remote text
}

func (f from) RemoteAddr() net.Addr { return f.remote }

// port is a Listener under test, and what it counted.
type port struct {
	*Listener
	accepts  chan end
	registry *prometheus.Registry
}

func limited(t *testing.T, l Limits, members ...netip.Addr) *port {
	t.Helper()
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	accepts := make(chan end, 64)
	p := &port{Limit(ends{accepts: accepts}, Options{Port: "test", Limits: l, Metrics: metrics, Members: members}), accepts, registry}
	t.Cleanup(p.Abort)
	return p
}

// dial connects from an address. The server's end is nil if it was refused.
func (p *port) dial(t *testing.T, address string) (client net.Conn, server *Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	p.accepts <- end{conn: from{theirs, text(address + ":4711")}}
	p.accepts <- end{err: io.EOF} // what Accept returns where it refused the other one
	c, err := p.Accept()
	if err != nil {
		return ours, nil
	}
	<-p.accepts
	t.Cleanup(func() { _ = ours.Close() })
	return ours, c.(*Conn)
}

// speak has the client send a byte that the server reads.
func speak(t *testing.T, client net.Conn, server *Conn) {
	t.Helper()
	go func() { _, _ = client.Write([]byte("x")) }()
	if _, err := server.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

// open tells whether the other end is there still.
func open(client net.Conn) bool {
	_ = client.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := client.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

var few = Limits{Strangers: Room{4, 2}, Guests: Room{2, 2}, Known: Room{4, 2}, StrangerWithin: 5 * time.Second, GuestWithin: 20 * time.Second}

// However many say nothing, who speaks up is not ended for them, nor who proved who he is.
func TestSilentConnectionsEndSilentOnesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited(t, few)
		member, served := p.dial(t, "192.0.2.1")
		speak(t, member, served)
		if !served.Vouch(Known, "member/m2") {
			t.Fatal("a member has no place")
		}
		half, unproven := p.dial(t, "192.0.2.66")
		speak(t, half, unproven)
		first, _ := p.dial(t, "192.0.2.66")
		for range 50 {
			p.dial(t, "192.0.2.66")
		}
		if open(first) || !open(member) || !open(half) {
			t.Errorf("the first silent one %v, the member %v, who speaks %v", open(first), open(member), open(half))
		}
		if got := p.Open(); got != [stages]int{2, 1, 0, 1} {
			t.Errorf("open are %v", got)
		}
	})
}

// Who floods a port from one address ends what is its own, and from many what is not known.
func TestKnownSourcesHavePlacesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited(t, few, netip.MustParseAddr("192.0.2.2"))
		_, served := p.dial(t, "192.0.2.1")
		served.Vouch(Known, "member/m1")
		_ = served.Close()
		other, _ := p.dial(t, "192.0.2.9")
		for range 20 {
			p.dial(t, "192.0.2.66")
		}
		if !open(other) {
			t.Error("one address ended what another one had")
		}
		again, _ := p.dial(t, "192.0.2.1")
		named, _ := p.dial(t, "192.0.2.2")
		time.Sleep(2 * grace)
		for i := range 20 {
			p.dial(t, fmt.Sprintf("198.51.100.%d", i))
			time.Sleep(grace / 10)
		}
		if open(other) || !open(again) || !open(named) {
			t.Errorf("a stranger %v, who was known lately %v, who was named %v", open(other), open(again), open(named))
		}
	})
}

// When all come at once, those who came first are served.
func TestManyAtOnceDoNotEndEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited(t, few)
		var came []net.Conn
		for i := range 10 {
			client, _ := p.dial(t, fmt.Sprintf("198.51.100.%d", i))
			came = append(came, client)
		}
		for i, client := range came {
			if open(client) != (i < few.Strangers.Total) {
				t.Errorf("the one that came as number %d is open: %v", i, open(client))
			}
		}
	})
}

// Whoever proved who he is counts by his name, wherever he comes from, and goes for nobody who has as much.
func TestKnownConnectionsCountByNameAndStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited(t, few)
		var names []net.Conn
		for i := range few.Known.Total {
			client, server := p.dial(t, "192.0.2.1")
			if !server.Vouch(Known, fmt.Sprintf("n%d", i)) {
				t.Fatalf("n%d has no place", i)
			}
			names = append(names, client)
			time.Sleep(2 * grace)
		}
		late, server := p.dial(t, "192.0.2.2")
		if server.Vouch(Known, "late") || open(late) {
			t.Error("one more has a place")
		}
		for i, client := range names {
			if !open(client) {
				t.Errorf("n%d was ended for one that has as much", i)
			}
		}
	})
}

// Who does not come further in time is ended, and he alone.
func TestStagesEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited(t, few)
		silent, _ := p.dial(t, "192.0.2.1")
		slow, unproven := p.dial(t, "192.0.2.2")
		enrols, guest := p.dial(t, "192.0.2.3")
		member, known := p.dial(t, "192.0.2.4")
		time.Sleep(few.StrangerWithin - time.Second)
		speak(t, slow, unproven)
		if !guest.Vouch(Guest, "") || !known.Vouch(Known, "m") || !known.Vouch(Known, "m") || !known.Vouch(Guest, "") {
			t.Fatal("no place")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if open(silent) || open(slow) || !open(enrols) || !open(member) {
			t.Errorf("silent %v, slow %v, guest %v, known %v", open(silent), open(slow), open(enrols), open(member))
		}
		if unproven.Vouch(Known, "m") || p.Open() != [stages]int{0, 0, 1, 1} {
			t.Errorf("who was ended has a place: %v", p.Open())
		}
		time.Sleep(few.GuestWithin)
		synctest.Wait()
		if open(enrols) || !open(member) {
			t.Errorf("guest %v, known %v", open(enrols), open(member))
		}
	})
}

// Between messages a connection may be idle. Within one it has to go on.
func TestMessagesThatBeganGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := few
		l.StrangerWithin, l.MessageWithin, l.WriteWithin = 0, 3*time.Second, 2*time.Second
		p := limited(t, l)
		client, server := p.dial(t, "192.0.2.1")
		go func() {
			time.Sleep(time.Hour)
			_, _ = client.Write([]byte("x"))
			time.Sleep(2 * time.Second)
			_, _ = client.Write([]byte("y"))
			_, _ = client.Read(make([]byte, 1))
			time.Sleep(time.Hour)
			_, _ = client.Write([]byte("z"))
		}()
		buf := make([]byte, 1)
		for range 2 {
			if _, err := server.Read(buf); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := server.Write(buf); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Read(buf); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := server.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != l.MessageWithin {
			t.Errorf("half a message: %v after %v", err, time.Since(begin))
		}
		if _, err := server.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != l.MessageWithin {
			t.Errorf("the rest of it: %v after %v", err, time.Since(begin))
		}
		begin = time.Now()
		if _, err := server.Write(buf); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != l.WriteWithin {
			t.Errorf("nobody reads: %v after %v", err, time.Since(begin))
		}
		begin = time.Now()
		if err := server.SetDeadline(begin.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Write(buf); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("the server's own deadline: %v after %v", err, time.Since(begin))
		}
	})
}

// Without descriptors those go who have proven nothing, and then accepting fails, as the server expects.
func TestStrangersGiveUpDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited(t, few)
		silent, _ := p.dial(t, "192.0.2.1")
		member, known := p.dial(t, "192.0.2.2")
		known.Vouch(Known, "m")
		for range 2 {
			p.accepts <- end{err: os.NewSyscallError("accept4", syscall.EMFILE)}
		}
		if _, err := p.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("accepted: %v", err)
		}
		if open(silent) || !open(member) {
			t.Errorf("silent %v, known %v", open(silent), open(member))
		}
	})
}

func TestConnectionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited(t, few)
		for i := range 3 {
			p.dial(t, "192.0.2.1")
			if i == 0 {
				p.dial(t, "192.0.2.2")
			}
		}
		_, known := p.dial(t, "192.0.2.3")
		known.Vouch(Known, "m")
		time.Sleep(few.StrangerWithin)
		synctest.Wait()
		err := testutil.GatherAndCompare(p.registry, strings.NewReader(`
# HELP fairlead_connections Open connections to a port, by how far they have come.
# TYPE fairlead_connections gauge
fairlead_connections{port="test",stage="guest"} 0
fairlead_connections{port="test",stage="known"} 1
fairlead_connections{port="test",stage="silent"} 0
fairlead_connections{port="test",stage="unproven"} 0
# HELP fairlead_connections_closed_total Connections to a port that were closed for its limits.
# TYPE fairlead_connections_closed_total counter
fairlead_connections_closed_total{port="test",reason="no-descriptors"} 0
fairlead_connections_closed_total{port="test",reason="port-limit"} 0
fairlead_connections_closed_total{port="test",reason="source-limit"} 1
fairlead_connections_closed_total{port="test",reason="too-slow"} 3
`))
		if err != nil {
			t.Error(err)
		}
		if _, err := NewMetrics(p.registry); err != nil {
			t.Errorf("a second port of the process: %v", err)
		}
	})
}

// What is wrapped around a connection, as TLS is, hides it not.
func TestConnIsFoundBelowOthers(t *testing.T) {
	inner := &Conn{}
	if Of(wrapped{wrapped{inner}}) != inner || Of(from{}) != nil {
		t.Error("it is not found, or another one is")
	}
}

type wrapped struct{ net.Conn }

func (w wrapped) NetConn() net.Conn { return w.Conn }
