// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"sync"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// revoked is what agents are told of revocations, made once for all of them. Its messages are not written to.
type revoked struct {
	mu      sync.Mutex
	view    *fsm.View
	message *fairleadv1.RevokedMembers
}

// of is what there is to tell by a view: the message of before, where nothing changed since. Who knows nothing yet tells nothing.
func (r *revoked) of(v *fsm.View) *fairleadv1.RevokedMembers {
	if v.Revision().IsZero() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil || r.view.Revision().Before(v.Revision()) && fsm.Differ(r.view, v, fsm.TableRevocations) {
		r.view, r.message = v, desired.RevokedMessage(v)
	}
	return r.message
}

// answer sends an answer to a heartbeat, without what said has of revocations already.
func answer(stream *beatStream, next, said *fairleadv1.HeartbeatResponse) error {
	all := next.GetRevoked()
	if said.GetRevoked() == all {
		next.Revoked = nil
	}
	err := stream.Send(next)
	next.Revoked = all // what the one after it is compared with
	return err
}
