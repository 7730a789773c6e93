// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/fsm"
)

// Whoever asks is told which call has gone out, and once it failed when the next one will; it goes out then.
func TestOperatorTellsWhatComesNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLiveGroup(t)
		d := &told{}
		d.do = func(context.Context, fsm.Action, Request) Answer {
			time.Sleep(time.Second)
			return Answer{Result: fsm.ResultFailed, Message: "no", RetryAfter: 7 * time.Second}
		}
		l := leaderOf(t, g, g, func(string) (Driver, bool) { return d, true })
		g.must(balancer("drv/a"), bind("b", "192.0.2.8:80")) // before the operator proposes, too
		b, _ := fsm.Get[*fsm.Binding](g.state.Read(), fsm.TableBindings, "b")
		led(l, func() {
			next := func() (NextCall, bool) {
				all, ok := l.NextCalls(t.Context(), []fsm.Subject{b.Subject(), "backend of nobody"})
				if !ok || len(all) > 1 {
					t.Errorf("the operator says %v, %v", all, ok)
				}
				c, due := all[b.Subject()]
				return c, due
			}
			time.Sleep(500 * time.Millisecond)
			if c, due := next(); !due || !c.UnderWay || c.Action != fsm.ActionEnsure {
				t.Errorf("while the driver has the call: %+v, %v", c, due)
			}
			time.Sleep(time.Second)
			c, due := next()
			if !due || c.UnderWay || c.Queued || c.Action != fsm.ActionEnsure || c.In < 6*time.Second || c.In > 7*time.Second {
				t.Errorf("after it failed: %+v, %v", c, due)
			}
			time.Sleep(c.In + 10*time.Millisecond)
			if c, due := next(); !due || !c.UnderWay {
				t.Errorf("when it is due: %+v, %v", c, due)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ok := l.NextCalls(ctx, nil); ok {
			t.Error("nobody operates, and somebody answered")
		}
	})
}
