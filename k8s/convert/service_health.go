// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/safeyaml"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
)

// probes reads how endpoints of a Service are probed (K50). They are not where anything is wrong with that: whoever is left out by a probe that
// nobody meant would be gone without need.
func (r *report) probes(text string) world.HealthCheck {
	if strings.TrimSpace(text) == "" {
		return world.HealthCheck{}
	}
	field := annotationField(AnnotationHealthCheck)
	var check v1beta1.HealthCheck
	if err := safeyaml.Unmarshal([]byte(text), &check); err != nil {
		r.degrade(field, `write it as policies have it, such as "{type: HTTP, port: 8080, path: /healthz}", or remove it`,
			"it cannot be read (%s); endpoints are not probed", strings.Join(strings.Fields(err.Error()), " "))
		return world.HealthCheck{}
	}
	mine := report{object: r.object}
	out := mine.healthCheck(field, &check)
	for _, p := range mine.problems { // each says what it is instead, which is not so here
		why, _, _ := strings.Cut(p.Why, ";")
		r.degrade(p.Field, p.Remedy, "%s; endpoints are not probed", why)
	}
	if len(mine.problems) > 0 || out.Type == world.ProbeNone {
		return world.HealthCheck{}
	}
	return out
}
