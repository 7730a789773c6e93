// SPDX-License-Identifier: Apache-2.0

package lbcf

import (
	"slices"
	"time"

	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Webhooks of a driver: the last segment of the path of a call.
const (
	ValidateLoadBalancer = "validateLoadBalancer"
	CreateLoadBalancer   = "createLoadBalancer"
	EnsureLoadBalancer   = "ensureLoadBalancer"
	DeleteLoadBalancer   = "deleteLoadBalancer"
	ValidateBackend      = "validateBackend"
	GenerateBackendAddr  = "generateBackendAddr"
	EnsureBackend        = "ensureBackend"
	DeregisterBackend    = "deregisterBackend"
	JudgePodDeregister   = "judgePodDeregister"
	Healthz              = "healthz"
)

// DefaultTimeout is how long a webhook may take that has no timeout of its own, MaxTimeout the most that it can have.
const (
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = time.Minute
)

// RequiredWebhooks are those that every stored driver lists; admission adds those that the user left out.
func RequiredWebhooks() []string {
	return []string{
		Healthz,
		ValidateLoadBalancer, CreateLoadBalancer, EnsureLoadBalancer, DeleteLoadBalancer,
		ValidateBackend, GenerateBackendAddr, EnsureBackend, DeregisterBackend,
	}
}

// IsWebhook tells whether a driver may list a webhook. It may list judgePodDeregister, but we never add that: LBCF
// refuses a driver that has it.
func IsWebhook(name string) bool {
	return name == JudgePodDeregister || slices.Contains(RequiredWebhooks(), name)
}

// Timeout is how long a call of a webhook of a driver may take. The first entry with its name counts.
func Timeout(d *v1beta1.LoadBalancerDriver, webhook string) time.Duration {
	for _, w := range d.Spec.Webhooks {
		if w.Name == webhook {
			if w.Timeout != nil && w.Timeout.Duration > 0 {
				return w.Timeout.Duration
			}
			break
		}
	}
	return DefaultTimeout
}
