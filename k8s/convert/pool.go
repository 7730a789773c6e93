// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api"
)

// Pool converts an address pool of either group. Pools are referred to by name alone, so the namespace is dropped.
func Pool(o *api.IPAddressPool) (world.Pool, []world.Problem) {
	meta, r := open(world.KindPool, &o.ObjectMeta, false)
	p := world.Pool{
		Meta:          meta,
		Homed:         homed(&o.ObjectMeta),
		AutoAssign:    o.Spec.AutoAssign == nil || *o.Spec.AutoAssign,
		AvoidBuggyIPs: o.Spec.AvoidBuggyIPs,
		// Ours go to all peers without any.
		OnlyAdvertised: o.APIVersion == api.MetalLBV1Beta1,
		Labels:         kvs(o.Labels, all),
	}
	for i, text := range o.Spec.Addresses {
		field := fmt.Sprintf("spec.addresses[%d]", i)
		next, ok := r.addressRange(field, text)
		if !ok {
			continue
		}
		if j := slices.IndexFunc(p.Ranges, next.Overlaps); j >= 0 {
			r.fail(field, "list every address once", "%s overlaps %s", next, p.Ranges[j])
			continue
		}
		p.Ranges = append(p.Ranges, next)
	}
	if len(o.Spec.Addresses) == 0 {
		r.fail("spec.addresses", "list prefixes or ranges", "empty")
	}
	r.exclude(&p, o)
	p.Drain = o.Spec.Drain || r.flag(o.Annotations, AnnotationDrain)
	switch when := o.Annotations[AnnotationCutOff]; when {
	case "", "silent":
	case "answer":
		p.KeepAnswering = true
	default:
		r.degrade("metadata.annotations["+AnnotationCutOff+"]", "write silent or answer", "%q is neither; nodes that are cut off fall silent", when)
	}
	if a := o.Spec.AllocateTo; a != nil {
		p.Priority, p.Namespaces = a.Priority, slices.Clone(a.Namespaces)
		p.NamespaceSelectors = r.selectors("spec.serviceAllocation.namespaceSelectors", a.NamespaceSelectors)
		p.ServiceSelectors = r.selectors("spec.serviceAllocation.serviceSelectors", a.ServiceSelectors)
	}
	return p, r.problems
}

// Annotations on pools, for what MetalLB's have no field for.
const (
	// AnnotationExclude is spec.exclude, with commas between.
	AnnotationExclude = ourPrefix + "exclude"
	// AnnotationCutOff is what a node does that answers for the pool's addresses on its segment (L2Advertisement) and
	// cannot reach the group: "silent" once its lease ends, so that another one answers (default), or "answer", so that
	// nobody else does before it is back or an operator says so.
	AnnotationCutOff = ourPrefix + "l2-when-cut-off"
	// AnnotationDrain is spec.drain: "true" or "false".
	AnnotationDrain = ourPrefix + "drain"
)

// exclude takes out of a pool what its user excluded. What cannot be read makes the pool unusable: it could give out what
// it must not.
func (r *report) exclude(p *world.Pool, o *api.IPAddressPool) {
	take := func(field, text string) {
		if out, ok := r.addressRange(field, strings.TrimSpace(text)); ok {
			p.Ranges = cutOut(p.Ranges, out)
		}
	}
	had := len(p.Ranges)
	for i, text := range o.Spec.Exclude {
		take(fmt.Sprintf("spec.exclude[%d]", i), text)
	}
	if list := o.Annotations[AnnotationExclude]; strings.TrimSpace(list) != "" {
		for text := range strings.SplitSeq(list, ",") {
			take(annotationField(AnnotationExclude), text)
		}
	}
	if had > 0 && len(p.Ranges) == 0 {
		r.fail("spec.exclude", "leave some addresses, or set spec.drain to empty the pool", "nothing of the pool is left")
	}
}

// cutOut cuts a range out of others.
func cutOut(ranges []world.Range, cut world.Range) (out []world.Range) {
	for _, r := range ranges {
		if !r.Overlaps(cut) {
			out = append(out, r)
			continue
		}
		if r.From.Less(cut.From) {
			out = append(out, world.Range{From: r.From, To: cut.From.Prev()})
		}
		if cut.To.Less(r.To) {
			out = append(out, world.Range{From: cut.To.Next(), To: r.To})
		}
	}
	return out
}

// flag reads an annotation that is true or false.
func (r *report) flag(all map[string]string, key string) bool {
	switch all[key] {
	case "true":
		return true
	case "", "false":
		return false
	}
	r.fail(annotationField(key), `write "true" or "false"`, "%q is neither", all[key])
	return false
}

// addressRange reads a prefix, a range or a single address that the network can route.
func (r *report) addressRange(field, text string) (world.Range, bool) {
	out, ok := r.span(field, text)
	if !ok {
		return out, false
	}
	return r.routable(field, out)
}

// span reads a prefix, a range or a single address.
func (r *report) span(field, text string) (world.Range, bool) {
	from, to, isRange := strings.Cut(text, "-")
	if strings.Contains(text, "/") {
		if isRange {
			r.fail(field, "write either 192.0.2.0/24 or 192.0.2.10-192.0.2.20", "%q mixes a prefix with a range", text)
			return world.Range{}, false
		}
		p, ok := r.prefix(field, text)
		if !ok {
			return world.Range{}, false
		}
		return world.RangeOf(p), true
	}
	first, ok := r.address(field, from)
	if !ok {
		return world.Range{}, false
	}
	last := first
	if isRange {
		if last, ok = r.address(field, to); !ok {
			return world.Range{}, false
		}
	}
	switch {
	case first.BitLen() != last.BitLen():
		r.fail(field, "keep each range within one family", "%s and %s are of two families", first, last)
		return world.Range{}, false
	case last.Less(first):
		r.fail(field, fmt.Sprintf("write %s-%s", last, first), "the range runs backwards")
		return world.Range{}, false
	}
	return world.Range{From: first, To: last}, true
}

func (r *report) routable(field string, out world.Range) (world.Range, bool) {
	for _, end := range []netip.Addr{out.From, out.To} {
		if what := unroutable(end); what != "" {
			r.fail(field, "use addresses that the network can route to the cluster", "%s is %s", end, what)
			return world.Range{}, false
		}
	}
	return out, true
}

// Overlaps names the pools of a sorted list that have addresses of an earlier pool.
func Overlaps(pools []*world.Pool) []world.Problem {
	var out []world.Problem
	for i, p := range pools {
		for _, earlier := range pools[:i] {
			if a, b, ok := overlap(p, earlier); ok && p.Name != earlier.Name { // of one name only one counts, which is said of both
				out = append(out, world.Problem{
					Severity: world.Degraded, Object: p.Ref(world.KindPool), Field: "spec.addresses",
					Why:    fmt.Sprintf("%s overlaps %s of pool %s", a, b, earlier.Name),
					Remedy: "let every address be in one pool only; until then the pool that came first keeps them",
				})
			}
		}
	}
	return out
}

func overlap(p, o *world.Pool) (a, b world.Range, ok bool) {
	for _, a := range p.Ranges {
		for _, b := range o.Ranges {
			if a.Overlaps(b) {
				return a, b, true
			}
		}
	}
	return a, b, false
}
