// SPDX-License-Identifier: Apache-2.0

package lbcf

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// DefaultPeriod is the time between two calls of a policy Always that does not say it.
const DefaultPeriod = time.Minute

// BackendType says what the backends of a group are, as drivers are told it.
type BackendType string

// What the backends of a group are.
const (
	Pod     BackendType = "Pod"
	Service BackendType = "Service"
	Static  BackendType = "Static"
)

// TypeOf is what the backends of a group are. One that selects nothing is a static one without addresses.
func TypeOf(g *v1beta1.BackendGroupSpec) BackendType {
	switch {
	case g.Service != nil:
		return Service
	case g.Pods != nil:
		return Pod
	default:
		return Static
	}
}

// LoadBalancers are the names of the LoadBalancers of a group, the deprecated lbName last.
func LoadBalancers(g *v1beta1.BackendGroupSpec) []string {
	names := slices.Clone(g.LoadBalancers)
	if g.LBName != nil && *g.LBName != "" && !slices.Contains(names, *g.LBName) {
		names = append(names, *g.LBName)
	}
	return names
}

// EffectivePort is a port as it is meant: with its number in Port and with a protocol. Port is 0 if it has no number.
func EffectivePort(p v1beta1.PortSelector) v1beta1.PortSelector {
	out := v1beta1.PortSelector{Port: max(p.Port, 0), Protocol: p.Protocol}
	if out.Port == 0 && p.PortNumber != nil {
		out.Port = max(*p.PortNumber, 0)
	}
	if out.Protocol == "" {
		out.Protocol = "TCP"
	}
	return out
}

// PodPorts are the effective ports of pods of a group, the deprecated port last. Ports that are listed twice stay so.
func PodPorts(p *v1beta1.PodBackends) []v1beta1.PortSelector {
	var ports []v1beta1.PortSelector
	for _, port := range p.Ports {
		ports = append(ports, EffectivePort(port))
	}
	if p.Port != nil {
		if port := EffectivePort(*p.Port); !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// DeregisterPolicy is the policy that a group or a Bind means: one that is unset or unknown is IfNotReady.
func DeregisterPolicy(stored *string) string {
	if stored != nil && (*stored == v1beta1.IfNotRunning || *stored == v1beta1.Webhook) {
		return *stored
	}
	return v1beta1.IfNotReady
}

// FailurePolicy is what happens when the driver is asked in vain: one that is unset or unknown is DoNothing.
func FailurePolicy(w *v1beta1.DeregisterWebhook) string {
	if w != nil && w.FailurePolicy != nil && (*w.FailurePolicy == v1beta1.IfNotReady || *w.FailurePolicy == v1beta1.IfNotRunning) {
		return *w.FailurePolicy
	}
	return v1beta1.DoNothing
}

// Period is the time between two calls that ensure something again; 0 if it is not ensured again.
func Period(p *v1beta1.EnsurePolicy) time.Duration {
	if p == nil || p.Policy != v1beta1.Always {
		return 0
	}
	if p.MinPeriod == nil || p.MinPeriod.Duration <= 0 {
		return DefaultPeriod
	}
	return p.MinPeriod.Duration
}

// RecordPolicy is the policy of a Bind as its BackendRecords have it.
func RecordPolicy(p *v1.EnsurePolicy) *v1beta1.EnsurePolicy {
	if p == nil {
		return nil
	}
	if p.Policy != v1beta1.Always {
		return &v1beta1.EnsurePolicy{Policy: v1beta1.IfNotSucc}
	}
	out := &v1beta1.EnsurePolicy{Policy: v1beta1.Always}
	if p.ResyncPeriodInSeconds != nil {
		out.MinPeriod = &metav1.Duration{Duration: time.Duration(*p.ResyncPeriodInSeconds) * time.Second}
	}
	return out
}
