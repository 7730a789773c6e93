// SPDX-License-Identifier: Apache-2.0

// Package convert turns Kubernetes objects into the plain values of fsm/world, and says what is wrong with those
// that it cannot turn. It is pure, and the same for objects from an API server and from files.
//
// Every function returns the value and a list of problems, each with field, reason and remedy. The value may be
// used unless Usable says no; with a lesser problem the part named is missing from it. What to do instead of an
// unusable object (keep its last good form) is the source's business.
//
// Start reading at Service.
package convert

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"fairlead.io/fairlead/fsm/world"
)

// Usable tells whether an object with these problems may be used. A BGPAdvertisement whose terms cannot be used may: it has a Fault, and what it
// is about is sent to nobody under it. Were it left out, its addresses would go to peers that it leaves out, and without communities.
func Usable(problems []world.Problem) bool {
	return !slices.ContainsFunc(problems, func(p world.Problem) bool {
		return p.Severity == world.Failed && (p.Object.Kind != world.KindAdvertisement || !ofTerms(p.Field))
	})
}

// ofTerms tells whether a field is one of what an object wants, and not of what it is called.
func ofTerms(field string) bool {
	return strings.HasPrefix(field, "spec.") || strings.HasPrefix(field, "metadata.annotations")
}

// report gathers the problems of one object.
type report struct {
	object   world.Ref
	problems []world.Problem
}

func (r *report) add(s world.Severity, field, remedy, why string, args ...any) {
	r.problems = append(r.problems, world.Problem{
		Severity: s, Object: r.object, Field: field, Why: fmt.Sprintf(why, args...), Remedy: remedy,
	})
}

func (r *report) fail(field, remedy, why string, args ...any) {
	r.add(world.Failed, field, remedy, why, args...)
}

func (r *report) degrade(field, remedy, why string, args ...any) {
	r.add(world.Degraded, field, remedy, why, args...)
}

// open starts the report on an object of a namespaced or cluster-wide kind and converts what all objects have.
func open(kind world.Kind, o *metav1.ObjectMeta, namespaced bool) (world.Meta, *report) {
	m := world.Meta{ID: world.ID{Name: o.Name}, UID: string(o.UID), Deleting: o.DeletionTimestamp != nil}
	if namespaced {
		m.Namespace = cmpDefault(o.Namespace, metav1.NamespaceDefault)
	}
	if !o.CreationTimestamp.IsZero() {
		m.Created = uint32(min(max(o.CreationTimestamp.Unix(), 0), math.MaxUint32))
	}
	r := &report{object: m.Ref(kind)}
	if o.Name == "" {
		r.fail("metadata.name", "name the object", "empty")
	} else if bad := validation.IsDNS1123Subdomain(o.Name); len(bad) > 0 {
		r.fail("metadata.name", "use lower-case letters, digits, - and .", "%q is no name of an object", o.Name)
	}
	if bad := validation.IsDNS1123Label(m.Namespace); namespaced && len(bad) > 0 {
		r.fail("metadata.namespace", "use lower-case letters, digits and -", "%q is no name of a namespace", m.Namespace)
	}
	r.unknownAnnotations(kind, o.Annotations)
	if o.ResourceVersion != "" {
		v, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
		if err != nil {
			r.fail("metadata.resourceVersion", "leave it out of manifests", "%q is no number", o.ResourceVersion)
		}
		m.Version = v
	}
	return m, r
}

// homed says which namespace an object is in whose kind was opened as cluster-wide.
func homed(o *metav1.ObjectMeta) world.Homed { return world.Homed{Home: o.Namespace} }

func cmpDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// address reads an address of either family. An IPv4 address in IPv6 form is that IPv4 address.
func (r *report) address(field, text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil {
		r.fail(field, "write it like 192.0.2.10 or 2001:db8::10, without leading zeros", "%q is no IP address", text)
		return netip.Addr{}, false
	}
	if a.Zone() != "" {
		r.fail(field, "leave out the part from % on", "%q has a zone", text)
		return netip.Addr{}, false
	}
	return a.Unmap(), true
}

// dialled reads an address that clients outside are to dial.
func (r *report) dialled(field, text string) (netip.Addr, bool) {
	a, ok := r.address(field, text)
	if !ok {
		return a, false
	}
	if what := unroutable(a); what != "" {
		r.fail(field, "use an address that the network can route to the cluster", "%s is %s", a, what)
		return netip.Addr{}, false
	}
	return a, true
}

// unroutable says why nobody could be routed to an address, or nothing.
func unroutable(a netip.Addr) string {
	switch {
	case a.IsUnspecified():
		return "the unspecified address"
	case a.IsLoopback():
		return "a loopback address"
	case a.IsMulticast():
		return "a multicast address"
	case a.IsLinkLocalUnicast():
		return "a link-local address"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "the broadcast address"
	}
	return ""
}

// prefix reads a CIDR. Bits beyond its length are dropped, with a word about it.
func (r *report) prefix(field, text string) (netip.Prefix, bool) {
	text = strings.TrimSpace(text)
	p, err := netip.ParsePrefix(text)
	if err != nil {
		r.fail(field, "write it like 192.0.2.0/24 or 2001:db8::/64", "%q is no prefix", text)
		return netip.Prefix{}, false
	}
	if a := p.Addr(); a.Is4In6() {
		r.fail(field, "write it as an IPv4 prefix", "%q is an IPv4 prefix in IPv6 form", text)
		return netip.Prefix{}, false
	}
	if p != p.Masked() {
		r.degrade(field, "write "+p.Masked().String(), "%q has bits beyond its length", text)
	}
	return p.Masked(), true
}

// port reads a port number; zero is allowed where unset is.
func (r *report) port(field string, n int32, unset bool) uint16 {
	if n < 1 || n > 65535 {
		if n != 0 || !unset {
			r.fail(field, "use a number from 1 to 65535", "%d is no port", n)
		}
		return 0
	}
	return uint16(n)
}

// oneOf reads an enumeration; empty means its first value.
func oneOf[T ~string, S ~string](r *report, field string, s S, values ...T) T {
	return values[r.choice(field, string(s), len(values), func(i int) string { return string(values[i]) })]
}

// numbered is oneOf for values that are numbers.
func numbered[T fmt.Stringer, S ~string](r *report, field string, s S, values ...T) T {
	return values[r.choice(field, string(s), len(values), func(i int) string { return values[i].String() })]
}

// choice tells which of n names s is. An empty text is the first, and so is an unknown one, which is reported.
func (r *report) choice(field, s string, n int, name func(int) string) int {
	if s == "" {
		return 0
	}
	for i := range n {
		if name(i) == s {
			return i
		}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = name(i)
	}
	r.fail(field, "use one of "+strings.Join(names, ", "), "%q is unknown", s)
	return 0
}

// kvs turns the entries of a map that keep returns true for into a sorted slice.
func kvs(m map[string]string, keep func(key string) bool) []world.KV {
	var out []world.KV
	for k, v := range m {
		if keep(k) {
			out = append(out, world.KV{Key: k, Value: v})
		}
	}
	slices.SortFunc(out, func(a, b world.KV) int { return strings.Compare(a.Key, b.Key) })
	return out
}
