// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"math/bits"
	"time"

	"fairlead.io/fairlead/sim/engine"
)

// Epoch is the wall clock of a world that has just begun, where no clock is wrong.
var Epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// uptime is what a monotonic clock shows when a world begins. Go's runtime does not take zero.
const uptime = time.Hour

// million is what drift is a part of.
const million = 1_000_000

// Clock is what a machine, or a single process, takes for time: a monotonic clock which may run too fast or too slow,
// and a wall clock which moves along with it and may be stepped.
type Clock struct {
	world *engine.World
	wall  time.Duration // ahead of Epoch + monotonic
	drift int64         // parts per million
	since time.Duration // of the world, at the last change of drift
	at    time.Duration // the monotonic clock then
}

// NewClock makes a clock whose wall clock is off by offset, and which gains drift parts per million: half a million at
// most, either way.
func NewClock(w *engine.World, offset time.Duration, drift int) *Clock {
	return &Clock{world: w, wall: offset - uptime, drift: int64(drift), since: 0, at: uptime}
}

// Monotonic is the time since some moment before the world began. It Forever runs back.
func (c *Clock) Monotonic() time.Duration {
	elapsed := c.world.Now() - c.since
	return c.at + scale(elapsed, million+c.drift, million)
}

// Wall is the time of day.
func (c *Clock) Wall() time.Time { return Epoch.Add(c.wall + c.Monotonic()) }

// Step moves the wall clock, forth or back; the monotonic clock does not notice.
func (c *Clock) Step(d time.Duration) { c.wall += d }

// Drift sets what the clock gains from now on, in parts per million. Who sleeps already is woken as planned.
func (c *Clock) Drift(drift int) {
	c.at, c.since = c.Monotonic(), c.world.Now()
	c.drift = int64(drift)
}

// when is the time of the world at which d of the clock's time will have passed.
func (c *Clock) when(d time.Duration) time.Duration {
	if c.drift != 0 {
		d = scale(d, million, million+c.drift) + 2 // never early
	}
	if at := c.world.Now() + d; at >= 0 {
		return at
	}
	return Forever
}

// scale is d * by / of, where d * by may not fit.
func scale(d time.Duration, by, of int64) time.Duration {
	high, low := bits.Mul64(uint64(d), uint64(by))
	whole, _ := bits.Div64(high, low, uint64(of))
	return time.Duration(whole)
}
