// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// beat is how long a beat of a pace takes on a machine that has nothing else to do.
const beat = 10 * time.Millisecond

// pace is a clock that goes as fast as this machine lets processes get on: each beat is a short sleep and a little work, however long that
// takes. All that is bounded in time is bounded by it, so that a machine that is ten times as busy gives ten times as long.
type pace struct{ beats atomic.Int64 }

func newPace(t *testing.T) *pace {
	p := &pace{}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { p.run(ctx) })
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	return p
}

func (p *pace) run(ctx context.Context) {
	work := make([]byte, 64<<10) // a twentieth of a beat's time to hash
	ticks := time.NewTimer(beat)
	for ctx.Err() == nil {
		sum := sha256.Sum256(work)
		copy(work, sum[:])
		ticks.Reset(beat)
		<-ticks.C
		p.beats.Add(1)
	}
}

// now is how far the clock has come.
func (p *pace) now() time.Duration { return time.Duration(p.beats.Load()) * beat }
