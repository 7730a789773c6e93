// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the kinds of the group balancing.elf.io/v1beta1 in Go: BalancingPolicy and LocalRedirectPolicy.
//
// Fields, defaults and enumerations are those that manifests for elf-io's balancing have; enabled, healthCheck and the status
// are additions, all of them optional. The definitions (deploy/components/balancing) refuse what no controller could
// understand; what only the whole object, or other objects, can tell is admission's to judge (k8s/admission/policies). Section
// numbers in comments are those of the specification of that behaviour. Deep copies and CRDs are generated (make generate).
// Start reading at BalancingPolicy.
//
// +groupName=balancing.elf.io
// +versionName=v1beta1
// +kubebuilder:object:generate=true
package v1beta1
