// SPDX-License-Identifier: Apache-2.0

// Package admission judges objects of LBCF's kinds before the API server stores them, and fills in what their authors
// left out.
//
// Decisions are pure: Mutate and Validate look at the request and at a View of what is stored, Judge at what drivers
// answered. Where drivers have a say, Validate lists the calls and somebody else makes them. Mutations are patches of
// single fields, so that fields that this program does not know stay as they are. A rule that LBCF did not have is not
// held against what is stored already: an update that leaves such a value alone goes through.
//
// Handler serves the decisions at LBCF's paths. The letters and numbers of rules are those of the compatibility
// specification. Start reading at Validate.
package admission

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"fairlead.io/fairlead/k8s/api/lbcf"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Kind is a kind that admission judges. BackendRecords are not among them: nobody but the controller writes those.
type Kind string

// The kinds that admission judges.
const (
	Driver       Kind = "LoadBalancerDriver"
	LoadBalancer Kind = "LoadBalancer"
	BackendGroup Kind = "BackendGroup"
	Bind         Kind = "Bind"
)

// Request is what the API server asks about one object.
type Request struct {
	Kind            Kind
	Operation       admissionv1.Operation
	Namespace, Name string
	Object, Old     []byte // JSON; empty where the operation has none
	DryRun          bool   // nothing will be stored
}

// View is what is stored, at one moment. A view that lacks something that is stored allows what it must not, so there
// is none before everything was listed. What it gives is not changed by anybody.
type View interface {
	// Driver and LoadBalancer find an object by name; they give nil if there is none.
	Driver(namespace, name string) *v1beta1.LoadBalancerDriver
	LoadBalancer(namespace, name string) *v1beta1.LoadBalancer
	// The others give all objects of a namespace, or of every namespace if it is empty.
	LoadBalancers(namespace string) iter.Seq[*v1beta1.LoadBalancer]
	BackendGroups(namespace string) iter.Seq[*v1beta1.BackendGroup]
	BackendRecords(namespace string) iter.Seq[*v1beta1.BackendRecord]
	Binds(namespace string) iter.Seq[*v1.Bind]
}

// Away says what becomes of an object when its driver gives no answer.
type Away string

// What becomes of an object when its driver gives no answer.
const (
	Fail Away = "fail" // it is refused, as LBCF does
	Warn Away = "warn" // it is let through, with a warning
)

// Rules are what the operator of this installation decided.
type Rules struct {
	// DriverAway is Fail if it is empty.
	DriverAway Away
	// DryRun refuses every change after it was validated (LBCF's flag --dry-run).
	DryRun bool
}

// Decision is what becomes of a request.
type Decision struct {
	// Denied says what is wrong, why, and what to do; empty if the request is allowed.
	Denied string
	// Rules are the rules that deny, by short names of which there are few; none where nobody counts them.
	Rules []string
	// Warnings are shown to the user. They deny nothing.
	Warnings []string
	// Patch changes the object of a request that is allowed.
	Patch Patch
	// Calls are what drivers are asked before the request is allowed: Judge has the last word then.
	Calls []Call

	refusal string // why it is denied in the end, if nothing else denies it
	lacking bool   // it is denied for want of objects alone, which the view may be about to show
}

// verdict collects what is wrong with an object.
type verdict struct {
	errs     field.ErrorList
	warnings []string
	calls    []Call
}

func (v *verdict) deny(errs ...*field.Error) { v.errs = append(v.errs, errs...) }

func (v *verdict) warn(path *field.Path, words string) {
	v.warnings = append(v.warnings, path.String()+": "+words)
}

// rules are the rules of one kind. Any of them may be missing.
type rules[T any, P object[T]] struct {
	create func(*T, View) verdict
	update func(before, after *T, view View) verdict
	remove func(metav1.Object, View) verdict
	find   func(view View, namespace, name string) P
}

// object is a pointer to a T, which Kubernetes could store.
type object[T any] interface {
	*T
	metav1.Object
	runtime.Object
}

// Validate judges a request of a validating webhook.
func Validate(r Request, view View, by Rules) Decision {
	switch r.Kind {
	case Driver:
		return rules[v1beta1.LoadBalancerDriver, *v1beta1.LoadBalancerDriver]{createDriver, updateDriver, deleteDriver, View.Driver}.validate(r, view, by)
	case LoadBalancer:
		return rules[v1beta1.LoadBalancer, *v1beta1.LoadBalancer]{createLoadBalancer, updateLoadBalancer, deleteLoadBalancer, View.LoadBalancer}.validate(r, view, by)
	case BackendGroup:
		return rules[v1beta1.BackendGroup, *v1beta1.BackendGroup]{createGroup, updateGroup, deleteGroup, findGroup}.validate(r, view, by)
	case Bind:
		return rules[v1.Bind, *v1.Bind]{create: createBind, update: updateBind}.validate(r, view, by)
	}
	return Decision{Denied: fmt.Sprintf("validate a %s: no rules for this kind", r.Kind)}
}

func (k rules[T, P]) validate(r Request, view View, by Rules) Decision {
	var v verdict
	var after P
	switch r.Operation {
	case admissionv1.Create, admissionv1.Update:
		var before P
		var denied string
		if after, denied = decode[T, P](r, "the object", r.Object); denied != "" {
			return Decision{Denied: denied}
		}
		if r.Operation == admissionv1.Create {
			v = k.create(after, view)
			break
		}
		if after.GetDeletionTimestamp() != nil {
			break // D8
		}
		if before, denied = decode[T, P](r, "the stored object", r.Old); denied != "" {
			return Decision{Denied: denied}
		}
		v = k.update(before, after, view)
	case admissionv1.Delete:
		if k.remove == nil {
			return Decision{} // B9
		}
		gone, denied := k.doomed(r, view)
		if denied != "" {
			return Decision{Denied: denied}
		}
		if gone == nil {
			return Decision{} // D9
		}
		v = k.remove(gone, view)
	default:
		return Decision{}
	}
	return v.decide(r, by)
}

// doomed is the object that is deleted: the one that the request brings, because a deletion of a collection names
// none, else the one of that name. Only its metadata is read: what else it has must not keep it from being deleted.
func (k rules[T, P]) doomed(r Request, view View) (metav1.Object, string) {
	if len(r.Old) > 0 && string(r.Old) != "null" {
		return denil(decode[metav1.PartialObjectMetadata](r, "the stored object", r.Old))
	}
	return denil(k.find(view, r.Namespace, r.Name), "")
}

// denil makes an object that is a nil pointer no object.
func denil[T any, P object[T]](o P, denied string) (metav1.Object, string) {
	if o == nil {
		return nil, denied
	}
	return o, denied
}

// decode reads an object as LBCF does: keys in any case. What fails is a denial (D1).
func decode[T any, P object[T]](r Request, what string, raw []byte) (P, string) {
	out := P(new(T))
	if len(raw) == 0 || string(raw) == "null" {
		return nil, fmt.Sprintf("%s: the request has no %s", r.subject(), strings.TrimPrefix(what, "the "))
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, fmt.Sprintf("%s: cannot read %s: %v: correct the manifest (values of maps are strings, such as \"50\"; durations are strings, such as \"30s\")",
			r.subject(), what, err)
	}
	if out.GetNamespace() == "" {
		out.SetNamespace(r.Namespace)
	}
	if out.GetName() == "" {
		out.SetName(r.Name)
	}
	if out.GetName() == "" {
		out.SetName(out.GetGenerateName()) // as much as is known of it yet
	}
	return out, ""
}

func (r Request) subject() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name))
}

func (v verdict) decide(r Request, by Rules) Decision {
	d := Decision{Warnings: v.warnings}
	if len(v.errs) > 0 {
		d.Denied = r.subject() + ": " + v.errs.ToAggregate().Error()
		d.lacking = !slices.ContainsFunc(v.errs, func(e *field.Error) bool { return e.Type != field.ErrorTypeNotFound })
		return d
	}
	if by.DryRun { // lbcf §5.9
		d.refusal = r.subject() + ": valid, but not stored: this controller runs with --dry-run and lets nothing change: apply it again once it runs without"
	}
	for _, c := range v.calls {
		c.Subject = r.subject()
		if c.DryRun = r.DryRun || by.DryRun; c.DryRun {
			if by.DryRun && r.Kind == Bind {
				continue
			}
			if !c.Driver.Spec.AcceptDryRunCall {
				d.Warnings = append(d.Warnings, fmt.Sprintf("driver %s was not asked: it accepts no dry-run calls", c.Driver.Name))
				continue
			}
		}
		d.Calls = append(d.Calls, c)
	}
	if len(d.Calls) == 0 {
		return Judge(d, nil, by)
	}
	return d
}

// driverOf is the driver that an object of a namespace names.
func driverOf(view View, driver, namespace string) *v1beta1.LoadBalancerDriver {
	return view.Driver(lbcf.DriverNamespace(driver, namespace), driver)
}
