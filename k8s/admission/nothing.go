// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"iter"

	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// nothing stands for a View that is not to be had, and tells whether one was needed: what does not need one, such as the
// removal of a finalizer, goes on.
type nothing struct{ asked bool }

func (n *nothing) Driver(string, string) *v1beta1.LoadBalancerDriver {
	n.asked = true
	return nil
}

func (n *nothing) LoadBalancer(string, string) *v1beta1.LoadBalancer {
	n.asked = true
	return nil
}

func (n *nothing) LoadBalancers(string) iter.Seq[*v1beta1.LoadBalancer] {
	return none[v1beta1.LoadBalancer](n)
}
func (n *nothing) BackendGroups(string) iter.Seq[*v1beta1.BackendGroup] {
	return none[v1beta1.BackendGroup](n)
}
func (n *nothing) BackendRecords(string) iter.Seq[*v1beta1.BackendRecord] {
	return none[v1beta1.BackendRecord](n)
}
func (n *nothing) Binds(string) iter.Seq[*v1.Bind] { return none[v1.Bind](n) }

func none[T any](n *nothing) iter.Seq[*T] {
	n.asked = true
	return func(func(*T) bool) {}
}
