// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	gobgpserver "github.com/osrg/gobgp/v4/pkg/server"

	"fairlead.io/fairlead/dataplane/bgp"
)

// Config is what is a speaker's own; everything else is in what it shall announce.
type Config struct {
	ASN         uint32
	RouterID    netip.Addr   // an IPv4 address, unique among the speakers that a switch knows
	ListenPort  uint16       // 0: do not listen, only dial
	ListenAddrs []netip.Addr // empty: all
	Logger      *slog.Logger // required
	// Management is where GoBGP's own API answers questions: host:port, or unix:// and a path; empty: nowhere. Everybody
	// who reaches it may ask. If it cannot listen there the speaker goes on without it and says so in the log.
	Management string
}

func (c Config) validate() error {
	switch {
	case c.ASN == 0:
		return errors.New("no AS number")
	case !c.RouterID.Is4() || c.RouterID.IsUnspecified():
		return fmt.Errorf("router id %q: must be an IPv4 address of this host", c.RouterID)
	case c.Logger == nil:
		return errors.New("no logger")
	}
	return nil
}

// Speaker announces paths to peers. Its methods may be called from several goroutines; changes are made one by one.
type Speaker struct {
	asn     uint32
	port    uint16 // that it listens at; 0: none
	server  *gobgpserver.BgpServer
	atOnce  int // prefixes that are read back
	logger  *logger
	unhook  context.CancelFunc // ends the watch of sessions
	limited chan struct{}      // closed when that of what peers ask for has ended

	mu      sync.Mutex // held while the speaker is changed
	stopped bool
	names   map[netip.Addr]string // of peers, for people
	told    told
	terms   terms // under which paths are announced
	residue bgp.Residue
	linked  []bgp.Link               // what Links told last
	healed  map[netip.Addr]time.Time // when sessions were last restarted for what peers kept

	openings openings

	sessionsMu sync.Mutex
	sessions   map[netip.Addr]*session // open ones; GoBGP tells their ports only when they open
	refused    map[netip.Addr]int      // paths that peers sent on them
	demanding  map[netip.Addr]int      // sessions that were closed for what peers asked for
	queues     map[netip.Addr]*queue   // of the sessions that opened or are opening last
	opened     uint64                  // sessions so far
	keeping    bgp.Keeping
	without    map[netip.Addr]time.Time  // since when peers have no session
	unnumbered map[netip.Addr]netip.Addr // peers by their addresses without zones
}

// New starts a speaker that has no paths and no peers. Detach or Drain ends it.
func New(c Config) (*Speaker, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("start bgp speaker: %w", err)
	}
	s := &Speaker{
		asn: c.ASN, port: c.ListenPort, atOnce: readBackAtOnce, logger: newLogger(c.Logger), healed: map[netip.Addr]time.Time{},
		names: map[netip.Addr]string{}, sessions: map[netip.Addr]*session{}, queues: map[netip.Addr]*queue{}, refused: map[netip.Addr]int{}, demanding: map[netip.Addr]int{},
		without: map[netip.Addr]time.Time{}, unnumbered: map[netip.Addr]netip.Addr{},
	}
	s.openings.since = map[netip.Addr]*patience{}
	s.logger.written, s.logger.received, s.logger.up = s.onWritten, s.unlearn, s.onUp
	options := []gobgpserver.ServerOption{gobgpserver.LoggerOption(slog.New(handler{logger: s.logger}), nil)}
	s.server = gobgpserver.NewBgpServer(append(options, management(c)...)...)
	go s.server.Serve()
	if err := s.start(c); err != nil {
		s.stopServer()
		return nil, fmt.Errorf("start bgp speaker: %w", err)
	}
	return s, nil
}

// listenRemedy says what to do where the port of the configuration cannot be listened at.
func listenRemedy(err error) string {
	const elseDial = "or set bgp.port to another one that switches dial, or to -1 to dial only"
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "give the process CAP_NET_BIND_SERVICE, which ports below 1024 take, " + elseDial
	case errors.Is(err, syscall.EADDRINUSE):
		return "end the other program that listens there, such as another BGP speaker, " + elseDial
	}
	return "see bgp.listen and bgp.port, " + elseDial
}

func (s *Speaker) start(c Config) error {
	ctx := context.Background()
	global := &api.Global{Asn: c.ASN, RouterId: c.RouterID.String(), ListenPort: -1}
	if c.ListenPort != 0 {
		global.ListenPort = int32(c.ListenPort)
		for _, a := range listenAddrs(c.ListenAddrs) {
			global.ListenAddresses = append(global.ListenAddresses, a.String())
		}
	}
	if err := s.server.StartBgp(ctx, &api.StartBgpRequest{Global: global}); err != nil {
		return fmt.Errorf("port %d: %w (%s)", c.ListenPort, err, listenRemedy(err))
	}
	if err := s.installPolicies(ctx, nil); err != nil {
		return err
	}
	if err := s.assignPolicies(ctx); err != nil {
		return err
	}
	watch, cancel := context.WithCancel(ctx)
	s.unhook, s.limited = cancel, make(chan struct{})
	go s.limitDemands(watch)
	return s.server.WatchEvent(watch, gobgpserver.WatchEventMessageCallbacks{OnPeerUpdate: s.onEvent}, gobgpserver.WatchPeer())
}

// listenAddrs returns the addresses to listen at: those given, or all of the families that this host has.
func listenAddrs(given []netip.Addr) []netip.Addr {
	if len(given) > 0 {
		return given
	}
	all := []netip.Addr{netip.IPv4Unspecified()}
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		l.Close()
		all = append(all, netip.IPv6Unspecified())
	}
	return all
}

// Apply makes the speaker announce desired, adding before removing, with no session touched but those that must be.
//
// It returns once GoBGP has taken every change; Written tells when they have left. It is safe to repeat. Errors:
// bgp.ErrInvalid for what cannot be announced, after all the rest was applied; bgp.ErrStopped; ctx.Err(); others after
// which a part of the steps was done and a repetition does the rest.
func (s *Speaker) Apply(ctx context.Context, desired bgp.Desired) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return bgp.ErrStopped
	}
	paths, look, next := desired.Paths, s.told.changed(desired), s.told
	whole := look == nil
	var observed bgp.Observed
	var err error
	if whole {
		began := time.Now()
		look, observed, err = s.compare(ctx, paths)
		next.looked(time.Since(began))
	} else {
		observed, err = s.observe(ctx, look)
	}
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	desired.Paths = paths.Only(look)
	for _, p := range desired.Peers {
		s.names[p.Address.Unmap()] = p.Name
	}
	renamed, err := s.setTerms(ctx, s.terms.with(desired.Paths, desired.Peers).keeping(s.terms, paths, desired.Peers))
	if err != nil {
		return err
	}
	steps, invalid := bgp.Plan(s.asn, desired, observed)
	refused, err := s.doAll(ctx, inRounds(steps, observed.Paths))
	invalid = errors.Join(invalid, refused)
	if err != nil {
		s.told = told{}
		return err
	}
	next.note(paths, invalid == nil)
	s.told = next
	if whole { // all paths were looked at: what none of them bears is over
		if _, err := s.setTerms(ctx, terms{}.with(paths, desired.Peers)); err != nil {
			return err
		}
	}
	return errors.Join(invalid, s.restartAll(ctx, renamed))
}

// doAll takes rounds of steps up to the first step that fails. What is invalid is left out, and told.
func (s *Speaker) doAll(ctx context.Context, rounds []round) (invalid, err error) {
	for _, r := range rounds {
		done, err := s.expect(ctx, r)
		if err != nil {
			return invalid, err
		}
		refused, err := s.doRound(ctx, r)
		done()
		invalid = errors.Join(invalid, refused)
		if err != nil {
			return invalid, err
		}
	}
	return invalid, nil
}

func (s *Speaker) doRound(ctx context.Context, r round) (invalid, err error) {
	for some := range slices.Chunk(r.steps, namesAtOnce) {
		refused, err := s.doSome(ctx, some)
		invalid = errors.Join(invalid, refused)
		if err != nil {
			return invalid, err
		}
		if err := s.forgetNames(); err != nil {
			return invalid, err
		}
	}
	return invalid, nil
}

func (s *Speaker) doSome(ctx context.Context, steps []bgp.Step) (invalid, err error) {
	for _, step := range steps {
		if err = ctx.Err(); err == nil {
			err = s.do(ctx, step)
		}
		if errors.Is(err, bgp.ErrInvalid) {
			invalid, err = errors.Join(invalid, err), nil
		}
		if err != nil {
			return invalid, err
		}
	}
	return invalid, nil
}

func (s *Speaker) do(ctx context.Context, step bgp.Step) error {
	switch step.Action {
	case bgp.SetDemoted:
		return s.setDemoted(ctx, step.Demoted)
	case bgp.AddPath:
		p, err := encodePath(step.Path, s.asn)
		if err != nil {
			return err
		}
		if _, err := s.server.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{p}}); err != nil {
			return fmt.Errorf("add path %s: %w", step.Path, err)
		}
	case bgp.RemovePath:
		p, err := encodePath(step.Path, s.asn)
		if err != nil {
			return err
		}
		s.residue.Removed(step.Path.Prefix)
		// By prefix and identifier: GoBGP searches its whole table for anything else.
		if err := s.server.DeletePath(apiutil.DeletePathRequest{Paths: []*apiutil.Path{p}}); err != nil {
			return fmt.Errorf("remove path %s: %w", step.Path, err)
		}
	case bgp.AddPeer:
		s.meet(*step.Peer)
		return s.addPeer(ctx, *step.Peer)
	case bgp.TunePeer:
		if _, err := s.server.UpdatePeer(ctx, &api.UpdatePeerRequest{Peer: encodePeer(*step.Peer)}); err != nil {
			return fmt.Errorf("change peer %s: %w", step.Peer.Address, err)
		}
	case bgp.RestartPeer:
		s.meet(*step.Peer)
		return s.restartPeer(ctx, *step.Peer)
	case bgp.RemovePeer:
		return s.removePeer(ctx, *step.Peer)
	default:
		return fmt.Errorf("%s: not known to this speaker", step.Action)
	}
	return nil
}

// setDemoted changes who is demoted, and sends those whom it concerns all paths anew, packed as few UPDATEs.
func (s *Speaker) setDemoted(ctx context.Context, demoted []netip.Addr) error {
	before, err := s.listDemoted(ctx)
	if err != nil {
		return err
	}
	if err := s.installPolicies(ctx, demoted); err != nil {
		return err
	}
	peers, err := s.listPeers(ctx)
	if err != nil {
		return fmt.Errorf("list peers: %w", err)
	}
	for a, p := range peers {
		if contains(before, a) == contains(demoted, a) || p.GetState().GetSessionState() != api.PeerState_SESSION_STATE_ESTABLISHED {
			continue
		}
		s.tableAgain(a, time.Now())
		req := &api.ResetPeerRequest{Address: a.String(), Soft: true, Direction: api.ResetPeerRequest_DIRECTION_OUT}
		if err := s.server.ResetPeer(ctx, req); err != nil {
			return fmt.Errorf("send all paths to peer %s again: %w", a, err)
		}
	}
	return nil
}

func contains(list []netip.Addr, a netip.Addr) bool {
	for _, b := range list {
		if a == b {
			return true
		}
	}
	return false
}

// addPeer opens a session. A peer whose password cannot be set is not added: GoBGP would go on without it.
func (s *Speaker) addPeer(ctx context.Context, p bgp.Peer) error {
	if p.Password != "" && !md5Works() {
		return fmt.Errorf("peer %s: %w: password set, and this kernel cannot sign TCP (needs TCP_MD5SIG)", p.Address, bgp.ErrInvalid)
	}
	before := s.logger.unsigned.Load()
	if err := s.server.AddPeer(ctx, &api.AddPeerRequest{Peer: encodePeer(p)}); err != nil {
		return fmt.Errorf("add peer %s: %w", p.Address, err)
	}
	if s.logger.unsigned.Load() == before {
		return nil
	}
	// Go listens by Multipath TCP, which cannot sign, unless it is told otherwise.
	err := fmt.Errorf("peer %s: %w: its password cannot be set on the listening socket (run with GODEBUG=multipathtcp=0)",
		p.Address, bgp.ErrInvalid)
	return errors.Join(err, s.removePeer(ctx, p))
}

// removePeer ends the session for good. GoBGP forgets the key of the listener only when the password is changed first.
func (s *Speaker) removePeer(ctx context.Context, p bgp.Peer) error {
	open, err := s.established(ctx, p.Address) // before another password ends it, which takes leave of the peer as well
	if err != nil {
		return err
	}
	if p.Password != "" {
		p.Password = ""
		if _, err := s.server.UpdatePeer(ctx, &api.UpdatePeerRequest{Peer: encodePeer(p)}); err != nil {
			return fmt.Errorf("remove password of peer %s: %w", p.Address, err)
		}
	}
	s.leaveSession(p.Address)
	if open {
		s.left(p.Address)
	}
	s.forget(p.Address)
	if err := s.server.DeletePeer(ctx, &api.DeletePeerRequest{Address: p.Address.String()}); err != nil {
		return fmt.Errorf("remove peer %s: %w", p.Address, err)
	}
	return nil
}

// stopServer ends GoBGP: sessions that are still open with a NOTIFICATION, then the server and all its goroutines.
func (s *Speaker) stopServer() {
	if s.unhook != nil {
		s.unhook()
		<-s.limited // GoBGP answers nobody once it has stopped
	}
	s.server.Stop()
}
