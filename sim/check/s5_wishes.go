// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s5Wishes is the part of S5 about finalizers of LBCF's objects: a member takes one off only when the record no longer
// holds what it stands for. A BackendRecord stands for the binding that it names, a LoadBalancer and a Bind for what their
// drivers made of them.
type s5Wishes struct {
	*judge
	has map[string]string // what objects with a finalizer stand for, by kind and name
}

func newS5Wishes(j *judge) *s5Wishes { return &s5Wishes{judge: j, has: map[string]string{}} }

func (r *s5Wishes) hear(e event.Stamped) {
	x, ok := e.Event.(event.Object)
	if !ok || !slices.Contains([]string{"BackendRecord", "LoadBalancer", "Bind"}, x.Kind) {
		return
	}
	key := x.Kind + " " + x.Namespace + "/" + x.Name
	stood := r.has[key]
	delete(r.has, key)
	if o := r.wishes.objects[x.Kind][x.Namespace+"/"+x.Name]; o != nil {
		switch f := o.Metadata.Finalizers; {
		case x.Kind == "BackendRecord" && slices.Contains(f, recordFinalizer):
			_, uid, _ := strings.Cut(o.Metadata.Annotations["fairlead.io/record"], "/")
			r.has[key] = uid
		case slices.Contains(f, balancerFinalizer):
			r.has[key] = strings.Join([]string{x.Kind, x.Namespace, x.Name, o.Metadata.UID}, "/")
		}
	}
	if stood == "" || r.has[key] != "" || !r.ours(x.By) {
		return
	}
	r.checked()
	if r.stands(x, stood) {
		r.broken(key, x.By+" took its finalizer off, and the record holds what it stands for", e.Number)
	}
}

// stands tells whether the record holds what an object stood for.
func (r *s5Wishes) stands(x event.Object, stood string) bool {
	v := r.record.View()
	if x.Kind == "BackendRecord" {
		b, ok := fsm.Get[*fsm.Binding](v, fsm.TableBindings, x.Namespace+"/"+x.Name)
		return ok && b.UID == stood
	}
	return slices.ContainsFunc(fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers), func(l *fsm.LoadBalancer) bool {
		return string(l.ID) == stood || strings.HasPrefix(string(l.ID), stood+"/")
	})
}
