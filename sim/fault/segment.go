// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"time"

	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/segment"
	"fairlead.io/fairlead/sim/stage"
)

// segmentKinds are what befalls the links of nodes to segments. Members and agents reach each other all the same.
func segmentKinds() []Kind {
	return []Kind{
		spoils(Kind{
			Name: "carrier", Text: "links of nodes to segments have no carrier", Share: 70, Least: 100 * time.Millisecond, Most: 12 * time.Second,
		}, (*segment.Link).Cut),
		spoils(Kind{
			Name: "mute-link", Text: "what links of nodes to segments send and hear is lost, though they have a carrier",
			Share: 50, Least: 500 * time.Millisecond, Most: 15 * time.Second,
		}, (*segment.Link).Mute),
	}
}

// spoils is a kind that does something to links.
func spoils(k Kind, begin func(*segment.Link) func()) Kind {
	k.Segments, k.On = true, nodes
	k.Parameters = []parameter.Parameter{
		parameter.Words("segment", "all of the node's without it", stage.SegmentName(0), stage.SegmentName(1)),
		parameter.Duration("every", "half of this it is so, half of it not; always so without it"),
	}
	k.Draw = func(d dice.Dice, c Cast, f *Fault) {
		f.On = d.Some("nodes", c.Nodes, d.From("how many", 1, max(1, len(c.Nodes)/2)))
		if d.Chance("one segment", 50) {
			f.With.Set("segment", dice.Pick(d, "segment", c.Segments))
		}
		if d.Chance("again", 30) {
			f.With.Set("every", d.Time("every", 100*time.Millisecond, 4*time.Second))
		}
	}
	k.Excuses = func(_ Cast, f Fault) []string { return slashed(f.On, "links") } // checkers see the links themselves
	k.Begin = func(b *Backstage, f Fault) func() {
		spoil := func() func() {
			return each(f.On, func(node string) func() {
				var heals []func()
				for _, l := range b.Links(node) {
					if only := f.With.Words("segment"); len(only) == 0 || slices.Contains(only, l.Name()) {
						heals = append(heals, begin(l))
					}
				}
				return together(heals)
			})
		}
		every := f.With.Duration("every", 0)
		if every <= 0 {
			return spoil()
		}
		return b.alternately(every/2, spoil)
	}
	return k
}

// alternately does something for a time, undoes it for as long, and so on, until the function that it returns is called.
func (b *Backstage) alternately(each time.Duration, do func() (undo func())) (end func()) {
	var undo func()
	stop := b.again(each, func() {
		if undo == nil {
			undo = do()
			return
		}
		undo()
		undo = nil
	})
	return func() {
		if stop(); undo != nil {
			undo()
		}
	}
}
