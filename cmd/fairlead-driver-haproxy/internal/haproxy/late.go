// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"container/list"
	"context"
	"fmt"

	"fairlead.io/fairlead/dataplane/driver/kit"
	"fairlead.io/fairlead/fsm"
)

// rememberedAttempts is how many servers' newest attempts are kept: calls come late by seconds, and no more servers than
// that change in seconds.
const rememberedAttempts = 4096

// attempts remembers the newest call that was carried out for each server, those used last. It tells a call that was under
// way for so long that its caller has gone on meanwhile.
type attempts struct {
	most   int
	newest map[key]*list.Element
	order  *list.List // of noted, the one used last in front
}

type noted struct {
	key     key
	attempt fsm.Revision
}

func newAttempts(most int) *attempts {
	return &attempts{most: most, newest: map[key]*list.Element{}, order: list.New()}
}

// check refuses a call that is older than one which has been carried out. LBCF's calls do not say how old they are.
func (a *attempts) check(ctx context.Context, k key) error {
	attempt, ok := kit.AttemptOf(ctx)
	if e := a.newest[k]; ok && e != nil && attempt.Before(e.Value.(noted).attempt) {
		return &refusal{fmt.Errorf("attempt %s comes late: attempt %s was carried out already", attempt, e.Value.(noted).attempt)}
	}
	return nil
}

// note remembers that a call is being carried out.
func (a *attempts) note(ctx context.Context, k key) {
	attempt, ok := kit.AttemptOf(ctx)
	if !ok {
		return
	}
	if e := a.newest[k]; e != nil {
		e.Value = noted{k, attempt}
		a.order.MoveToFront(e)
		return
	}
	a.newest[k] = a.order.PushFront(noted{k, attempt})
	if a.order.Len() > a.most {
		oldest := a.order.Remove(a.order.Back()).(noted)
		delete(a.newest, oldest.key)
	}
}
