// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/convert"
)

func createDriver(d *v1beta1.LoadBalancerDriver, _ View) (v verdict) {
	checkDriver(&v, nil, d)
	u, err := url.Parse(d.Spec.URL)
	shown := fsm.WithoutUserinfo(d.Spec.URL)
	if err == nil && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		v.deny(field.Invalid(spec().Child("url"), shown, "has no scheme http or https, or no host: write http://HOST:PORT/PATH"))
	}
	if err == nil && u.User != nil {
		v.deny(field.Invalid(spec().Child("url"), shown, "has a user or a password before the host, where all read it who see the driver: "+
			"put them into a Secret (username, password), and name that in the annotation "+convert.AnnotationCredentials))
	}
	return v
}

func updateDriver(before, after *v1beta1.LoadBalancerDriver, _ View) (v verdict) {
	if is := after.Spec.URL; is != before.Spec.URL && is != fsm.WithoutUserinfo(before.Spec.URL) { // D7, but for a password that goes
		v.deny(field.Forbidden(spec().Child("url"), "cannot change: make a driver of another name"))
	}
	if before.Spec.DriverType != after.Spec.DriverType {
		v.deny(field.Forbidden(spec().Child("driverType"), "cannot change: make a driver of another name"))
	}
	checkDriver(&v, before, after)
	return v
}

// checkDriver checks what holds for every driver. before is nil for a new one.
func checkDriver(v *verdict, before, d *v1beta1.LoadBalancerDriver) {
	name := field.NewPath("metadata", "name")
	if shared := d.Namespace == lbcf.SharedNamespace; shared != lbcf.IsShared(d.Name) { // D2
		if shared {
			v.deny(field.Invalid(name, d.Name, "must begin with lbcf- in kube-system, where all namespaces find it by that"))
		} else {
			v.deny(field.Invalid(name, d.Name, "must not begin with lbcf-, which is for drivers in kube-system: rename it or move it"))
		}
	}
	if d.Spec.DriverType != v1beta1.DriverTypeWebhook { // D3
		v.deny(field.NotSupported(spec().Child("driverType"), d.Spec.DriverType, []string{v1beta1.DriverTypeWebhook}))
	}
	if _, err := url.Parse(d.Spec.URL); err != nil { // D4
		v.deny(field.Invalid(spec().Child("url"), fsm.WithoutUserinfo(d.Spec.URL), "is no URL: write http://HOST:PORT/PATH"))
	}
	checkWebhooks(v, before, d)
}

func checkWebhooks(v *verdict, before, d *v1beta1.LoadBalancerDriver) {
	var stored []v1beta1.WebhookConfig
	if before != nil {
		stored = before.Spec.Webhooks
	}
	path := spec().Child("webhooks")
	for i, w := range d.Spec.Webhooks {
		at := path.Index(i)
		if !lbcf.IsWebhook(w.Name) { // D5
			v.deny(field.NotSupported(at.Child("name"), w.Name, append(lbcf.RequiredWebhooks(), lbcf.JudgePodDeregister)))
		}
		if named(d.Spec.Webhooks[:i], w.Name) > 0 && named(stored, w.Name) < 2 {
			v.deny(field.Duplicate(at.Child("name"), w.Name))
		}
		switch t := timeout(w); {
		case t == 0, t > lbcf.MaxTimeout: // D6
			v.deny(field.Invalid(at.Child("timeout"), t.String(), "must be more than 0s and at most 1m"))
		case t < 0 && !slices.ContainsFunc(stored, func(s v1beta1.WebhookConfig) bool { return s.Name == w.Name && timeout(s) == t }):
			v.deny(field.Invalid(at.Child("timeout"), t.String(), "must be more than 0s and at most 1m"))
		}
	}
	for _, name := range lbcf.RequiredWebhooks() { // D6
		if named(d.Spec.Webhooks, name) == 0 {
			v.deny(field.Required(path, "lacks "+name+": list it with a timeout; it is added by itself where the mutating webhook runs"))
		}
	}
}

// timeout is the one of an entry, the default if it has none.
func timeout(w v1beta1.WebhookConfig) time.Duration {
	if w.Timeout == nil {
		return lbcf.DefaultTimeout
	}
	return w.Timeout.Duration
}

func named(webhooks []v1beta1.WebhookConfig, name string) (n int) {
	for _, w := range webhooks {
		if w.Name == name {
			n++
		}
	}
	return n
}

func deleteDriver(d metav1.Object, view View) (v verdict) {
	labels := field.NewPath("metadata", "labels").Key(lbcf.LabelDraining)
	if !lbcf.IsDraining(d.GetLabels()) { // D10
		v.deny(field.Forbidden(labels, `is not "true": a driver in use cannot be deleted: set it, move what uses the driver, then delete`))
		return v
	}
	if users := usersOf(d, view); len(users) > 0 { // D11, D12
		v.deny(field.Forbidden(field.NewPath("metadata", "name"), "the driver is in use by "+strings.Join(users, ", ")+": delete these first"))
	}
	return v
}

// usersOf counts what still names a driver.
func usersOf(d metav1.Object, view View) []string {
	name, namespace := d.GetName(), d.GetNamespace()
	if namespace == lbcf.SharedNamespace {
		namespace = metav1.NamespaceAll
	}
	asked := func(w *v1beta1.DeregisterWebhook) bool { return w != nil && w.DriverName == name }
	var users []string
	count := func(n int, what string) {
		if n > 0 {
			users = append(users, fmt.Sprintf("%d %s", n, what))
		}
	}
	n := 0
	for lb := range view.LoadBalancers(namespace) {
		n += one(lb.Spec.LBDriver == name)
	}
	count(n, "LoadBalancer(s)")
	n = 0
	for r := range view.BackendRecords(namespace) {
		n += one(r.Spec.LBDriver == name)
	}
	count(n, "BackendRecord(s)")
	n = 0
	for b := range view.Binds(namespace) {
		n += one(asked(b.Spec.DeregisterWebhook) ||
			slices.ContainsFunc(b.Spec.LoadBalancers, func(l v1.TargetLoadBalancer) bool { return l.Driver == name }) ||
			slices.ContainsFunc(b.Status.LoadBalancerStatuses, func(l v1.TargetLoadBalancerStatus) bool { return l.Driver == name }))
	}
	count(n, "Bind(s)")
	n = 0
	for g := range view.BackendGroups(namespace) {
		n += one(asked(g.Spec.DeregisterWebhook))
	}
	count(n, "BackendGroup(s), by deregisterWebhook")
	return users
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
