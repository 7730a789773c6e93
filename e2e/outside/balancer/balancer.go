// SPDX-License-Identifier: Apache-2.0

// Package balancer plays outside load balancers and the driver in front of them, for tests and benchmarks: it answers
// as well or as badly as it is told, keeps what is on the load balancers, and notes whoever breaks the rules.
//
// Entries that the test put there itself are foreign: nobody may touch them. A call that hangs takes effect after its
// caller stopped waiting, as calls of real drivers may. Start reading at Start and Fault.
package balancer

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/driver/kit"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// Fault is how a call goes.
type Fault uint8

// Faults. All but None and Fail leave the caller without a usable answer, or with none yet.
const (
	None    Fault = iota
	Fail          // answers Fail, and does nothing
	Broken        // breaks the connection before doing anything
	Lose          // does it, and breaks the connection before the answer
	Hang          // answers nothing; does it when the caller has gone, Late after that
	Running       // answers Running the first time; the next call finds it done
	Garbage       // answers something that is no JSON
)

// Call is one call of the driver, for Balancer.Fault.
type Call struct {
	Webhook  webhook.Name
	RecordID string
	Balancer string
	Address  string
	Number   int // of this webhook about this address, from 1
}

// Balancer is all load balancers of one driver. Its methods may be called from any goroutine.
type Balancer struct {
	// URL is where the driver answers.
	URL string

	mu       sync.Mutex
	fault    func(Call) Fault
	latency  time.Duration
	late     time.Duration
	on       map[string]map[string]Entry // by balancer and address
	foreign  map[string]map[string]bool
	numbers  map[string]int
	inFlight map[string]*caller // by (balancer, address), until the call is answered or its end was noticed
	ended    map[string]bool    // UIDs whose deregistration was confirmed
	begun    map[string]bool    // calls that were answered Running once
	calls    map[webhook.Name]int
	broken   []string
	heard    map[string]bool
	latecome sync.WaitGroup
	bound    func(address string, at time.Time)
	live     func(address string) bool
}

// Entry is a server on a load balancer.
type Entry struct {
	Parameters map[string]string
	RecordID   string
}

// Start starts the driver on loopback; it ends with the test.
func Start(t testing.TB) *Balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &Balancer{
		URL: "http://" + listener.Addr().String(), late: 2 * time.Second,
		on: map[string]map[string]Entry{}, foreign: map[string]map[string]bool{}, numbers: map[string]int{},
		inFlight: map[string]*caller{}, ended: map[string]bool{}, begun: map[string]bool{}, calls: map[webhook.Name]int{}, heard: map[string]bool{},
	}
	server := &http.Server{
		Handler: b.spoiled(kit.NewHandler(b, kit.HandlerOptions{})), ReadHeaderTimeout: 10 * time.Second, ConnContext: withConn,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // it ends by Close
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
		b.latecome.Wait()
	})
	return b
}

// Faults decides from now on how calls go; nil for well.
func (b *Balancer) Faults(fault func(Call) Fault) { b.set(func() { b.fault = fault }) }

// Latency is how long every call takes.
func (b *Balancer) Latency(d time.Duration) { b.set(func() { b.latency = d }) }

// Late is how long after its caller has gone a call that hangs takes effect.
func (b *Balancer) Late(d time.Duration) { b.set(func() { b.late = d }) }

// OnBound is told when a backend was put on.
func (b *Balancer) OnBound(f func(address string, at time.Time)) { b.set(func() { b.bound = f }) }

func (b *Balancer) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// Foreign puts somebody else's server on a load balancer.
func (b *Balancer) Foreign(balancer, address string) {
	b.set(func() { put(b.foreign, balancer, address, true) })
}

// Remove takes an entry off by hand.
func (b *Balancer) Remove(balancer, address string) {
	b.set(func() { delete(b.on[balancer], address) })
}

func put[T any](m map[string]map[string]T, balancer, address string, v T) {
	if m[balancer] == nil {
		m[balancer] = map[string]T{}
	}
	m[balancer][address] = v
}

// On lists what is on a load balancer but foreign entries, in order.
func (b *Balancer) On(balancer string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.on[balancer]))
}

// Entry gives what is on a load balancer at an address.
func (b *Balancer) Entry(balancer, address string) (Entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.on[balancer][address]
	return e, ok
}

// Foreigners lists the foreign entries, in order.
func (b *Balancer) Foreigners(balancer string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.foreign[balancer]))
}

// Calls counts the calls of a webhook.
func (b *Balancer) Calls(n webhook.Name) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[n]
}

// Broken lists the rules that callers broke.
func (b *Balancer) Broken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.broken)
}

// rule notes a broken rule. The caller holds b.mu.
func (b *Balancer) rule(format string, args ...any) {
	b.broken = append(b.broken, fmt.Sprintf(format, args...))
}

// spoil is what the handler around the kit does to an answer.
type spoil struct{ fault Fault }

type spoilKey struct{}

// spoiled breaks connections and answers garbage where a call asks for it.
func (b *Balancer) spoiled(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &spoil{}
		answer := &held{header: http.Header{}, status: http.StatusOK}
		h.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), spoilKey{}, s)))
		switch s.fault {
		case Broken, Lose, Hang:
			panic(http.ErrAbortHandler)
		case Garbage:
			answer.body = []byte("<html>out of order</html>")
		}
		maps.Copy(w.Header(), answer.header)
		w.WriteHeader(answer.status)
		_, _ = w.Write(answer.body) // whoever asked is gone
	})
}

// held keeps an answer until it is known whether to give it.
type held struct {
	header http.Header
	status int
	body   []byte
}

func (a *held) Header() http.Header { return a.header }

func (a *held) WriteHeader(status int) { a.status = status }

func (a *held) Write(p []byte) (int, error) {
	a.body = append(a.body, p...)
	return len(p), nil
}

// Quiet waits until everything that was to take effect late has.
func (b *Balancer) Quiet() { b.latecome.Wait() }

// Guard has rule broken by whoever takes a backend off while it is live.
func (b *Balancer) Guard(live func(address string) bool) { b.set(func() { b.live = live }) }

// Put puts a backend on a load balancer, as if a call had.
func (b *Balancer) Put(balancer, address string) {
	b.set(func() { put(b.on, balancer, address, Entry{}) })
}

// Heard tells whether there was a call about a backend with this "recordID injectedInfo".
func (b *Balancer) Heard(call string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heard[call]
}
