// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/fsm"
)

// Failure is an address that could not be carried out, and why.
type Failure struct {
	Prefix netip.Prefix
	Why    string
}

// Applier brings the node to a state. One goroutine calls it, with states whose revisions never run back; it is
// safe to repeat, and after a restart of the agent it adopts what is there. It returns the addresses that it
// could not carry out, where all others were; with an error nothing counts as carried out.
type Applier interface {
	Apply(ctx context.Context, want desired.State) (failed []Failure, err error)
}

// Store keeps one state over restarts of agent and machine.
type Store interface {
	// Load gives what was saved last, nil if nothing ever was.
	Load() ([]byte, error)
	// Save replaces it. When it returns nil the data survives a loss of power; else the old data is still there.
	Save(data []byte) error
}

// Conn is a way to one member. It connects when it is first used.
type Conn interface {
	fairleadv1connect.AgentServiceClient
	Close()
}

// Options is what an Agent is made of. Fields without "optional" are required.
type Options struct {
	Node    string                    // the name in the agent's certificate
	Boot    string                    // the kernel's boot id
	Seeds   []string                  // host:port of members' APIs; the others are learned
	Connect func(address string) Conn // makes a new connection
	Store   Store
	Applier Applier
	// AddressesOnly says that the Applier has no use for Services. Optional.
	AddressesOnly bool
	// AllServices says that the Applier serves node ports or ClusterIPs: it is told Services that have no address, too. Optional.
	AllServices bool
	// Tunnels says that the Applier makes tunnels, for which it needs AllServices. Optional.
	Tunnels bool
	// Redirects says that the Applier carries redirects out. Optional.
	Redirects bool
	// Underlay is, of a host outside the cluster, where other machines reach it. Optional.
	Underlay []netip.Addr
	Leases   Leases  // optional: without, the node answers for nothing on its segments
	Flows    Flows   // optional: without, the node says that it counts none
	Speaker  Speaker // optional: without, the node announces nothing itself
	Probes   Probes  // optional: without, the node says that it probes nothing
	// DenyList is what Connect asks about members; optional: nobody is told of revocations.
	DenyList *DenyList
	// Retirement is for a node without Speaker that had one; optional.
	Retirement *Retirement
	Log        *slog.Logger
	Metrics    prometheus.Registerer // optional
	Tuning     Tuning                // zero fields take their default
}

// Tuning is what tests, simulations and unusual networks change.
type Tuning struct {
	Heartbeat time.Duration // between two heartbeats to one member. Default 200 ms
	// Silence is after how long without an answer a member is left, or dialled anew. Default 3 s.
	Silence time.Duration
	// FirstStep is how long a member may take for its first word. Default 5 s.
	FirstStep time.Duration
	// RetryMin and RetryMax bound the pauses after something failed. Defaults 100 ms and 10 s.
	RetryMin, RetryMax time.Duration
	// Between is from the beginning of one state's carrying out to that of the next, at least, so that bursts of changes are
	// one. Default none: what is told while a state is carried out is one already.
	Between time.Duration
}

func (t Tuning) withDefaults() Tuning {
	t.Heartbeat = cmp.Or(t.Heartbeat, desired.Heartbeat)
	t.Silence = cmp.Or(t.Silence, 3*time.Second)
	t.FirstStep = cmp.Or(t.FirstStep, 5*time.Second)
	t.RetryMin = cmp.Or(t.RetryMin, 100*time.Millisecond)
	t.RetryMax = cmp.Or(t.RetryMax, 10*time.Second)
	return t
}

func (o *Options) validate() error {
	switch {
	case o.Node == "":
		return errors.New("start agent: it has no node name; name the node")
	case o.Boot == "":
		return errors.New("start agent: the boot id is missing; it stands in /proc/sys/kernel/random/boot_id")
	case len(o.Seeds) == 0:
		return errors.New("start agent: no member is named; name host:port of at least one")
	}
	return nil
}

// Agent is the loop of one node.
type Agent struct {
	o       Options
	log     *slog.Logger
	metrics *metrics
	fleet   *fleet
	began   time.Time // what beats keep time with

	told   mailbox[desired.State] // by a member; to be carried out
	done   mailbox[ack]           // carried out; to be acknowledged
	leased chan struct{}          // of capacity 1: a member said that leases are to be renewed
	spoke  chan struct{}          // of capacity 1: a member said that this node speaks

	toCount chan struct{}           // of capacity 1: a member said that flows are to be counted
	counted atomic.Pointer[counted] // the newest count while any member asks for them, else nil

	mu     sync.Mutex
	status Status
	wanted desired.State // the newest that was to be carried out
	at     *bond         // with the member that is followed, nil for none
	tried  *bond         // with that one, or with the one that was asked to serve
}

// Status is how an agent stands.
type Status struct {
	Member       string       // address of the member that is followed; empty for none
	Group        string       // that the agent belongs to; empty before it heard of any
	Told         fsm.Revision // newest that a member told
	Applied      fsm.Revision // newest that was carried out
	Acknowledged fsm.Revision // newest that the group committed as such, in this run
	Failed       []Failure    // of Applied
	// Behind is since when something that was told is not carried out; zero when nothing is. It begins anew with each
	// state that is carried out.
	Behind time.Time
	// Synced is when something was carried out last in this run, zero if nothing was.
	Synced time.Time
	// Leaving says that the cluster's autoscaler is about to delete the node, as Told has it.
	Leaving bool
	// Telling says that a member tells the speaker what to announce. Untold is when one last did; zero while one does, or
	// before any did.
	Telling bool
	Untold  time.Time
}

// New makes an agent. Errors: an option is missing, the metrics are registered already.
func New(o Options) (*Agent, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o.Tuning = o.Tuning.withDefaults()
	m, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		o: o, log: o.Log, metrics: m, began: time.Now(),
		told: newMailbox[desired.State](), done: newMailbox[ack](), leased: make(chan struct{}, 1), spoke: make(chan struct{}, 1),
		toCount: make(chan struct{}, 1),
	}
	if o.DenyList != nil {
		m.revoked.Set(float64(o.DenyList.Len()))
	}
	a.fleet = newFleet(a)
	return a, nil
}

// Run works until ctx ends, and then returns its error. Nothing is undone at the end: the node keeps its state.
//
// Errors: the store cannot be read.
func (a *Agent) Run(ctx context.Context) error {
	last, err := a.load()
	if err != nil {
		return err
	}
	if !last.IsZero() {
		a.note(func(s *Status) {
			s.Told, s.Group, s.Behind, s.Leaving = last.Revision, last.Group, time.Now(), last.Leaving
		})
		a.told.put(last)
	}
	var running sync.WaitGroup
	for _, part := range []func(context.Context){
		func(ctx context.Context) { a.follow(ctx, last) },
		func(ctx context.Context) { a.apply(ctx, last) },
		a.acknowledge,
		a.fleet.run,
		a.lease,
		a.count,
		a.announce,
		a.reportSpeaker,
	} {
		running.Go(func() { part(ctx) })
	}
	running.Wait()
	return ctx.Err()
}

// load reads the last state. One that is damaged is as good as none: everything is asked for, and the node
// stays as it is until the answer.
func (a *Agent) load() (desired.State, error) {
	data, err := a.o.Store.Load()
	if err != nil {
		return desired.State{}, fmt.Errorf("start agent: read the last state: %w", err)
	}
	if data == nil {
		return desired.State{}, nil
	}
	last, err := desired.Unmarshal(data)
	if err != nil {
		a.log.Error("last state not usable, asking for everything", "err", err)
		return desired.State{}, nil
	}
	return last, nil
}

// Status tells how the agent stands.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

// Membership is what the agent belongs to, for its handshakes.
func (a *Agent) Membership() (group string, epoch uint64) {
	s := a.Status()
	return s.Group, uint64(s.Told.Epoch)
}

func (a *Agent) note(f func(*Status)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.status)
}

// mailbox holds the newest value only: who is slow skips what was overtaken.
type mailbox[T any] struct{ c chan T }

func newMailbox[T any]() mailbox[T] { return mailbox[T]{make(chan T, 1)} }

// put replaces what is there. One goroutine puts.
func (m mailbox[T]) put(v T) {
	select {
	case <-m.c:
	default:
	}
	m.c <- v
}

// backoff is the pause after something failed: it doubles up to a bound.
type backoff struct{ min, max, next time.Duration }

func (t Tuning) backoff() *backoff { return &backoff{min: t.RetryMin, max: t.RetryMax} }

func (b *backoff) reset() { b.next = 0 }

func (b *backoff) pause() time.Duration {
	b.next = min(max(b.next*2, b.min), b.max)
	return b.next
}

// sleep waits, and tells whether ctx still runs.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
