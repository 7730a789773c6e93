// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"iter"

	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// view is what was stored at one moment (admission.View).
type view struct {
	drivers   snap[*v1beta1.LoadBalancerDriver]
	balancers snap[*v1beta1.LoadBalancer]
	groups    snap[*v1beta1.BackendGroup]
	records   snap[*v1beta1.BackendRecord]
	binds     snap[*v1.Bind]
}

// Driver finds a driver; nil if there is none.
func (v *view) Driver(namespace, name string) *v1beta1.LoadBalancerDriver {
	return v.drivers.get(namespace, name)
}

// LoadBalancer finds a LoadBalancer; nil if there is none.
func (v *view) LoadBalancer(namespace, name string) *v1beta1.LoadBalancer {
	return v.balancers.get(namespace, name)
}

// LoadBalancers are those of a namespace, or all.
func (v *view) LoadBalancers(namespace string) iter.Seq[*v1beta1.LoadBalancer] {
	return v.balancers.all(namespace)
}

// BackendGroups are those of a namespace, or all.
func (v *view) BackendGroups(namespace string) iter.Seq[*v1beta1.BackendGroup] {
	return v.groups.all(namespace)
}

// BackendRecords are those of a namespace, or all.
func (v *view) BackendRecords(namespace string) iter.Seq[*v1beta1.BackendRecord] {
	return v.records.all(namespace)
}

// Binds are those of a namespace, or all.
func (v *view) Binds(namespace string) iter.Seq[*v1.Bind] { return v.binds.all(namespace) }
