// SPDX-License-Identifier: Apache-2.0

package agent

// KnowsWithoutQuorum tells whether a member answered last that it is out of touch with a quorum.
func (a *Agent) KnowsWithoutQuorum(address string) bool {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	p := a.fleet.peers[address]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alive && !p.quorum
}
