// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
)

// binding judges that a backend which LBCF's objects asked for is given up. Since the group can first have known of what
// it was wanted for, somebody must have changed or deleted what selects it, its load balancer or its BackendRecord, or
// its pod must have been other than ready and selected.
func (r *s12) binding(s *step, was, is *fsm.Binding) {
	one := is
	if one == nil {
		one = was
	}
	owner := strings.SplitN(one.Owner, "/", 4)
	if len(owner) < 4 || owner[0] != "BackendGroup" && owner[0] != "Bind" {
		return
	}
	what := bindingKey(string(one.ID))
	switch {
	case wants(is) && !wants(was):
		r.begin(what)
	case wants(was) && !wants(is):
		r.end("Pod", what, s.Number, func(since time.Duration) bool {
			return r.untouched(was, owner, since-r.bounds.Late) == "" || r.allowed(was, owner)
		}, "it was given up, and nobody changed what it was wanted for")
	}
}

// allowed tells whether an operator released anything that a binding hangs on.
func (r *s12) allowed(b *fsm.Binding, owner []string) bool {
	namespace, _, _ := strings.Cut(string(b.ID), "/")
	by := strings.SplitN(string(b.Balancer)+"////", "/", 5)
	return r.released[owner[1]+"/"+owner[2]] || r.released[by[1]+"/"+by[2]] || r.released[namespace+"/"+b.Backend.Name] || r.released[string(b.ID)]
}

// untouched is empty if anything was done since a moment that may cost a binding its place.
func (s *Set) untouched(b *fsm.Binding, owner []string, since time.Duration) string {
	namespace, _, _ := strings.Cut(string(b.ID), "/")
	names := []string{owner[0] + " " + owner[1] + "/" + owner[2], "BackendRecord " + string(b.ID)}
	if by := strings.SplitN(string(b.Balancer), "/", 5); len(by) >= 4 {
		names = append(names, by[0]+" "+by[1]+"/"+by[2])
	}
	if b.Backend.Kind == "Pod" {
		names = append(names, "Pod "+namespace+"/"+b.Backend.Name)
	}
	touched := slices.ContainsFunc(names, func(name string) bool {
		kind, id, _ := strings.Cut(name, " ")
		at, ever := s.wishes.touched[name]
		o := s.wishes.objects[kind][id]
		return ever && at >= since || kind != "BackendRecord" && (o == nil || o.Metadata.Deletion != nil) // maybe under another controller
	})
	if touched {
		return ""
	}
	return string(b.ID)
}
