// SPDX-License-Identifier: Apache-2.0

// Package lbcf knows what objects of LBCF (tkestack's lb-controlling-framework) mean: whose names mean what, which
// values hold where fields were left out or say it in an old way, and how BackendRecords are labelled.
//
// It is pure, and the same for every object that LBCF stored and for every object that admission let through. The
// types are in the folders v1 and v1beta1, one for each version of the group. Start reading at DriverNamespace for
// names, PodPorts for effective values and GroupRecordLabels for what records carry.
package lbcf

import (
	"strings"

	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

//go:generate ./generate.sh

// The group of the kinds, and what names of shared objects begin with and where those live.
const (
	Group           = "lbcf.tkestack.io"
	SharedPrefix    = "lbcf-"
	SharedNamespace = "kube-system"
)

// Finalizers, spelt as LBCF spells them.
const (
	FinalizerLoadBalancer  = "lbcf.tkestack.io/delete-load-loadbalancer" // of LoadBalancers and Binds
	FinalizerBackendRecord = "lbcf.tkestack.io/deregister-backend"
)

// Labels and annotations that users set.
const (
	LabelDraining              = "lbcf.tkestack.io/driver-draining"
	LabelDoNotDelete           = "lbcf.tkestack.io/do-not-delete"
	AnnotationValidationPolicy = "lbcf.tkestack.io/validation-policy"
	ValidationOptional         = "optional"
)

// Marks of ours on BackendRecords. With them a BackendRecord proves what became of it: the binding of that UID was in
// the record of that group at that revision.
const (
	// AnnotationRecord has the group and the UID of the binding: "group/uid".
	AnnotationRecord = "fairlead.io/record"
	// AnnotationRevision has a revision of the record at which the binding was there: "epoch.index".
	AnnotationRevision = "fairlead.io/revision"
)

// IsShared tells whether a name is one of a shared object.
func IsShared(name string) bool { return strings.HasPrefix(name, SharedPrefix) }

// DriverNamespace is where the driver lives that an object of a namespace names.
func DriverNamespace(driver, namespace string) string {
	if IsShared(driver) {
		return SharedNamespace
	}
	return namespace
}

// LoadBalancerNamespaces are the namespaces where a LoadBalancer is looked for that a group names; the first that has
// it counts. The group's own goes first, because LBCF once let any namespace use the prefix.
func LoadBalancerNamespaces(loadBalancer, group string) []string {
	if IsShared(loadBalancer) && group != SharedNamespace {
		return []string{group, SharedNamespace}
	}
	return []string{group}
}

// MayUse tells whether groups of a namespace may use a LoadBalancer. A scope counts alone: it need not include the
// LoadBalancer's own namespace.
func MayUse(lb *v1beta1.LoadBalancer, namespace string) bool {
	if len(lb.Spec.Scope) == 0 {
		return lb.Namespace == namespace
	}
	for _, allowed := range lb.Spec.Scope {
		if allowed == "*" || allowed == namespace {
			return true
		}
	}
	return false
}

// IsDraining tells by its labels whether a driver takes no new objects.
func IsDraining(labels map[string]string) bool {
	return strings.EqualFold(labels[LabelDraining], "true")
}

// IsProtected tells by its labels whether an object must not be deleted.
func IsProtected(labels map[string]string) bool {
	_, protected := labels[LabelDoNotDelete]
	return protected
}
