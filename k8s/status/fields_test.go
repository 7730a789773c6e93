// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// What is applied mentions what was written and not a field more, as client-go's apply configurations would.
func TestPropertyAppliedFieldsAreThoseOfAnApplyConfiguration(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "<b>"})
	testkit.Check(t, func(t *rapid.T) {
		w := Write{
			ID:  fsm.ServiceID(rapid.SampledFrom([]string{"shop/web", "default/db"}).Draw(t, "id")),
			UID: text.Draw(t, "uid"), ResourceVersion: text.Draw(t, "version"),
			Ingress: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.LoadBalancerIngress {
				return corev1.LoadBalancerIngress{
					IP: text.Draw(t, "ip"), Hostname: text.Draw(t, "hostname"),
					IPMode: rapid.Ptr(rapid.Just(corev1.LoadBalancerIPModeVIP), true).Draw(t, "mode"),
					Ports: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.PortStatus {
						return corev1.PortStatus{
							Port: rapid.Int32Range(0, 2).Draw(t, "port"), Protocol: corev1.Protocol(text.Draw(t, "protocol")),
							Error: rapid.Ptr(text, true).Draw(t, "error"),
						}
					}), 0, 2).Draw(t, "ports"),
				}
			}), 0, 2).Draw(t, "ingress"),
			Conditions: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) metav1.Condition {
				return metav1.Condition{
					Type: text.Draw(t, "type"), Status: metav1.ConditionStatus(text.Draw(t, "status")),
					Reason: text.Draw(t, "reason"), Message: text.Draw(t, "message"),
					ObservedGeneration: rapid.Int64Range(0, 2).Draw(t, "generation"),
					LastTransitionTime: rapid.SampledFrom([]metav1.Time{{}, metav1.NewTime(noon)}).Draw(t, "transition"),
				}
			}), 0, 2).Draw(t, "conditions"),
		}
		got, err := json.Marshal(appliedFields(w))
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(applyConfiguration(w))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Fatalf("got\n%s, want\n%s", got, want)
		}
	})
}

func applyConfiguration(w Write) *applycorev1.ServiceApplyConfiguration {
	namespace, name, _ := strings.Cut(string(w.ID), "/")
	o := applycorev1.Service(name, namespace).WithUID(types.UID(w.UID)).WithResourceVersion(w.ResourceVersion)
	if len(w.Ingress) == 0 && len(w.Conditions) == 0 {
		return o
	}
	status := applycorev1.ServiceStatus()
	if len(w.Ingress) > 0 {
		list := applycorev1.LoadBalancerStatus()
		for _, in := range w.Ingress {
			list.WithIngress(ingressConfiguration(in))
		}
		status.WithLoadBalancer(list)
	}
	for _, c := range w.Conditions {
		condition := applymetav1.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).
			WithMessage(c.Message).WithLastTransitionTime(c.LastTransitionTime)
		if c.ObservedGeneration != 0 {
			condition.WithObservedGeneration(c.ObservedGeneration)
		}
		status.WithConditions(condition)
	}
	return o.WithStatus(status)
}

func ingressConfiguration(in corev1.LoadBalancerIngress) *applycorev1.LoadBalancerIngressApplyConfiguration {
	out := applycorev1.LoadBalancerIngress()
	if in.IP != "" {
		out.WithIP(in.IP)
	}
	if in.Hostname != "" {
		out.WithHostname(in.Hostname)
	}
	if in.IPMode != nil {
		out.WithIPMode(*in.IPMode)
	}
	for _, port := range in.Ports {
		p := applycorev1.PortStatus().WithPort(port.Port).WithProtocol(port.Protocol)
		if port.Error != nil {
			p.WithError(*port.Error)
		}
		out.WithPorts(p)
	}
	return out
}
