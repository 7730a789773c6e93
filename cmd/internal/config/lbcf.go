// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"time"
)

// LBCF is how outside load balancers are driven: what LBCF has as flags (lbcf §9), and under the names that
// they have there. Zero means the product's own default, which is quicker than LBCF's where that harms nobody.
type LBCF struct {
	// InformerResyncPeriod has no effect: nothing is missed that would have to be found again.
	InformerResyncPeriod time.Duration `yaml:"informerResyncPeriod"`
	// MinRetryDelay is the least time between two attempts. RetryDelayStep has LBCF's formula hold: it is waited for after the first
	// failure, which each further one doubles, up to MaxRetryDelay. Neither MinRetryDelay nor what a driver asks for is bound by MaxRetryDelay.
	MinRetryDelay  time.Duration `yaml:"minRetryDelay"`
	RetryDelayStep time.Duration `yaml:"retryDelayStep"`
	MaxRetryDelay  time.Duration `yaml:"maxRetryDelay"`
	// DryRun changes nothing in the cluster or at a load balancer, and logs what would be done.
	DryRun bool `yaml:"dryRun"`
	// ClientQPS and ClientBurst bound what is written of outside load balancers to the API server, a second and at once.
	ClientQPS   float64 `yaml:"clientQPS"`
	ClientBurst int     `yaml:"clientBurst"`
}

// maxDelay bounds delays: whoever writes more means another unit.
const maxDelay = 24 * time.Hour

func (l *LBCF) validate(bad func(field, why string)) {
	for field, d := range map[string]time.Duration{
		"lbcf.informerResyncPeriod": l.InformerResyncPeriod, "lbcf.minRetryDelay": l.MinRetryDelay,
		"lbcf.retryDelayStep": l.RetryDelayStep, "lbcf.maxRetryDelay": l.MaxRetryDelay,
	} {
		if d < 0 || d > maxDelay {
			bad(field, fmt.Sprintf("%s is no delay; it is from 0s (the default) to %s", d, maxDelay))
		}
	}
	if !(l.ClientQPS >= 0 && l.ClientQPS <= 1e6) { // NaN is neither
		bad("lbcf.clientQPS", fmt.Sprintf("%v is no rate; give requests a second, or 0 for the default", l.ClientQPS))
	}
	if l.ClientBurst < 0 {
		bad("lbcf.clientBurst", fmt.Sprintf("%d is less than none; give a number of requests, or 0 for the default", l.ClientBurst))
	}
}
