// SPDX-License-Identifier: Apache-2.0

package lbcf

import (
	"crypto/md5" // LBCF names records so; nothing is kept secret or safe by it
	"encoding/hex"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// PodRecord is the name of the BackendRecord of a port of a pod in a group, on a LoadBalancer. A pod that is made anew
// has another UID, and so another record.
func PodRecord(loadBalancer, group string, pod types.UID, port v1beta1.PortSelector) string {
	port = EffectivePort(port)
	return hash("_", loadBalancer, group, string(pod), number(port.Port), port.Protocol)
}

// ServiceRecord is the name of the BackendRecord of a port of a Service on a node. Its node port is not part of it.
func ServiceRecord(loadBalancer, group, service string, port v1beta1.PortSelector, node string) string {
	port = EffectivePort(port)
	return hash("_", loadBalancer, group, service, number(port.Port), port.Protocol, node)
}

// StaticRecord is the name of the BackendRecord of a static address.
func StaticRecord(loadBalancer, group, address string) string {
	return hash("_", loadBalancer, group, address)
}

// BindRecord is the name of the BackendRecord of a port of a pod in a Bind. Two Binds can come to the same name (a-b
// with c, a with b-c); then Apart gives one of them another.
func BindRecord(bind, loadBalancer, pod, podIP string, port v1.PortSelector) string {
	return hash("-", bind, loadBalancer, pod, podIP, port.Protocol, number(port.Port))
}

// Apart is the name of a record whose own name is taken by a record of another owner.
func Apart(name string, owner types.UID) string { return hash("-", name, string(owner)) }

func hash(separator string, parts ...string) string {
	sum := md5.Sum([]byte(strings.Join(parts, separator)))
	return hex.EncodeToString(sum[:])
}

func number(n int32) string { return strconv.Itoa(int(n)) }

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
	return hash("", name)
}

// GroupOwner makes a group the owner of its records.
func GroupOwner(g *v1beta1.BackendGroup) metav1.OwnerReference {
	return *metav1.NewControllerRef(g, v1beta1.GroupVersion().WithKind("BackendGroup"))
}

// BindOwner makes a Bind the owner of its records.
func BindOwner(b *v1.Bind) metav1.OwnerReference {
	return *metav1.NewControllerRef(b, v1.GroupVersion().WithKind("Bind"))
}
