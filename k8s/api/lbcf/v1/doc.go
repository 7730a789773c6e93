// SPDX-License-Identifier: Apache-2.0

// Package v1 holds LBCF's kind of the group lbcf.tkestack.io/v1 in Go: Bind, which is LoadBalancers and a BackendGroup
// of pods in one object. What package v1beta1 says of its JSON holds here too.
//
// +groupName=lbcf.tkestack.io
// +versionName=v1
// +kubebuilder:object:generate=true
// +kubebuilder:validation:Optional
package v1
