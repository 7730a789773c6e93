// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	"fairlead.io/fairlead/sim/event"
)

// s23 holds answers of members against what others answered before: once a call was answered by the record of an epoch, no call that begins
// later is by that of a former one, whoever is asked.
type s23 struct {
	idle
	*judge
	newest uint64            // epoch that somebody answered by
	number uint64            // of the event that said so
	began  map[int]beganThen // calls that are under way
}

type beganThen struct {
	to            string
	newest        uint64
	number, began uint64
}

func newS23(j *judge) rule { return &s23{judge: j, began: map[int]beganThen{}} }

func (r *s23) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.CallBegan:
		r.began[x.ID] = beganThen{x.To, r.newest, r.number, e.Number}
	case event.CallEnded:
		c, known := r.began[x.ID]
		delete(r.began, x.ID)
		if !known || x.Outcome != "ok" || x.Epoch == 0 {
			return
		}
		r.checked()
		if x.Epoch < c.newest {
			r.broken(c.to, fmt.Sprintf("it answered %s by the record of epoch %d, though somebody had answered by that of epoch %d before it was asked", x.Client, x.Epoch, c.newest),
				c.number, c.began, e.Number)
		}
		if x.Epoch > r.newest {
			r.newest, r.number = x.Epoch, e.Number
		}
	}
}
