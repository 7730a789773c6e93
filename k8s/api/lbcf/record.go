// SPDX-License-Identifier: Apache-2.0

package lbcf

import (
	"crypto/md5" // it only has to be short and the same every time
	"encoding/hex"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Labels of BackendRecords of a group. Groups have LabelLBName too, and a label for each LoadBalancer (GroupLabels).
const (
	LabelLBDriver       = "lbcf.tkestack.io/lb-driver"
	LabelLBName         = "lbcf.tkestack.io/lb-name"
	LabelBackendGroup   = "lbcf.tkestack.io/backend-group"
	LabelBackendPod     = "lbcf.tkestack.io/backend-pod"
	LabelBackendService = "lbcf.tkestack.io/backend-service"
	LabelLBNamePrefix   = "name.lb.lbcf.tkestack.io/"
)

// Labels of BackendRecords of a Bind.
const (
	LabelBindDriver = "lbcf.tkestack.io/driver"
	LabelBindLB     = "lbcf.tkestack.io/lb"
	LabelBind       = "lbcf.tkestack.io/bind"
	LabelBindPod    = "lbcf.tkestack.io/pod"
)

// GroupRecordLabels are the labels of a BackendRecord of a group, by what its spec will be.
func GroupRecordLabels(group string, r *v1beta1.BackendRecordSpec) map[string]string {
	labels := map[string]string{
		LabelLBDriver:     LabelValue(r.LBDriver),
		LabelLBName:       LabelValue(r.LBName),
		LabelBackendGroup: LabelValue(group),
	}
	switch {
	case r.PodBackend != nil:
		labels[LabelBackendPod] = LabelValue(r.PodBackend.Name)
	case r.ServiceBackend != nil:
		labels[LabelBackendService] = LabelValue(r.ServiceBackend.Name)
	}
	return labels
}

// BindRecordLabels are the labels of a BackendRecord of a Bind, by what its spec will be.
func BindRecordLabels(bind string, r *v1beta1.BackendRecordSpec) map[string]string {
	labels := map[string]string{
		LabelBindDriver: LabelValue(r.LBDriver),
		LabelBindLB:     LabelValue(r.LBName),
		LabelBind:       LabelValue(bind),
	}
	if r.PodBackend != nil {
		labels[LabelBindPod] = LabelValue(r.PodBackend.Name)
	}
	return labels
}

// GroupLabels are the labels that tell a group's LoadBalancers, given all their names.
func GroupLabels(loadBalancers []string) map[string]string {
	labels := map[string]string{}
	for i, name := range loadBalancers {
		if i == 0 {
			labels[LabelLBName] = LabelValue(name)
		}
		if name != "" {
			labels[LabelLBNamePrefix+LabelValue(name)] = "True"
		}
	}
	return labels
}

// LabelValue is a name as the value of a label: itself, or a hash of it where it would be no legal value, so that
// objects with a long name can still be made and found.
func LabelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	sum := md5.Sum([]byte(name))
	return hex.EncodeToString(sum[:])
}

// GroupOwner makes a group the owner of its records.
func GroupOwner(g *v1beta1.BackendGroup) metav1.OwnerReference {
	return *metav1.NewControllerRef(g, v1beta1.GroupVersion().WithKind("BackendGroup"))
}

// BindOwner makes a Bind the owner of its records.
func BindOwner(b *v1.Bind) metav1.OwnerReference {
	return *metav1.NewControllerRef(b, v1.GroupVersion().WithKind("Bind"))
}
