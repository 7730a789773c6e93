// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds LBCF's kinds of the group lbcf.tkestack.io/v1beta1 in Go: LoadBalancerDriver, LoadBalancer,
// BackendGroup and BackendRecord.
//
// The JSON is what LBCF's own clients send and expect: a field without omitempty is sent as null when it is unset, and
// every field may be null when it is read. Nothing is required by the schema: admission judges objects (k8s/admission),
// and objects that LBCF stored must stay writable. Fields that these types do not know are lost in them, so stored
// objects are patched and never written back whole. Deep copies and CRDs are generated (make generate). Start reading
// at LoadBalancer.
//
// +groupName=lbcf.tkestack.io
// +versionName=v1beta1
// +kubebuilder:object:generate=true
// +kubebuilder:validation:Optional
package v1beta1
