// SPDX-License-Identifier: Apache-2.0

package agent

import "github.com/prometheus/client_golang/prometheus/testutil"

// KnowsWithoutQuorum tells whether a member answered last that it is out of touch with a quorum.
func (a *Agent) KnowsWithoutQuorum(address string) bool {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	p := a.fleet.peers[address]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alive && !p.quorum
}

// Left tells how often a member was left, or did not serve when it was asked.
func (a *Agent) Left() int {
	return int(testutil.ToFloat64(a.metrics.failures.WithLabelValues("follow")))
}
