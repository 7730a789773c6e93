// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/derive"
	"fairlead.io/fairlead/dataplane/bgp/legacy"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/smallfile"
)

// secretsOf finds the passwords of peers where their PasswordFrom says: in config_bgp.toml, in a BGPPeer as this
// member's own sources show it, or elsewhere, in a Secret or a file.
func secretsOf(c config.BGP, state *fsm.State, worlds func() []world.World, elsewhere derive.Secrets) derive.Secrets {
	return func(peer bgp.Peer, from string) (bgp.Secret, bool) {
		if address, ok := strings.CutPrefix(from, passwordFromTOML); ok {
			return passwordInTOML(c.ConfigFile, address)
		}
		if password, ok := passwordInObject(state.Read(), worlds(), from); ok {
			return password, true
		}
		return elsewhere(peer, from)
	}
}

// namedElsewhere lists the passwords of members' peers that are in Secrets or files.
func namedElsewhere(state *fsm.State, worlds func() []world.World) (names []string) {
	shown, record := worlds(), state.Read()
	for _, p := range fsm.List[*fsm.Peer](record, fsm.TablePeers) {
		_, inObject := passwordInObject(record, shown, p.PasswordFrom)
		if p.PasswordFrom != "" && !p.Nodes.Speak && !inObject && !strings.HasPrefix(p.PasswordFrom, passwordFromTOML) {
			names = append(names, p.PasswordFrom)
		}
	}
	return names
}

// ownPasswordsEvery is how often passwords in objects and in config_bgp.toml are looked at anew.
const ownPasswordsEvery = 5 * time.Second

// followOwnPasswords has peers derived anew whenever a password of one is another, until ctx ends: the record has what it is called alone, so
// that nothing else tells of a password that stands in an object or in config_bgp.toml.
func (r *routes) followOwnPasswords(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if r.outdated() {
				r.again()
			}
		}
	}
}

// outdated tells whether a peer would be derived with another password than it was.
func (r *routes) outdated() bool {
	view := r.state.Read()
	peers, _ := derive.Peers(view, r.secrets)
	r.mu.Lock()
	defer r.mu.Unlock()
	if view.Aside(r.self) {
		return false
	}
	return slices.ContainsFunc(peers, func(p bgp.Peer) bool {
		return slices.ContainsFunc(r.derived.Peers, func(q bgp.Peer) bool { return p.Name == q.Name && p.Password != q.Password })
	}) || len(peers) != len(r.derived.Peers)
}

// passwordInObject finds the password in a BGPPeer. Where several have the peer's name it is in the one that the record has the peer from:
// another one's would end the session.
func passwordInObject(record *fsm.View, worlds []world.World, from string) (bgp.Secret, bool) {
	var found []*world.Peer
	for _, w := range worlds {
		for _, p := range w.Peers {
			if p.Password != "" && from == leader.PasswordName(p.Name) {
				found = append(found, p)
			}
		}
	}
	if len(found) == 0 {
		return "", false
	}
	best := found[0]
	if have, ok := fsm.Get[*fsm.Peer](record, fsm.TablePeers, best.Name); ok {
		if at := slices.IndexFunc(found, func(p *world.Peer) bool { return have.Object == (fsm.ObjectRef{Namespace: p.Home, UID: p.UID}) }); at >= 0 {
			best = found[at]
		}
	}
	return bgp.Secret(best.Password.Reveal()), true
}

func passwordInTOML(path, address string) (bgp.Secret, bool) {
	text, err := smallfile.Read(path, smallfile.Most)
	if err != nil {
		return "", false
	}
	conf, err := legacy.Parse(path, text)
	if err != nil {
		return "", false
	}
	for _, p := range conf.Peers {
		if p.Address.String() == address {
			return p.Password, p.Password != ""
		}
	}
	for _, f := range conf.Faults { // such a neighbour is kept as it was
		if f.Address.String() == address {
			return f.Password, f.Password != ""
		}
	}
	return "", false
}
