// SPDX-License-Identifier: Apache-2.0

// Package policies judges the policies of client-side balancing, BalancingPolicy and LocalRedirectPolicy, before the API server
// stores them, and gives those an id that have none.
//
// Decisions are pure: Mutate and Validate look at the request and at what is stored. What k8s/convert cannot use, or uses
// without a part, is refused in new objects, and what it would use as it is written is warned of where that may surprise.
// What is stored already is not held against an update, and nothing is refused its deletion. Handler serves the decisions
// at the paths of elf-io's balancing. The letters and numbers of rules, and section numbers, are those of the
// specification. Start reading at Validate.
package policies

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/admission"
	"fairlead.io/fairlead/k8s/api/balancing"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
	"fairlead.io/fairlead/k8s/convert"
)

// The kinds that are judged.
const (
	Balancing     = admission.Kind(world.KindBalancingPolicy)
	LocalRedirect = admission.Kind(world.KindLocalRedirect)
)

// Stored is what is stored, at one moment. Nobody writes to it.
type Stored struct {
	// Err is why that is not known; then nothing is allowed that depends on it.
	Err            error
	Balancing      []v1beta1.BalancingPolicy
	LocalRedirects []v1beta1.LocalRedirectPolicy
	Nodes          []corev1.Node
	// APIServers are where API servers listen.
	APIServers []netip.AddrPort
	// Numbers are the ids that the group's record knows of; nil: none.
	Numbers Numbers
}

// Numbers are the ids that the group's record knows of.
type Numbers interface {
	// Holder tells who has an id by the record, or had it and hosts may still hold it; false for a free one.
	Holder(id balancing.ID) (Holder, bool)
}

// Holder is a policy that has an id.
type Holder struct {
	Kind admission.Kind
	Name string
	Gone bool // it had it: hosts may still hold it
}

func (s *Stored) holder(id balancing.ID) (Holder, bool) {
	if s.Numbers == nil || id == 0 {
		return Holder{}, false
	}
	return s.Numbers.Holder(id)
}

// Conflict is what becomes of a policy that captures what another one does (A13).
type Conflict string

// What becomes of a policy that captures what another one does.
const (
	Refuse Conflict = "refuse"
	// Warn lets it through. It is warned of where both are effective on one host; there the older one counts.
	Warn Conflict = "warn"
)

// Rules are what the operator of this installation decided.
type Rules struct {
	Conflict   Conflict // Refuse if it is empty
	CarriedOut bool     // the group has policies in its record
}

// policy is what both kinds have, of one object.
type policy struct {
	kind     admission.Kind
	name     string
	notes    map[string]string
	deleting bool
	config   *v1beta1.PolicyConfig
	front    v1beta1.Frontend
	back     any // BalancingBackend or LocalRedirectBackend
	value    world.Redirect
	problems []world.Problem
}

func (p *policy) String() string { return string(p.kind) + " " + p.name }

// id is the policy's own, zero if it has none that counts.
func (p *policy) id() balancing.ID { return balancing.ID(p.value.ServiceID) }

func balancingPolicy(o *v1beta1.BalancingPolicy) *policy {
	v, problems := convert.BalancingPolicy(o)
	return &policy{Balancing, o.Name, o.Annotations, o.DeletionTimestamp != nil, o.Spec.Config, o.Spec.Frontend, o.Spec.Backend, v.Redirect, problems}
}

func localRedirectPolicy(o *v1beta1.LocalRedirectPolicy) *policy {
	v, problems := convert.LocalRedirectPolicy(o)
	return &policy{LocalRedirect, o.Name, o.Annotations, o.DeletionTimestamp != nil, o.Spec.Config, o.Spec.Frontend, o.Spec.Backend, v.Redirect, problems}
}

// others are the stored policies but the given one, in the order of kinds and names.
func (s *Stored) others(than *policy) []*policy {
	var out []*policy
	for i := range s.Balancing {
		out = append(out, balancingPolicy(&s.Balancing[i]))
	}
	for i := range s.LocalRedirects {
		out = append(out, localRedirectPolicy(&s.LocalRedirects[i]))
	}
	out = slices.DeleteFunc(out, func(p *policy) bool { return p.kind == than.kind && p.name == than.name })
	slices.SortFunc(out, func(a, b *policy) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// verdict collects what is wrong with an object.
type verdict struct{ denied, rules, warnings []string }

// Names of rules that deny, as metrics have them (balancing §20).
const (
	ruleID        = "id"        // A1
	ruleImmutable = "immutable" // A2, A3
	ruleSpec      = "spec"      // A4 to A12, A15
	ruleConflict  = "conflict"  // A13
	ruleProxy     = "proxy"     // A14
	ruleUnknown   = "not-known" // what is stored could not be read
)

func (v *verdict) deny(rule, field, why, remedy string, args ...any) {
	v.rules = append(v.rules, rule)
	v.denied = append(v.denied, field+": "+fmt.Sprintf(why, args...)+": "+remedy)
}

func (v *verdict) warn(field, why, remedy string, args ...any) {
	v.warnings = append(v.warnings, field+": "+fmt.Sprintf(why, args...)+": "+remedy)
}

// Validate judges a request of a validating webhook.
func Validate(r admission.Request, stored *Stored, by Rules) admission.Decision {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update {
		return admission.Decision{} // deletion is never refused
	}
	after, denied := read(r, "the object", r.Object)
	if denied != "" {
		return admission.Decision{Denied: denied}
	}
	var v verdict
	if r.Operation == admissionv1.Create {
		v.create(after, stored, by)
	} else {
		if after.deleting {
			return admission.Decision{}
		}
		before, denied := read(r, "the stored object", r.Old)
		if denied != "" {
			return admission.Decision{Denied: denied}
		}
		v.update(before, after, stored)
	}
	d := admission.Decision{Warnings: v.warnings}
	if len(v.denied) > 0 {
		d.Rules = v.rules
		d.Denied = after.String() + ": " + strings.Join(v.denied, "; ")
	}
	return d
}

// create judges a new policy.
func (v *verdict) create(p *policy, stored *Stored, by Rules) {
	v.judge(p.problems)
	if only := convert.OnlyIf(); !by.CarriedOut {
		v.warn("metadata", "%s", only.Remedy, only.Why)
	}
	if stored.Err != nil {
		v.deny(ruleUnknown, "metadata", "cannot be judged yet: %v", "try again in a moment", stored.Err)
		return
	}
	others := stored.others(p)
	v.identity(p, stored, others)
	v.conflicts(p, others, stored.Nodes, by)
	v.proxies(p, others, stored.Nodes)
	v.occupied(p, stored)
}

// update judges a change: frontend and backend stay as they are (A2, A3), and what was wrong before may remain so.
func (v *verdict) update(before, after *policy, stored *Stored) {
	const remedy = "delete the policy and make another; only config and enabled can change"
	if !equality.Semantic.DeepEqual(before.front, after.front) {
		v.deny(ruleImmutable, "spec.frontend", "cannot change", remedy)
	}
	if !equality.Semantic.DeepEqual(before.back, after.back) {
		v.deny(ruleImmutable, "spec.backend", "cannot change", remedy)
	}
	v.judge(slices.DeleteFunc(after.problems, func(p world.Problem) bool {
		return slices.ContainsFunc(before.problems, func(was world.Problem) bool { return was.Field == p.Field && was.Why == p.Why })
	}))
	was := before.id()
	switch {
	case was != 0 && was != after.id(): // balancing §2.3: it is stable for the object's life
		v.deny(ruleID, idField, "is %s, and cannot become %q", "leave it", was, after.notes[balancing.AnnotationServiceID])
	case was == after.id():
	case stored.Err != nil:
		v.deny(ruleUnknown, "metadata", "cannot be judged yet: %v", "try again in a moment", stored.Err)
	default:
		v.identity(after, stored, stored.others(after))
	}
}

// judge refuses what cannot be used as it is written, and warns of what may surprise.
func (v *verdict) judge(problems []world.Problem) {
	for _, p := range problems {
		if p.Severity == world.Ignored {
			v.warn(p.Field, "%s", p.Remedy, p.Why)
		} else {
			v.deny(ruleSpec, p.Field, "%s", p.Remedy, p.Why)
		}
	}
}

// idField is where a policy's id is.
const idField = "metadata.annotations[" + balancing.AnnotationServiceID + "]"

// identity checks that a policy has an id of its own (A1).
func (v *verdict) identity(p *policy, stored *Stored, others []*policy) {
	if _, ok := p.notes[balancing.AnnotationServiceID]; !ok {
		v.deny(ruleID, idField, "is missing", "install the mutating webhook, which gives one, or write a free number")
		return
	}
	for _, o := range others {
		if id := p.id(); id != 0 && o.id() == id {
			v.deny(ruleID, idField, "%s is the id of %s", "remove it, and a free one is given", id, o)
			return
		}
	}
	id := p.id()
	switch h, held := stored.holder(id); {
	case !held || h.Kind == p.kind && h.Name == p.name: // the same name may have it again
	case h.Gone:
		v.deny(ruleID, idField, "%s was the id of %s %s, and a host may still hold it as that", "remove it, and a free one is given, or wait until every node has heard that it is gone", id, h.Kind, h.Name)
	default:
		v.deny(ruleID, idField, "%s is the id of %s %s", "remove it, and a free one is given", id, h.Kind, h.Name)
	}
}

// read reads an object of a request. What fails is a denial.
func read(r admission.Request, what string, raw []byte) (*policy, string) {
	var p *policy
	var err error
	switch r.Kind {
	case Balancing:
		p, err = as(raw, balancingPolicy)
	case LocalRedirect:
		p, err = as(raw, localRedirectPolicy)
	default:
		err = fmt.Errorf("no rules for this kind")
	}
	if err != nil {
		return nil, fmt.Sprintf("%s %s: cannot read %s: %v: correct the manifest (ports are strings, such as \"80\")", r.Kind, r.Name, what, err)
	}
	return p, ""
}

// as reads an object and turns it into a policy. One whose name is made up later is judged by as much of it as is known.
func as[T any, P interface {
	*T
	metav1.Object
}](raw []byte, turn func(P) *policy) (*policy, error) {
	o := P(new(T))
	if len(raw) == 0 || string(raw) == "null" {
		return nil, fmt.Errorf("it is not in the request")
	}
	if err := json.Unmarshal(raw, o); err != nil {
		return nil, err
	}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(strings.TrimRight(o.GetGenerateName(), "-."))
	}
	return turn(o), nil
}
