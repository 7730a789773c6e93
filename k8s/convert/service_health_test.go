// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
)

// K50: probes of endpoints are asked for as policies do it, with their defaults. Whatever is wrong is said with its remedy, and nothing is probed.
// Rule: K50.
func TestProbesOfEndpointsAreRead(t *testing.T) {
	def := world.HealthCheck{Type: world.ProbeTCP, Interval: 10 * time.Second, Timeout: 2 * time.Second, Healthy: 1, Unhealthy: 3}
	with := func(change func(*world.HealthCheck)) world.HealthCheck { c := def; change(&c); return c }
	for text, want := range map[string]struct {
		probes world.HealthCheck
		said   string
	}{
		"":             {},
		"{}":           {def, ""},
		"type: None":   {},
		"{type: TCP}":  {def, ""},
		"{type: ICMP}": {with(func(c *world.HealthCheck) { c.Type = world.ProbeICMP }), ""},
		"{type: HTTPS, port: 8443, path: /ready, expectedStatuses: [200, 204], intervalSeconds: 3, timeoutSeconds: 1, healthyThreshold: 2, unhealthyThreshold: 5}": {
			world.HealthCheck{Type: world.ProbeHTTPS, Port: 8443, Path: "/ready", Statuses: []int{200, 204}, Interval: 3 * time.Second, Timeout: time.Second, Healthy: 2, Unhealthy: 5}, ""},
		`{"type": "HTTP", "path": "/"}`:        {with(func(c *world.HealthCheck) { c.Type, c.Path = world.ProbeHTTP, "/" }), ""},
		"yes":                                  {said: `cannot be read`},
		"{type: HTTP, interval: 3}":            {said: `unknown field "interval"`},
		"{type: gRPC}":                         {said: `metadata.annotations[fairlead.io/health-check].type: "gRPC" is unknown; endpoints are not probed; write TCP, HTTP, HTTPS, ICMP, UDP or None`},
		"{port: 70000}":                        {said: `metadata.annotations[fairlead.io/health-check].port: 70000 is no port; endpoints are not probed; use a number from 1 to 65535`},
		"{type: HTTP, path: healthz}":          {said: `"healthz" is no path; endpoints are not probed; begin it with /`},
		"{type: TCP, path: /healthz}":          {said: "have no meaning with TCP; endpoints are not probed"},
		"{type: HTTP, unhealthyThreshold: -1}": {said: "-1 makes no sense; endpoints are not probed"},
	} {
		s, problems := Service(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: map[string]string{AnnotationHealthCheck: text}},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
		})
		said := ""
		for _, p := range problems {
			said += fmt.Sprintf("%s: %s; %s ", p.Field, p.Why, p.Remedy)
			if p.Severity != world.Degraded {
				t.Errorf("%q: severity %v", text, p.Severity)
			}
		}
		if !reflect.DeepEqual(s.Choice().Probes, want.probes) || (want.said == "") != (said == "") || !strings.Contains(said, want.said) {
			t.Errorf("%q: %+v, %s", text, s.Choice().Probes, said)
		}
	}
}
