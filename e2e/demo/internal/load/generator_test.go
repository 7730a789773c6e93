// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/freeport"
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

// run asks for a while with four clients.
func run(t *testing.T, address netip.AddrPort, every, timeout, during time.Duration) Outcome {
	t.Helper()
	var sources []netip.Addr
	for i := range 4 {
		sources = append(sources, netip.AddrFrom4([4]byte{127, 0, 0, byte(51 + i)}))
	}
	g := Generator{
		Sources: sources, Every: every, Timeout: timeout,
		Targets: []Target{{Name: "web", Address: address, Check: check}},
	}
	ctx, cancel := context.WithTimeout(context.Background(), during)
	defer cancel()
	out, err := g.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryConnectionIsNewAndRecordedOnce(t *testing.T) {
	t.Parallel()
	address, accepted := server(t, func(int) string { return ok("served by a") })
	const beat = 5 * time.Millisecond
	began := time.Now()
	out := run(t, address, beat, time.Second, 300*time.Millisecond)
	beats := int(time.Since(began)/beat) + 2 // of a client: who is late to see that it is over went on until then
	seen := map[netip.AddrPort]bool{}
	for _, r := range out.Requests {
		if r.Failed() || r.Server != "a" {
			t.Errorf("request %+v", r)
		}
		if seen[r.Source] {
			t.Errorf("%s was used twice", r.Source)
		}
		seen[r.Source] = true
	}
	for _, from := range accepted() {
		if !seen[from] {
			t.Errorf("the server saw %s, which is not recorded", from)
		}
	}
	if got := len(accepted()); got != len(out.Requests) {
		t.Errorf("the server saw %d connections, recorded are %d", got, len(out.Requests))
	}
	// Four clients, 60 beats each: late ones are counted as dropped, so that the sum holds on a busy machine, too.
	if n := len(out.Requests) + out.Dropped; n < 4*50 || n > 4*beats {
		t.Errorf("%d requests and %d dropped beats, want about 240 in all, %d at most", len(out.Requests), out.Dropped, 4*beats)
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
					time.Sleep(2 * time.Second) // the server's slowness, not a wait
					return ok("served by a")
				}
				return c.answer
			})
			timeout := 20 * time.Second // an answer comes in time, however busy the machine is
			if c.cause == "no answer in time" {
				timeout = 200 * time.Millisecond
			}
			out := run(t, address, 20*time.Millisecond, timeout, 100*time.Millisecond)
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
	out := run(t, address, 10*time.Millisecond, 900*time.Millisecond, 100*time.Millisecond)
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
