// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"fairlead.io/fairlead/api/desired"
)

// owners are who has what clients dial. The record gives nothing to two Services; should it happen nevertheless, the first by name has
// it. What others gave is had after all that is ours.
type owners struct {
	sole   map[dialled]string  // the only Service that claims it, as ours
	rivals map[dialled][]claim // all other claims, in order of who has it
}

// claim is a Service's to what clients dial.
type claim struct {
	name   string
	others bool // at an address that others gave it
}

func newOwners() owners {
	return owners{sole: map[dialled]string{}, rivals: map[dialled][]claim{}}
}

// claims are what a Service claims, each once.
func (c Config) claims(s *desired.Service) iter.Seq2[dialled, claim] {
	return func(yield func(dialled, claim) bool) {
		seen := map[dialled]bool{}
		for d, others := range c.dialled(s) {
			if d.givenUp || seen[d.dialled] {
				continue
			}
			seen[d.dialled] = true
			if !yield(d.dialled, claim{s.Name, others}) {
				return
			}
		}
	}
}

// offered is what clients dial of a Service, unless it gave that up.
type offered struct {
	dialled
	givenUp bool
}

// dialled are all of a Service's: those that are ours first, and then those at addresses that others gave it.
func (c Config) dialled(s *desired.Service) iter.Seq2[offered, bool] {
	return func(yield func(offered, bool) bool) {
		for _, a := range s.Addresses {
			for _, front := range s.Frontends {
				if !yield(offered{dialled{a.Unmap(), front.Port}, slices.Contains(front.NotOn, a)}, false) {
					return
				}
			}
		}
		for _, front := range s.Frontends {
			for _, f := range []family{ipv4, ipv6} {
				for _, d := range c.nodePort(s, front, f, nil) {
					if !yield(offered{d, false}, false) {
						return
					}
				}
			}
		}
		for _, f := range []family{ipv4, ipv6} {
			for _, a := range c.byOthers(s, f) {
				for _, front := range s.Frontends {
					if !slices.Contains(s.Addresses, a) && !yield(offered{dialled{a, front.Port}, false}, true) {
						return
					}
				}
			}
		}
	}
}

// owner is who has it; empty for nobody.
func (o owners) owner(d dialled) string {
	if rivals := o.rivals[d]; len(rivals) > 0 {
		return rivals[0].name
	}
	return o.sole[d]
}

// claim adds one, and gives the others that there are.
func (o owners) claim(d dialled, c claim) []claim {
	rivals := o.rivals[d]
	sole, taken := o.sole[d]
	if !taken && len(rivals) == 0 && !c.others {
		o.sole[d] = c.name
		return nil
	}
	if taken {
		delete(o.sole, d)
		rivals = append(rivals, claim{name: sole})
	}
	all := append(slices.Clone(rivals), c)
	slices.SortFunc(all, func(a, b claim) int {
		if a.others != b.others {
			return cmp.Compare(btoi(a.others), btoi(b.others))
		}
		return strings.Compare(a.name, b.name)
	})
	o.rivals[d] = all
	return rivals
}

// release takes a Service's claim back, and gives the others that are left.
func (o owners) release(d dialled, name string) []claim {
	if o.sole[d] == name {
		delete(o.sole, d)
		return nil
	}
	left := slices.DeleteFunc(o.rivals[d], func(c claim) bool { return c.name == name })
	if o.rivals[d] = left; len(left) == 0 {
		delete(o.rivals, d)
	}
	return left
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
