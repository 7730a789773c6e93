// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/handover"
)

// Installation is what was found of LBCF.
type Installation struct {
	Running       handover.Sight
	Drivers       []v1beta1.LoadBalancerDriver
	LoadBalancers []v1beta1.LoadBalancer
	Groups        []v1beta1.BackendGroup
	Records       []v1beta1.BackendRecord
	Binds         []v1.Bind
	// Pods are those of namespaces with BackendRecords.
	Pods map[types.NamespacedName]Pod
	// Unreadable are objects that no client of LBCF's types could decode.
	Unreadable []Finding
	// Definitions are the CustomResourceDefinitions of LBCF's kinds, Configurations those of its admission.
	Definitions, Configurations []unstructured.Unstructured
}

// Pod is what a BackendRecord's name and being depend on.
type Pod struct {
	UID    types.UID
	IP     string
	Labels map[string]string
	// Deleting pods serve no more; Ready and Running are as Kubernetes says.
	Deleting, Ready, Running bool
}

// available tells whether backends are registered for the pod (lbcf §5.1).
func (p Pod) available() bool { return p.IP != "" && !p.Deleting && p.Ready }

// kept tells whether registered backends of the pod stay under IfNotRunning (lbcf §5.1).
func (p Pod) kept() bool { return p.IP != "" && !p.Deleting && p.Running }
