// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"time"

	"fairlead.io/fairlead/fsm"
)

// staleWithin is how long a connection or a stream may outlast its certificate, the CA of it, or its member's place in the group.
const staleWithin = time.Second

// endStale ends what callers have open that would be refused by now: at once when something is revoked.
func (m *Member) endStale(ctx context.Context) error {
	for ctx.Err() == nil {
		view := m.state.Read().Only(fsm.TableRevocations)
		m.server.EndStale() // before connections: so much can be said of why
		if m.network.EndStale != nil {
			m.network.EndStale()
		}
		waiting, cancel := context.WithTimeout(ctx, staleWithin)
		_ = m.state.Wait(waiting, view, fsm.TableRevocations) // its end is the time, or that of ctx
		cancel()
	}
	return nil
}
