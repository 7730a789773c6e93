// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	"fairlead.io/fairlead/dataplane/bgp/share"
)

// sign gives peers the passwords that are on this node, and leaves out those that lack theirs; s.mu is held. It says once of a peer
// that it is left out, and again if that happens another time.
func (s *speaking) sign() {
	before := map[string]bool{}
	for _, p := range s.missing {
		before[p.Name] = true
	}
	s.routes.Peers, s.missing = s.peers.Sign(s.passwords.Of)
	for _, p := range s.missing {
		if !before[p.Name] {
			s.log.Error("peer left out: its password is not on this node", "peer", p.Name, "from", p.PasswordFrom, "remedy", s.remedy(p))
		}
	}
}

// signAgain takes in that a password is another one, although members told nothing new.
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
}

func (s *speaking) remedy(p share.SignedPeer) string {
	if s.passwords.Folder == "" {
		return fmt.Sprintf("name a folder as bgp.passwordDir in agent.yaml, and put it into its file %s", p.PasswordFrom)
	}
	return fmt.Sprintf("put it into the file %s under bgp.passwordDir", p.PasswordFrom)
}
