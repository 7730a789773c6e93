// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/handover"
)

// judge is an installation with its ways from one object to another.
type judge struct {
	in      Installation
	names   Names
	drivers map[types.NamespacedName]*v1beta1.LoadBalancerDriver
	lbs     map[types.NamespacedName]*v1beta1.LoadBalancer
	groups  map[types.NamespacedName]*v1beta1.BackendGroup
	binds   map[types.NamespacedName]*v1.Bind
}

// Judge tells what will become of an installation once LBCF is stopped and Fairlead acts on its objects. Wanted are the
// definitions that Fairlead brings. The same installation in another order gives the same report.
func Judge(in Installation, wanted []Definition, names Names) Report {
	j := &judge{in, names, byName(in.Drivers), byName(in.LoadBalancers), byName(in.Groups), byName(in.Binds)}
	r := Report{
		Drivers: []Driver{}, LoadBalancers: []LoadBalancer{}, Groups: []Group{}, Binds: []Group{}, Records: []Record{},
		Definitions: compareDefinitions(in.Definitions, wanted), Configurations: compareConfigurations(in.Configurations),
		HandedOver: handedOver(in.Definitions),
	}
	r.Running, _ = handover.Judge(in.Running)
	for i := range in.Records {
		r.Records = append(r.Records, j.record(&in.Records[i]))
	}
	for i := range in.Drivers {
		r.Drivers = append(r.Drivers, driverOf(&in.Drivers[i]))
	}
	for i := range in.LoadBalancers {
		r.LoadBalancers = append(r.LoadBalancers, loadBalancerOf(&in.LoadBalancers[i]))
	}
	for i := range in.Groups {
		r.Groups = append(r.Groups, groupOf(&in.Groups[i].ObjectMeta, "BackendGroup", r.Records))
	}
	for i := range in.Binds {
		r.Binds = append(r.Binds, groupOf(&in.Binds[i].ObjectMeta, "Bind", r.Records))
		r.LoadBalancers = append(r.LoadBalancers, loadBalancersOf(&in.Binds[i])...)
	}
	r.Findings = j.findings()
	slices.SortFunc(r.Records, func(a, b Record) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Drivers, func(a, b Driver) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.LoadBalancers, func(a, b LoadBalancer) int { return cmp.Compare(a.Name, b.Name) })
	for _, groups := range [][]Group{r.Groups, r.Binds} {
		slices.SortFunc(groups, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	}
	return r
}

// byName finds objects by their namespace and name.
func byName[T any, P interface {
	*T
	metav1.Object
}](list []T) map[types.NamespacedName]*T {
	out := make(map[types.NamespacedName]*T, len(list))
	for i := range list {
		o := P(&list[i])
		out[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}] = &list[i]
	}
	return out
}

// nameOf is namespace/name.
func nameOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func groupOf(m *metav1.ObjectMeta, kind string, records []Record) Group {
	g := Group{Name: nameOf(m)}
	for _, r := range records {
		if r.Owner == kind+" "+g.Name {
			g.Records++
			if r.Verdict == Adopted {
				g.Adopted++
			}
		}
	}
	return g
}

func driverOf(d *v1beta1.LoadBalancerDriver) Driver {
	out := Driver{Name: nameOf(d), URL: fsm.WithoutUserinfo(d.Spec.URL), Missing: []string{}, Draining: lbcf.IsDraining(d.Labels)}
	for _, name := range lbcf.RequiredWebhooks() {
		if !slices.ContainsFunc(d.Spec.Webhooks, func(w v1beta1.WebhookConfig) bool { return w.Name == name }) {
			out.Missing = append(out.Missing, name)
		}
	}
	return out
}

// holds tells whether a condition is True.
func holds(conditions []v1beta1.Condition, condition string) bool {
	return slices.ContainsFunc(conditions, func(c v1beta1.Condition) bool {
		return c.Type == condition && c.Status == metav1.ConditionTrue
	})
}
