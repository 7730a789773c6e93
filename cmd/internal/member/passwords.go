// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// passwordKey is the key of a password in a Secret, as in type kubernetes.io/basic-auth.
const passwordKey = "password"

// passwords are those of peers that are in Secrets. They are read beside the announcer, which never waits for the API server,
// and only those that a peer of the record names. A password that was read once counts until another one is: neither a Secret
// that is gone nor an API server that is away ends a session.
type passwords struct {
	read  func(ctx context.Context, namespace, name string) (map[string][]byte, error)
	state *fsm.State
	// stored gives what this member announced in an earlier run, to whom, and by which passwords; nil if there is none.
	stored func() (*bgp.Routes, error)
	news   func() // a password is another one than before
	log    *slog.Logger

	asked chan struct{} // somebody asked for a password that is not known
	mu    sync.Mutex
	known map[string]bgp.Secret // by PasswordFrom
	fault map[string]string     // why the last look failed
}

func newPasswords(state *fsm.State, stored func() (*bgp.Routes, error), log *slog.Logger) *passwords {
	return &passwords{
		state: state, stored: stored, log: log, asked: make(chan struct{}, 1), known: map[string]bgp.Secret{}, fault: map[string]string{},
	}
}

// passwordsEvery is how often Secrets are looked at; the reader asks the API server less often than that.
const passwordsEvery = 2 * time.Second

// of gives a password that is in a Secret, without waiting for anybody.
func (p *passwords) of(from string) (bgp.Secret, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.known[from]; ok {
		return known, true
	}
	select {
	case p.asked <- struct{}{}:
	default:
	}
	if before, ok := p.ofEarlierRun(from); ok {
		p.known[from] = before
		return before, true
	}
	return "", false
}

// ofEarlierRun finds the password of the peers that name it among those announced to before this process started.
func (p *passwords) ofEarlierRun(from string) (bgp.Secret, bool) {
	routes, err := p.stored()
	if err != nil || routes == nil {
		return "", false
	}
	for _, peer := range fsm.List[*fsm.Peer](p.state.Read(), fsm.TablePeers) {
		i := slices.IndexFunc(routes.Peers, func(q bgp.Peer) bool {
			return q.Name == string(peer.Name) && q.Address == peer.Address && q.Password != ""
		})
		if peer.PasswordFrom == from && i >= 0 {
			return routes.Peers[i].Password, true
		}
	}
	return "", false
}

// run reads passwords once somebody has asked for one, until ctx ends.
func (p *passwords) run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.asked:
	}
	tick := time.NewTicker(passwordsEvery)
	defer tick.Stop()
	for {
		if p.look(ctx) {
			p.news()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.asked:
		case <-tick.C:
		}
	}
}

// look reads the Secrets that peers name. It tells whether a password is another one than before.
func (p *passwords) look(ctx context.Context) (changed bool) {
	named := map[string]bool{}
	for _, peer := range fsm.List[*fsm.Peer](p.state.Read(), fsm.TablePeers) {
		if _, _, ok := world.ParsePasswordSecret(peer.PasswordFrom); ok {
			named[peer.PasswordFrom] = true
		}
	}
	for _, from := range slices.Sorted(maps.Keys(named)) {
		password, err := p.fetch(ctx, from)
		if ctx.Err() != nil {
			return changed
		}
		changed = p.note(from, password, err) || changed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.known, func(from string, _ bgp.Secret) bool { return !named[from] })
	maps.DeleteFunc(p.fault, func(from, _ string) bool { return !named[from] })
	return changed
}

func (p *passwords) fetch(ctx context.Context, from string) (bgp.Secret, error) {
	namespace, name, _ := world.ParsePasswordSecret(from)
	data, err := p.read(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(data[passwordKey]), "\r\n")
	if password == "" {
		return "", errors.New(from + ": no key " + passwordKey + ", or nothing under it; put the password there")
	}
	return bgp.Secret(password), nil
}

// note takes in the outcome of a look, and says so where it is another one than before.
func (p *passwords) note(from string, password bgp.Secret, err error) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if p.fault[from] != err.Error() {
			_, known := p.known[from]
			p.log.Error("password of a BGP peer not read", "from", from, "err", err, "goes_on_with_former", known)
		}
		p.fault[from] = err.Error()
		return false
	}
	delete(p.fault, from)
	before, known := p.known[from]
	p.known[from] = password
	return !known || before != password
}
