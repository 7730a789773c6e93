// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
)

// Metrics is where, and to whom, /metrics is shown.
type Metrics struct {
	Listen string `yaml:"listen"` // empty: at the health port, to everybody
	// ServiceAccounts, namespace/name, are who may read them, with tokens for the audience fairlead.
	ServiceAccounts []string `yaml:"serviceAccounts"`
}

func (c *Controller) validateMetrics(bad func(field, why string)) {
	m := c.Metrics
	if m.Listen == "" {
		if len(m.ServiceAccounts) > 0 {
			bad("metrics.serviceAccounts", "everybody may read metrics at the health port; say where else they are in metrics.listen, such as \":7483\"")
		}
		return
	}
	if c.Sources.Kubernetes == nil {
		bad("metrics.listen", "there is no cluster to ask whose a token is; name one in sources.kubernetes")
	}
	if len(m.ServiceAccounts) == 0 {
		bad("metrics.serviceAccounts", "is missing: nobody may read metrics; name the account of Prometheus, such as monitoring/prometheus")
	}
	for i, a := range m.ServiceAccounts {
		if strings.Count(a, "/") != 1 {
			bad(fmt.Sprintf("metrics.serviceAccounts[%d]", i), fmt.Sprintf("%q is no namespace/name", a))
		}
	}
}
