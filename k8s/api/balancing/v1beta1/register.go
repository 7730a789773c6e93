// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/k8s/api/balancing"
)

// GroupVersion is the group and version of the kinds of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: balancing.Group, Version: "v1beta1"}
}

// Kinds are an empty object and an empty list of every kind of this package.
func Kinds() []runtime.Object {
	return []runtime.Object{&BalancingPolicy{}, &BalancingPolicyList{}, &LocalRedirectPolicy{}, &LocalRedirectPolicyList{}}
}

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), Kinds()...)
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
