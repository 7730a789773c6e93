// SPDX-License-Identifier: Apache-2.0

package gobgp

import "time"

// patience is how long something has been waited for by who looks at it again and again. Time in which this process got no processor does not
// count: GoBGP, which is in it, could not act then either. Nor does time in which nobody looked. So a look counts for the time since the one
// before it, and for oneLook at most.
type patience struct {
	waited time.Duration
	looked time.Time
}

// oneLook is the most that a look counts for: bgp.Announcer looks as often.
const oneLook = 100 * time.Millisecond

func newPatience(now time.Time) patience { return patience{looked: now} }

// look notes a look, and returns how long it has been waited for.
func (p *patience) look(now time.Time) time.Duration {
	if d := now.Sub(p.looked); d > 0 {
		p.waited += min(d, oneLook)
		p.looked = now
	}
	return p.waited
}
