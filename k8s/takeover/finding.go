// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/convert"
)

// findings are what LBCF took, or let be, that need a look.
func (j *judge) findings() []Finding {
	out := append([]Finding{}, j.in.Unreadable...)
	for i := range j.in.Drivers {
		out = append(out, findingsOfDriver(&j.in.Drivers[i])...)
	}
	for i := range j.in.LoadBalancers {
		lb := &j.in.LoadBalancers[i]
		object := "LoadBalancer " + nameOf(lb)
		out = append(out, j.driverOf(object, lb.Spec.LBDriver, lb.Namespace)...)
		out = append(out, findingsOfPolicy(object, lb.Spec.EnsurePolicy)...)
	}
	for i := range j.in.Groups {
		g := &j.in.Groups[i]
		object := "BackendGroup " + nameOf(g)
		out = append(out, findingsOfPolicy(object, g.Spec.EnsurePolicy)...)
		if w := g.Spec.DeregisterWebhook; w != nil && lbcf.DeregisterPolicy(g.Spec.DeregisterPolicy) == v1beta1.Webhook {
			out = append(out, j.driverOf(object, w.DriverName, g.Namespace)...)
		}
	}
	for i := range j.in.Binds {
		out = append(out, j.findingsOfBind(&j.in.Binds[i])...)
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.What, b.What))
	})
	return out
}

// driverOf looks for a driver as everybody does (lbcf §1.4).
func (j *judge) driverOf(object, driver, namespace string) []Finding {
	key := types.NamespacedName{Namespace: lbcf.DriverNamespace(driver, namespace), Name: driver}
	if j.drivers[key] != nil {
		return nil
	}
	return []Finding{{object, fmt.Sprintf("its driver %s is not there", key), "nothing can be called before it is"}}
}

func findingsOfDriver(d *v1beta1.LoadBalancerDriver) (out []Finding) {
	object := "LoadBalancerDriver " + nameOf(d)
	shown := fsm.WithoutUserinfo(d.Spec.URL)
	if u, err := url.Parse(d.Spec.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		out = append(out, Finding{object, fmt.Sprintf("url %q is no http or https URL with a host", shown), "it cannot be called; make another driver"})
	}
	if shown != d.Spec.URL {
		out = append(out, Finding{object, "url has a user or a password in it, with which it is not called",
			"put them into a Secret (username, password), and name that in the annotation " + convert.AnnotationCredentials})
	}
	seen := map[string]bool{}
	for _, w := range d.Spec.Webhooks {
		switch {
		case seen[w.Name]:
			out = append(out, Finding{object, "webhook " + w.Name + " is listed twice", "the first entry counts, as with LBCF; an update must remove the other"})
		case w.Timeout != nil && (w.Timeout.Duration <= 0 || w.Timeout.Duration > lbcf.MaxTimeout):
			out = append(out, Finding{object, fmt.Sprintf("webhook %s has a timeout of %s", w.Name, w.Timeout.Duration), "an update must correct it"})
		}
		seen[w.Name] = true
	}
	return out
}

func findingsOfPolicy(object string, p *v1beta1.EnsurePolicy) []Finding {
	if p == nil || p.Policy == v1beta1.Always || p.Policy == v1beta1.IfNotSucc || p.Policy == "" {
		return nil
	}
	return []Finding{{object, fmt.Sprintf("ensure policy %q is unknown", p.Policy), "taken as IfNotSucc, as with LBCF; an update must correct it"}}
}

func (j *judge) findingsOfBind(b *v1.Bind) (out []Finding) {
	object := "Bind " + nameOf(b)
	for _, lb := range b.Spec.LoadBalancers {
		out = append(out, j.driverOf(object, lb.Driver, b.Namespace)...)
	}
	switch p := b.Spec.DeregisterPolicy; {
	case p == nil:
	case *p == v1beta1.Webhook:
		out = append(out, Finding{object, "deregister policy Webhook", "is carried out; LBCF took it as IfNotReady"})
	case *p != v1beta1.IfNotReady && *p != v1beta1.IfNotRunning:
		out = append(out, Finding{object, fmt.Sprintf("deregister policy %q is unknown", *p), "taken as IfNotReady, as with LBCF"})
	}
	if by := b.Spec.Pods.ByLabel; by != nil {
		out = append(out, findingsOfSelector(object, by.Selector)...)
	}
	for _, p := range b.Spec.Pods.Ports {
		if p.Port < 1 || p.Port > 65535 {
			out = append(out, Finding{object, fmt.Sprintf("port %d is none", p.Port), "an update must correct it"})
		}
	}
	return out
}

// findingsOfSelector tells of labels that no pod can have: the label library then selects every pod (lbcf §11 number 5).
func findingsOfSelector(object string, selector map[string]string) []Finding {
	var bad []string
	for key, value := range selector {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			bad = append(bad, fmt.Sprintf("%s=%s", key, value))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	return []Finding{{object, "selector " + strings.Join(bad, ", ") + " is no legal label: LBCF registers every pod of the namespace",
		"no pod has it; correct it before the hand-over, or the pods are deregistered"}}
}
