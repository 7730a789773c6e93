// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/passwords"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/appliedstate"
	"fairlead.io/fairlead/dataplane/bgp/opensessions"
	"fairlead.io/fairlead/dataplane/bgp/share"
	"fairlead.io/fairlead/fsm"
)

const (
	// maxState bounds what is said of one session: heartbeats are small.
	maxState = 256
	// detachWithin bounds how long an agent takes to leave its BGP sessions for a while.
	detachWithin = 3 * time.Second
)

// speaking is the node's own BGP side: what members tell it to announce, under the same rules by which a member announces. It
// implements agent.Speaker, bgp.Source and bgp.Group.
type speaking struct {
	speaker   Announcing
	announcer *bgp.Announcer
	passwords *passwords.Keeper
	links     *links
	silence   func() time.Duration
	local     netip.Addr // what sessions are dialled from; unset: the kernel's choice
	log       *slog.Logger
	opened    time.Time
	changed   chan struct{} // of capacity 1, for the announcer
	news      chan struct{} // of capacity 1, for the agent's loop

	mu      sync.Mutex
	before  bgp.Routes  // that were announced before anything was told
	told    bool        // in this run
	peers   share.Share // the peers of what was told
	routes  bgp.Routes
	missing []share.SignedPeer // that are left out
	unfound []unfound          // peers behind interfaces, and what is in the way
	// neighbours are whom peers behind interfaces were last known to be, by interface.
	neighbours map[string]netip.Addr
	met        map[netip.Addr]bool // peers that were not left out once: the speaker knows what they may hold
	holds      time.Time           // until when peers that are left out may hold what an earlier run announced
	through    fsm.Revision        // up to where no other peer holds anything that was withdrawn
	marks      agent.SpeakerMarks
	seen       opensessions.Watch // of the goroutine that watches
	sessions   map[string]string
	number     uint64
	closed     bool
}

// keptRoutes is where a node keeps what it announced last. The folder is the node's own.
func keptRoutes(c config.Agent) appliedstate.File { return appliedstate.In(c.StateDir, "node "+c.Node) }

// openSpeaking starts the speaker, without peers: members tell of those.
func openSpeaking(c config.Agent, e Edges, silence func() time.Duration, log *slog.Logger, metrics prometheus.Registerer) (*speaking, error) {
	if e.Speaker == nil {
		return nil, errors.New("bgp: this node cannot speak it")
	}
	s := &speaking{
		silence: silence, local: c.BGP.LocalAddress, log: log, number: 1,
		opened: time.Now(), met: map[netip.Addr]bool{}, changed: make(chan struct{}, 1), news: make(chan struct{}, 1),
	}
	stored, err := keptRoutes(c).Load()
	if err != nil {
		log.Error("announced state not usable, asking for everything", "err", err)
	}
	if stored != nil {
		s.before = *stored
	}
	s.links, s.neighbours = newLinks(e.Link, s.signAgain), neighboursOf(s.before.Peers)
	s.links.want(slices.Collect(maps.Keys(s.neighbours)))
	s.passwords = passwords.New(passwords.Options{
		Named: s.named, Folder: c.BGP.PasswordDir, Stored: keptRoutes(c).Load, News: s.signAgain, Log: log,
	})
	if s.speaker, err = e.Speaker(c, log); err != nil {
		return nil, fmt.Errorf("bgp: %w", err)
	}
	s.announcer = bgp.NewAnnouncer(bgp.AnnouncerConfig{
		Source: s, Group: s, Speaker: s.speaker, Store: keptRoutes(c), Logger: log,
		Announced: func(r bgp.Revision) { s.mark(func(m *agent.SpeakerMarks) { m.Announced = revision(r) }) },
		Withdrawn: func(r bgp.Revision) { s.markWithdrawn(revision(r)) },
	})
	if err := errors.Join(s.announcer.Register(metrics), metrics.Register(s.speaker), metrics.Register(passwords.Missing(s.leftOut))); err != nil {
		return nil, errors.Join(fmt.Errorf("register metrics of bgp: %w", err), s.close())
	}
	return s, nil
}

func revision(r bgp.Revision) fsm.Revision {
	return fsm.Revision{Epoch: fsm.Epoch(r.Epoch), Index: fsm.Index(r.Index)}
}

// run announces until ctx ends, and then leaves the sessions such that switches keep the paths: the agent comes back as a rule.
func (s *speaking) run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return s.announcer.Run(running) })
	group.Go(func() error { return s.watch(running) })
	group.Go(func() error { return s.passwords.Run(running) })
	group.Go(func() error { return s.links.run(running) })
	err := group.Wait()
	return errors.Join(err, s.close())
}

// close leaves the sessions. It may be repeated.
func (s *speaking) close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), detachWithin)
	defer cancel()
	if err := s.speaker.Detach(ctx); err != nil {
		return fmt.Errorf("leave BGP sessions: %w", err)
	}
	return nil
}

// Have implements agent.Speaker.
func (s *speaking) Have() fsm.Revision {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.told {
		return revision(s.before.Revision)
	}
	return revision(s.routes.Revision)
}

// Tell implements agent.Speaker.
func (s *speaking) Tell(m *fairleadv1.AnnouncementsResponse) error {
	told, err := share.Of(m)
	if err != nil {
		return err
	}
	for i := range told.Peers {
		s.dial(&told.Peers[i])
	}
	for i := range told.Signed {
		s.dial(&told.Signed[i].Peer)
	}
	s.links.want(interfacesOf(told.Unnumbered))
	s.mu.Lock()
	before := s.routes
	if !s.told {
		before = s.before
	}
	s.routes, s.told = told.Routes(before), true
	s.peers = share.Share{Peers: told.Peers, Signed: told.Signed, Unnumbered: told.Unnumbered}
	s.sign()
	s.mu.Unlock()
	signal(s.changed)
	return nil
}

// dial has a peer dialled from where the configuration says.
func (s *speaking) dial(p *bgp.Peer) {
	if s.local.IsValid() && s.local.BitLen() == p.Address.BitLen() {
		p.LocalAddress = s.local
	}
}

// Marks implements agent.Speaker. What is on the wire of the sessions is told with which sessions those are, and not before: else the record would
// have it announced to everybody.
func (s *speaking) Marks() agent.SpeakerMarks {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.marks
	if !out.Sessions.Told {
		out.Announced = fsm.Revision{}
	}
	return out
}

// News implements agent.Speaker.
func (s *speaking) News() <-chan struct{} { return s.news }

func (s *speaking) mark(change func(*agent.SpeakerMarks)) {
	s.mu.Lock()
	change(&s.marks)
	s.mu.Unlock()
	signal(s.news)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake already
	}
}

// Routes implements bgp.Source. Before anything was told there are none, of no revision.
func (s *speaking) Routes() bgp.Routes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.routes
}

// Changed implements bgp.Source.
func (s *speaking) Changed() <-chan struct{} { return s.changed }

// Contact implements bgp.Group. What a member in good standing told first in this run is what has to be known before anything
// is announced.
func (s *speaking) Contact() bgp.Contact {
	silence := s.silence()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.routes.Revision.Index
	return bgp.Contact{Silence: silence, Commit: at, Applied: at}
}

// Sessions implements agent.Speaker.
func (s *speaking) Sessions() (map[string]string, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions, s.number
}

// watch looks at the sessions now and then, until ctx ends.
func (s *speaking) watch(ctx context.Context) error {
	ticks := time.NewTicker(opensessions.Every)
	defer ticks.Stop()
	for {
		s.look(ctx)
		s.lookWhoIsSent(ctx)
		s.release()
		s.sayUnfound()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
		}
	}
}

func (s *speaking) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, opensessions.Every)
	defer cancel()
	states, err := s.speaker.Sessions(ctx)
	if err != nil {
		s.log.Debug("BGP sessions not read", "err", err)
		return
	}
	s.withoutSession(states)
	for name, state := range states {
		states[name] = fsm.Text(state, maxState)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !maps.Equal(states, s.sessions) {
		s.sessions = states
		s.number++
	}
}

// lookWhoIsSent finds out which sessions count as open. Before anything was told in this run it is not known which there are to be.
func (s *speaking) lookWhoIsSent(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, opensessions.Every)
	defer cancel()
	links, err := s.speaker.Links(ctx)
	if err != nil {
		s.log.Debug("BGP sessions not looked at", "err", err)
	}
	s.mu.Lock()
	peers, have, told := s.routes.Peers, s.marks.Sessions, s.told
	s.mu.Unlock()
	if !told {
		return
	}
	wanted := make([]opensessions.Peer, 0, len(peers))
	for _, p := range peers {
		wanted = append(wanted, opensessions.Peer{Name: fsm.PeerName(p.Name), Address: p.Address})
	}
	slices.SortFunc(wanted, func(a, b opensessions.Peer) int { return cmp.Compare(a.Name, b.Name) })
	open, settled := s.seen.Look(time.Now(), links, wanted, have)
	if now := (fsm.Sessions{Told: true, Open: open}); settled && !now.Equal(have) {
		s.mark(func(m *agent.SpeakerMarks) { m.Sessions = now })
	}
}

// retirement is what a node owes that announced itself once, and is not to any more.
func retirement(c config.Agent, log *slog.Logger) *agent.Retirement {
	keeps := bgp.Peer{}.Normal(0).Keeps()
	stored, err := keptRoutes(c).Load()
	if err != nil {
		log.Error("announced state not usable", "err", err)
	}
	if stored != nil {
		for _, p := range stored.Peers {
			keeps = max(keeps, p.Normal(0).Keeps())
		}
	}
	return &agent.Retirement{After: keeps, Done: func() {
		err := os.Remove(filepath.Join(c.StateDir, appliedstate.FileName))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Error("announced state not removed", "err", err)
		}
	}}
}
