// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"

	"fairlead.io/fairlead/fsm"
)

// decided tells whether any of the tables was written to between two views of one record, other than by a comparison of all copies and by
// what members announced: nothing is planned from those, and they follow each other for as long as there is a group.
func decided(old, now *fsm.View, tables ...fsm.Table) bool {
	return slices.ContainsFunc(tables, func(t fsm.Table) bool {
		switch {
		case !fsm.Differ(old, now, t):
			return false
		case t == fsm.TableGroup:
			return !old.Group().Alike(now.Group())
		case t == fsm.TableMembers:
			format := now.Group().Format
			return !slices.EqualFunc(fsm.List[*fsm.Member](old, t), fsm.List[*fsm.Member](now, t), func(a, b *fsm.Member) bool {
				return a.Alike(b) && a.WithdrawnIn(format) == b.WithdrawnIn(format)
			})
		default:
			return true
		}
	})
}
