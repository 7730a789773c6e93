// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Target is a service that is asked.
type Target struct {
	Name    string
	Address netip.AddrPort
	// Check tells what is wrong with the body of an answer, and who gave a correct one.
	Check func(body string) (server string, err error)
}

// Request is one connection, from its first packet to its answer.
type Request struct {
	Client int
	Target string
	Source netip.AddrPort
	Start  time.Time // just before the connection was begun
	Took   time.Duration
	Server string // who answered, for a correct answer
	Err    error  // nil for a correct answer in time
	// Unjudged is a request whose answer came so late, because this machine stood still, that TCP tried a second time:
	// nobody knows whether the first would have done.
	Unjudged bool
}

// Failed tells whether no correct answer came in time.
func (r Request) Failed() bool { return r.Err != nil }

// ErrTimeout is why most requests fail.
var ErrTimeout = errors.New("no answer in time")

// ErrLost is why requests fail that were answered correctly, but at a second try.
var ErrLost = errors.New("a packet was lost")

// Generator is the load of one step: every source is a client, client i asks target i modulo their number.
type Generator struct {
	Sources []netip.Addr
	Targets []Target
	Every   time.Duration // between two connections of one client
	Timeout time.Duration // for connection and answer together, of time in which this machine runs
	// ByPackets judges requests by what became of their packets, so that it does not matter how busy this machine is: a
	// request for which TCP had to send anything again has failed, however soon it was answered, and one that was answered
	// at the first try has not, however late. Timeout is then no more than when to give up, and nothing is Unjudged.
	ByPackets bool
	// Ended, if set, counts requests as they end, well or not.
	Ended *atomic.Int64
	// Enter is called on each client's own thread before anything else, to take it to another network namespace; the
	// thread ends with the client. Nil stays.
	Enter func() error
}

// Outcome is what Run saw.
type Outcome struct {
	Requests []Request
	// Dropped counts beats at which a client was busy or not scheduled: the load was that much lighter than meant.
	Dropped int
}

// Run asks until ctx ends, then waits for the answers that are still due, and gives all requests in no particular order.
//
// Errors: a client could not begin at all.
func (g *Generator) Run(ctx context.Context) (Outcome, error) {
	var all Outcome
	var failure error
	var mu sync.Mutex
	var clients sync.WaitGroup
	seed := uint16(rand.Uint32())
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	w := newWitness(time.Now())
	go w.watch(watching)
	for i := range g.Sources {
		clients.Go(func() {
			requests, dropped, err := g.client(ctx, i, portsOf(i, seed), w)
			mu.Lock()
			defer mu.Unlock()
			all.Requests = append(all.Requests, requests...)
			all.Dropped += dropped
			failure = errors.Join(failure, err)
		})
	}
	clients.Wait()
	return all, failure
}

// client is one client from beginning to end, on a thread of its own.
func (g *Generator) client(ctx context.Context, i int, ports *ports, w *witness) ([]Request, int, error) {
	runtime.LockOSThread() // never unlocked: a thread in another namespace must not be used again
	if g.Enter != nil {
		if err := g.Enter(); err != nil {
			return nil, 0, fmt.Errorf("client %d: %w", i, err)
		}
	}
	target := g.Targets[i%len(g.Targets)]
	answers := make(chan Request, maxDue)
	var requests []Request
	var dropped, due int
	// Clients begin spread over one interval, not all at once.
	offset := g.Every * time.Duration(i) / time.Duration(len(g.Sources))
	beat := beats{next: time.Now().Add(offset), every: g.Every}
	timer := time.NewTimer(offset)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case r := <-answers:
			requests, due = append(requests, r), due-1
			g.ended()
		case <-ctx.Done():
		case <-timer.C:
			if due < maxDue {
				due++
				g.one(i, target, ports, w, answers)
			} else {
				dropped++
			}
			missed, wait := beat.after(time.Now())
			dropped += missed
			timer.Reset(wait)
		}
	}
	for ; due > 0; due-- {
		requests = append(requests, <-answers)
		g.ended()
	}
	return requests, dropped, nil
}

// maxDue is how many answers a client waits for at once: more than are due to one that gives up after a second, and few
// enough that neither files nor a server's queue of connections run out where answers come late.
const maxDue = 128

func (g *Generator) ended() {
	if g.Ended != nil {
		g.Ended.Add(1)
	}
}

// beats is a pace that does not hurry after it was held up.
type beats struct {
	next  time.Time
	every time.Duration
}

// after gives the wait from now to the next beat, and how many were missed.
func (b *beats) after(now time.Time) (missed int, wait time.Duration) {
	b.next = b.next.Add(b.every)
	if late := now.Sub(b.next); late > 0 {
		missed = int(late / b.every)
		b.next = b.next.Add(time.Duration(missed) * b.every)
	}
	return missed, b.next.Sub(now)
}

// one begins a connection on this thread; the rest happens elsewhere and ends in answers.
func (g *Generator) one(client int, target Target, ports *ports, w *witness, answers chan<- Request) {
	r := Request{Client: client, Target: target.Name}
	var conn *os.File
	for {
		r.Source = netip.AddrPortFrom(g.Sources[client], ports.draw())
		r.Start = time.Now()
		if conn, r.Err = begin(r.Source, target.Address); !errors.Is(r.Err, unix.EADDRINUSE) {
			break // a port that somebody else has is no request
		}
	}
	if r.Err != nil {
		r.Took = time.Since(r.Start)
		go func() { answers <- r }()
		return
	}
	go func() {
		defer conn.Close()
		g.ask(&r, conn, target, w)
		answers <- r
	}()
}

// maxAnswer bounds what is read of an answer, bytes.
const maxAnswer = 4 << 10

// ask sends the request and takes its answer.
func (g *Generator) ask(r *Request, conn *os.File, target Target, w *witness) {
	var p *patience
	if p, r.Err = newPatience(conn, r.Start, g.Timeout, w); r.Err != nil {
		return
	}
	r.Server, r.Err = exchange(p, target)
	r.Took = time.Since(r.Start)
	switch {
	case r.Err != nil:
	case g.ByPackets:
		var again int
		if again, r.Err = SentAgain(conn); again > 0 {
			r.Err = ErrLost
		}
	case r.Took > g.Timeout:
		r.Unjudged, r.Err = secondTry(conn)
	}
}

func exchange(conn io.ReadWriter, target Target) (server string, err error) {
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", target.Address); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // who opened the connection closes it
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %s", response.Status)
	}
	return target.Check(string(body))
}
