// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/freeport"
	"fairlead.io/fairlead/internal/testkit"
)

// server answers each connection with what answer gives for it, n counting from 0; an empty string answers nothing.
func server(t *testing.T, answer func(n int) string) (address netip.AddrPort, accepted func() []netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var from []netip.AddrPort
	var open sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			n := len(from)
			from = append(from, c.RemoteAddr().(*net.TCPAddr).AddrPort())
			mu.Unlock()
			open.Go(func() {
				defer c.Close()
				text := answer(n)
				for r := bufio.NewReader(c); ; {
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					if line == "\r\n" {
						break
					}
				}
				if text == "" {
					<-ctx.Done()
					return
				}
				fmt.Fprint(c, text)
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		l.Close()
		open.Wait()
	})
	return l.Addr().(*net.TCPAddr).AddrPort(), func() []netip.AddrPort {
		mu.Lock()
		defer mu.Unlock()
		return from
	}
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func check(body string) (string, error) {
	name, found := strings.CutPrefix(body, "served by ")
	if !found {
		return "", errors.New("not our answer")
	}
	return name, nil
}

// run asks for a while with four clients, and until so many requests ended.
func run(t *testing.T, address netip.AddrPort, every, timeout, during time.Duration, enough int64) Outcome {
	t.Helper()
	var ended atomic.Int64
	var sources []netip.Addr
	for i := range 4 {
		sources = append(sources, netip.AddrFrom4([4]byte{127, 0, 0, byte(51 + i)}))
	}
	g := Generator{
		Sources: sources, Every: every, Timeout: timeout, Ended: &ended,
		Targets: []Target{{Name: "web", Address: address, Check: check}},
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := time.AfterFunc(during, func() {
		for ended.Load() < enough && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	})
	defer over.Stop()
	out, err := g.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n := ended.Load(); n != int64(len(out.Requests)) {
		t.Errorf("%d requests were counted as they ended, of %d", n, len(out.Requests))
	}
	return out
}

func TestEveryConnectionIsNewAndRecordedOnce(t *testing.T) {
	t.Parallel()
	address, accepted := server(t, func(int) string { return ok("served by a") })
	const beat = 5 * time.Millisecond
	began := time.Now()
	out := run(t, address, beat, time.Minute, 300*time.Millisecond, 100)
	beats := int(time.Since(began)/beat) + 2 // of a client: who is late to see that it is over went on until then
	seen := map[netip.AddrPort]bool{}
	var first, last [4]time.Time // starts, by client
	for _, r := range out.Requests {
		if r.Failed() || r.Server != "a" {
			t.Errorf("request %+v", r)
		}
		if seen[r.Source] {
			t.Errorf("%s was used twice", r.Source)
		}
		seen[r.Source] = true
		if first[r.Client].IsZero() || r.Start.Before(first[r.Client]) {
			first[r.Client] = r.Start
		}
		if r.Start.After(last[r.Client]) {
			last[r.Client] = r.Start
		}
	}
	for _, from := range accepted() {
		if !seen[from] {
			t.Errorf("the server saw %s, which is not recorded", from)
		}
	}
	if got := len(accepted()); got != len(out.Requests) {
		t.Errorf("the server saw %d connections, recorded are %d", got, len(out.Requests))
	}
	// Late beats are counted as dropped, so that a busy machine makes no difference to the sum.
	least := 0
	for client := range first {
		least += int(last[client].Sub(first[client])/beat) - 1
	}
	if n := len(out.Requests) + out.Dropped; n < least || n > 4*beats {
		t.Errorf("%d requests and %d dropped beats, want %d to %d in all", len(out.Requests), out.Dropped, least, 4*beats)
	}
}

func TestOnlyAWholeCorrectAnswerInTimeCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, answer, cause string }{
		{"silence", "", "no answer in time"},
		{"foreign", ok("welcome"), "not our answer"},
		{"status", "HTTP/1.0 503 Service Unavailable\r\nContent-Length: 11\r\n\r\nserved by a", "status 503 Service Unavailable"},
		{"cut", "HTTP/1.0 200 OK\r\nContent-Length: 99\r\n\r\nserved by a", "unexpected EOF"},
		{"late", "late", "no answer in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			address, _ := server(t, func(int) string {
				if c.answer == "late" {
					select { // the server's slowness, not a wait
					case <-time.After(time.Minute):
					case <-t.Context().Done():
					}
					return ok("served by a")
				}
				return c.answer
			})
			timeout := time.Minute // an answer comes in time, however busy the machine is
			if c.cause == "no answer in time" {
				timeout = 200 * time.Millisecond
			}
			out := run(t, address, 20*time.Millisecond, timeout, 100*time.Millisecond, 1)
			tally := Count(out.Requests, func(Request) string { return "n1" })
			if tally.Requests == 0 || tally.Failed != tally.Requests || tally.Causes[c.cause] != tally.Failed {
				t.Errorf("%d of %d failed, for %v; want all for %q", tally.Failed, tally.Requests, tally.Causes, c.cause)
			}
		})
	}
}

func TestRefusalFailsAtOnce(t *testing.T) {
	t.Parallel()
	l, err := freeport.Listen(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	out := run(t, address, 10*time.Millisecond, time.Minute, 100*time.Millisecond, 1)
	for _, r := range out.Requests {
		if !r.Failed() || errors.Is(r.Err, ErrTimeout) {
			t.Errorf("request %+v, want a refusal", r)
		}
	}
	if len(out.Requests) == 0 {
		t.Error("no requests")
	}
}

func TestLateClientDropsBeatsRatherThanBunchThem(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	ms := func(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	b := beats{next: ms(0), every: 10 * time.Millisecond}
	for _, c := range []struct {
		now, missed, wait int
	}{
		{1, 0, 9}, {10, 0, 10}, {29, 0, 1}, // a little late: the pace stays
		{75, 3, -5}, // 40, 50 and 60 are gone, 70 is made up for at once
		{75, 0, 5},
	} {
		missed, wait := b.after(ms(c.now))
		if missed != c.missed || wait != time.Duration(c.wait)*time.Millisecond {
			t.Errorf("at %d ms: %d missed, wait %s; want %d, %d ms", c.now, missed, wait, c.missed, c.wait)
		}
	}
}

func TestClientThatCannotEnterIsAnError(t *testing.T) {
	t.Parallel()
	g := Generator{
		Sources: []netip.Addr{netip.MustParseAddr("127.0.0.51")}, Every: time.Millisecond, Timeout: time.Second,
		Targets: []Target{{}}, Enter: func() error { return errors.New("no such namespace") },
	}
	if _, err := g.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no such namespace") {
		t.Errorf("error %v", err)
	}
}

// ask asks once, and gives up after a while.
func ask(t *testing.T, address netip.AddrPort, timeout time.Duration, byPackets bool) Request {
	t.Helper()
	start := time.Now()
	conn, err := begin(netip.MustParseAddrPort("127.0.0.62:0"), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := Request{Start: start}
	g := Generator{Timeout: timeout, ByPackets: byPackets}
	g.ask(&r, conn, Target{Name: "web", Address: address, Check: check}, &witness{due: start.Add(time.Hour)})
	return r
}

func TestByItsPacketsALateAnswerIsAsGoodAsAnyAndNoneIsNot(t *testing.T) {
	t.Parallel()
	address, _ := server(t, func(n int) string {
		if n > 0 {
			return ""
		}
		time.Sleep(1500 * time.Millisecond) // the server's slowness, not a wait
		return ok("served by a")
	})
	if r := ask(t, address, time.Minute, true); r.Failed() || r.Server != "a" || r.Took < time.Second {
		t.Errorf("request %+v", r)
	}
	if r := ask(t, address, 200*time.Millisecond, true); !errors.Is(r.Err, ErrTimeout) {
		t.Errorf("request %+v, want %v", r, ErrTimeout)
	}
}

func TestByItsPacketsAnAnswerAtTheSecondTryIsNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		g        Generator
		err      error
		unjudged bool
	}{
		{"by packets", Generator{Timeout: time.Minute, ByPackets: true}, ErrLost, false},
		{"by the clock, in time", Generator{Timeout: time.Minute}, nil, false},
		{"by the clock, late since the machine stood still", Generator{Timeout: 100 * time.Millisecond}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			address, room := fullServer(t)
			start := time.Now()
			conn, err := begin(netip.MustParseAddrPort("127.0.0.63:0"), address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			testkit.Eventually(t, "second try", func() error {
				if n, err := SentAgain(conn); err != nil || n == 0 {
					return fmt.Errorf("%d packets sent again, error %v", n, err)
				}
				return nil
			})
			room()
			r := Request{Start: start}
			c.g.ask(&r, conn, Target{Name: "web", Address: address, Check: check}, frozen(start, time.Hour))
			if !errors.Is(r.Err, c.err) || r.Unjudged != c.unjudged {
				t.Errorf("request %+v, want error %v, unjudged %t", r, c.err, c.unjudged)
			}
		})
	}
}

// fullServer drops what wants to connect until room is called, and then answers: its queue has room for one, which is there.
func fullServer(t *testing.T) (address netip.AddrPort, room func()) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close()
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	first, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(func() {
		first.Close()
		l.Close()
		open.Wait()
	})
	return l.Addr().(*net.TCPAddr).AddrPort(), func() {
		open.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				open.Go(func() {
					defer conn.Close()
					fmt.Fprint(conn, ok("served by a"))
					_, _ = io.Copy(io.Discard, conn) // until the client closes
				})
			}
		})
	}
}

func TestPacketsThatTheOtherSideHadAlreadyWereNotLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ again, had, want int }{{0, 0, 0}, {1, 0, 1}, {2, 1, 1}, {2, 2, 0}, {1, 2, 0}} {
		if got := sentAgain(&unix.TCPInfo{Total_retrans: uint32(c.again), Dsack_dups: uint32(c.had)}); got != c.want {
			t.Errorf("%d sent again, of which the other side had %d: %d lost, want %d", c.again, c.had, got, c.want)
		}
	}
}

func TestClientWaitsForABoundedNumberOfAnswers(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	address, accepted := server(t, func(int) string { <-over; return ok("served by a") })
	g := Generator{
		Sources: []netip.Addr{netip.MustParseAddr("127.0.0.64")}, Every: time.Millisecond, Timeout: time.Minute, ByPackets: true,
		Targets: []Target{{Name: "web", Address: address, Check: check}},
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for len(accepted()) < maxDue && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond) // in which a hundred more are due
		cancel()
		close(over)
	}()
	out, err := g.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Requests) != maxDue {
		t.Errorf("%d requests, want %d", len(out.Requests), maxDue)
	}
}

// frozen is a witness that saw the machine stand still for a while from now on.
func frozen(begin time.Time, still time.Duration) *witness {
	return &witness{due: begin.Add(time.Hour), pauses: []pause{{from: begin, to: begin.Add(still)}}}
}

func TestTimeInWhichTheMachineStoodStillDoesNotCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		still, after time.Duration
		err          error
	}{
		{"an answer within the time that was left", 20 * time.Second, 250 * time.Millisecond, nil},
		{"none within it", 100 * time.Millisecond, time.Minute, ErrTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			address, _ := server(t, func(int) string {
				select { // the server's slowness, not a wait
				case <-time.After(c.after):
				case <-ctx.Done():
				}
				return ok("served by a")
			})
			start := time.Now()
			conn, err := begin(netip.MustParseAddrPort("127.0.0.61:0"), address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			r := Request{Start: start}
			g := Generator{Timeout: 200 * time.Millisecond}
			g.ask(&r, conn, Target{Name: "web", Address: address, Check: check}, frozen(start, c.still))
			if !errors.Is(r.Err, c.err) || r.Unjudged || r.Took < 200*time.Millisecond+min(c.still, 50*time.Millisecond) {
				t.Errorf("request %+v, want error %v", r, c.err)
			}
			cancel()
		})
	}
}
