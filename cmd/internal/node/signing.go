// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/share"
	"fairlead.io/fairlead/fsm"
)

// sign gives peers the passwords that are on this node, and the addresses that are found, and leaves out those that lack theirs; s.mu
// is held. It says once of a peer that it is left out, and again if that happens another time.
func (s *speaking) sign() {
	before := map[string]bool{}
	for _, p := range s.missing {
		before[p.Name] = true
	}
	s.routes.Peers, s.missing = s.peers.Sign(s.passwords.Of)
	for _, p := range s.missing {
		s.holdFor(p)
		if !before[p.Name] {
			s.log.Error("peer left out: its password is not on this node", "peer", p.Name, "from", p.PasswordFrom, "remedy", s.remedy(p))
		}
	}
	s.routes.Peers = append(s.routes.Peers, s.find()...)
	for _, p := range s.routes.Peers {
		s.met[p.Address] = true
	}
}

// holdFor takes note of a peer that is left out, and that an earlier run announced to: the password is new, or was lost. The speaker
// does not know it, and would have withdrawals end while the switch keeps paths.
func (s *speaking) holdFor(p share.SignedPeer) {
	i := slices.IndexFunc(s.before.Peers, func(q bgp.Peer) bool { return q.Address == p.Address })
	if i < 0 || s.met[p.Address] {
		return
	}
	if until := s.opened.Add(max(p.Normal(0).Keeps(), s.before.Peers[i].Normal(0).Keeps())); until.After(s.holds) {
		s.holds = until
	}
}

// markWithdrawn takes in up to where no peer that the speaker knows holds anything that was withdrawn.
func (s *speaking) markWithdrawn(upto fsm.Revision) {
	s.mu.Lock()
	s.through = upto
	s.mu.Unlock()
	s.release()
}

// release says how far withdrawals came, unless a peer that is left out may hold something.
func (s *speaking) release() {
	s.mu.Lock()
	news := s.marks.Withdrawn != s.through && !time.Now().Before(s.holds)
	if news {
		s.marks.Withdrawn = s.through
	}
	s.mu.Unlock()
	if news {
		signal(s.news)
	}
}

// signAgain takes in that a password or a neighbour is another one, although members told nothing new.
func (s *speaking) signAgain() {
	s.mu.Lock()
	s.sign()
	s.mu.Unlock()
	signal(s.changed)
}

// named lists what the passwords of peers are called.
func (s *speaking) named() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.peers.Signed {
		names = append(names, p.PasswordFrom)
	}
	return names
}

// leftOut lists the peers that lack their password.
func (s *speaking) leftOut() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.missing {
		names = append(names, p.Name)
	}
	return names
}

// withoutSession says in states why peers that are left out have none.
func (s *speaking) withoutSession(states map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.missing {
		states[p.Name] = "left out: its password is not on this node; " + s.remedy(p)
	}
	for _, u := range s.unfound {
		if u.out {
			states[u.name] = "left out: " + u.why
		}
	}
}

func (s *speaking) remedy(p share.SignedPeer) string {
	if s.passwords.Folder == "" {
		return fmt.Sprintf("name a folder as bgp.passwordDir in agent.yaml, and put it into its file %s", p.PasswordFrom)
	}
	return fmt.Sprintf("put it into the file %s under bgp.passwordDir", p.PasswordFrom)
}
