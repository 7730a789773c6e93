// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
)

// What a policy without a health check has (balancing §14).
const (
	probeInterval  = 10 * time.Second
	probeTimeout   = 2 * time.Second
	probeHealthy   = 1
	probeUnhealthy = 3
	maxProbe       = 3600 // seconds, and probes in a row
)

// healthCheck reads how listed addresses are probed. What makes no sense is its default.
func (r *report) healthCheck(field string, c *v1beta1.HealthCheck) world.HealthCheck {
	out := world.HealthCheck{Type: world.ProbeTCP, Interval: probeInterval, Timeout: probeTimeout, Healthy: probeHealthy, Unhealthy: probeUnhealthy}
	if c == nil {
		return out
	}
	switch t := world.ProbeType(c.Type); t {
	case "":
	case world.ProbeTCP, world.ProbeHTTP, world.ProbeHTTPS, world.ProbeICMP, world.ProbeUDP, world.ProbeNone:
		out.Type = t
	default:
		r.degrade(field+".type", "write TCP, HTTP, HTTPS, ICMP, UDP or None", "%q is unknown; it is TCP", c.Type)
	}
	number := func(name string, n int32, otherwise int) int {
		switch {
		case n == 0:
			return otherwise
		case n < 0 || n > maxProbe:
			r.degrade(field+"."+name, fmt.Sprintf("use a number from 1 to %d", maxProbe), "%d makes no sense; it is %d", n, otherwise)
			return otherwise
		}
		return int(n)
	}
	out.Interval = time.Duration(number("intervalSeconds", c.IntervalSeconds, int(probeInterval/time.Second))) * time.Second
	out.Timeout = time.Duration(number("timeoutSeconds", c.TimeoutSeconds, int(probeTimeout/time.Second))) * time.Second
	out.Healthy = number("healthyThreshold", c.HealthyThreshold, probeHealthy)
	out.Unhealthy = number("unhealthyThreshold", c.UnhealthyThreshold, probeUnhealthy)
	if c.Port < 0 || c.Port > 65535 {
		r.degrade(field+".port", "use a number from 1 to 65535, or leave it out", "%d is no port; each of toPorts is probed", c.Port)
	} else {
		out.Port = uint16(c.Port)
	}
	r.probeOfHTTP(field, c, &out)
	return out
}

// probeOfHTTP reads what only probes of HTTP have.
func (r *report) probeOfHTTP(field string, c *v1beta1.HealthCheck, out *world.HealthCheck) {
	if out.Type != world.ProbeHTTP && out.Type != world.ProbeHTTPS {
		if c.Path != "" || len(c.ExpectedStatuses) > 0 {
			r.add(world.Ignored, field, "leave them out, or write type: HTTP", "path and expectedStatuses have no meaning with %s", out.Type)
		}
		return
	}
	out.Path = cmpDefault(c.Path, "/")
	if !strings.HasPrefix(out.Path, "/") {
		r.degrade(field+".path", "begin it with /", "%q is no path; it is /", c.Path)
		out.Path = "/"
	}
	for i, n := range c.ExpectedStatuses {
		if n < 100 || n > 599 {
			r.degrade(fmt.Sprintf("%s.expectedStatuses[%d]", field, i), "use a number from 100 to 599", "%d is no status", n)
			continue
		}
		out.Statuses = append(out.Statuses, int(n))
	}
}
