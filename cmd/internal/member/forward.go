// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/records"
)

// forward hands proposals to the leader over its API: what a cluster.Forwarder has to be.
func (m *Member) forward(ctx context.Context, leader cluster.Peer, u cluster.Urgency, proposals []cluster.Proposal) ([]cluster.Outcome, error) {
	address := m.apiOf(leader.Name)
	if address == "" {
		return nil, fmt.Errorf("the API address of %s is not known yet: %w", leader.Name, cluster.ErrNotLeader)
	}
	_, epoch, _ := m.state.Identity()
	return records.Forward(ctx, m.clients.Client(address).Record, epoch, u, proposals)
}
