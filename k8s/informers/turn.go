// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/convert"
)

// turned makes an object's conversion out of its parts, in the form in which a sorted World has it.
func (k kind[T]) turned(o metav1.Object, v T, problems []world.Problem) converted[T] {
	var w world.World
	*k.field(&w) = []*T{&v}
	w.Sort()
	m := k.meta(&v)
	problems = append(problems, convert.Texts(m.Ref(k.name), o, &v)...)
	c := converted[T]{key: keyOf(o), ref: m.Ref(k.name), version: m.Version, service: serviceOf(&v), value: &v, problems: problems}
	if record, ok := any(&v).(*world.BackendRecord); ok {
		c.mirror = record.Mirror
	}
	if !convert.Usable(problems) {
		c.fate = unusable
	}
	return c
}

func keyOf(o metav1.Object) world.ID { return world.ID{Namespace: o.GetNamespace(), Name: o.GetName()} }

// typed converts objects of a kind that client-go has a type for.
func typed[K any, P interface {
	*K
	metav1.Object
}, T any](k kind[T], turn func(P) (T, []world.Problem)) func(runtime.Object) (converted[T], error) {
	return func(o runtime.Object) (converted[T], error) {
		object, ok := o.(P)
		if !ok {
			return converted[T]{}, fmt.Errorf("a %T where a %s belongs", o, k.name)
		}
		v, problems := turn(object)
		return k.turned(object, v, problems), nil
	}
}

// untyped converts objects whose definition is installed in the cluster. One that does not fit our form of it, though
// it fits the cluster's, is unusable.
func untyped[K, T any](k kind[T], turn func(*K) (T, []world.Problem)) func(runtime.Object) (converted[T], error) {
	return func(o runtime.Object) (converted[T], error) {
		object, ok := o.(*unstructured.Unstructured)
		if !ok {
			return converted[T]{}, fmt.Errorf("a %T where a %s belongs", o, k.name)
		}
		raw, err := object.MarshalJSON()
		if err != nil {
			return converted[T]{}, err
		}
		var form K
		if wrong := kjson.UnmarshalCaseSensitivePreserveInts(raw, &form); wrong != nil {
			var bare K
			head, err := json.Marshal(map[string]any{"metadata": object.Object["metadata"]})
			if err == nil {
				err = json.Unmarshal(head, &bare)
			}
			v, _ := turn(&bare)
			c := k.turned(object, v, nil)
			c.fate, c.problems = unusable, []world.Problem{misfit(c.ref, wrong)}
			return c, err
		}
		v, problems := turn(&form)
		return k.turned(object, v, problems), nil
	}
}

// from leaves out the objects that are in no namespace which counts for their kind. They are known all the same: what the group has of
// one from before stays for as long as that is there.
func from[T any](namespaces convert.Namespaces, kind world.Kind, turn func(runtime.Object) (converted[T], error)) func(runtime.Object) (converted[T], error) {
	return func(object runtime.Object) (converted[T], error) {
		c, err := turn(object)
		o, ok := object.(metav1.Object)
		if err != nil || !ok || namespaces.Read(kind, o) {
			return c, err
		}
		c.ref = convert.ElsewhereRef(kind, o)
		c.fate, c.problems = elsewhere, []world.Problem{namespaces.Elsewhere(c.ref)}
		return c, nil
	}
}

func misfit(ref world.Ref, err error) world.Problem {
	p := world.Problem{Severity: world.Failed, Object: ref, Why: strings.TrimPrefix(err.Error(), "json: "),
		Remedy: "write it as the API defines it; is the installed definition that of another release?"}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		p.Field, p.Why = wrong.Field, fmt.Sprintf("a %s where a %s belongs", wrong.Value, wrong.Type)
	}
	return p
}

// slicesOnly leaves out the slices that can never be endpoints of a Service of ours, as kube-proxy does. To count
// them as not understood would let nobody know any more whose endpoints are missing.
func slicesOnly(turn func(runtime.Object) (converted[world.EndpointSlice], error)) func(runtime.Object) (converted[world.EndpointSlice], error) {
	return func(o runtime.Object) (converted[world.EndpointSlice], error) {
		c, err := turn(o)
		slice, ok := o.(*discoveryv1.EndpointSlice)
		if err != nil || !ok {
			return c, err
		}
		why := ""
		switch {
		case slice.Labels[discoveryv1.LabelServiceName] == "":
			why = "no label says which Service it belongs to; it is left out"
		case slice.AddressType == discoveryv1.AddressTypeFQDN:
			why = "it lists names, not addresses; it is left out"
		default:
			return c, nil
		}
		c.fate, c.problems = ignored, []world.Problem{{Severity: world.Ignored, Object: c.ref, Why: why}}
		return c, nil
	}
}
