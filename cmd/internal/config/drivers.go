// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"fairlead.io/fairlead/dataplane/driver"
)

// Drivers is how the drivers of outside load balancers are called.
type Drivers struct {
	// Allowed are addresses, ranges, and addresses with a port, at which drivers are called although they are loopback,
	// link-local, a member's or the API server's. It must be equal on all members.
	Allowed []string `yaml:"allowed"`
}

func (d *Drivers) validate(bad func(field, why string)) {
	for i, text := range d.Allowed {
		if _, err := driver.ParsePlace(text); err != nil {
			bad(fmt.Sprintf("drivers.allowed[%d]", i), err.Error())
		}
	}
}

// Places are those of a configuration that Validate found in order.
func (d *Drivers) Places() []driver.Place {
	var out []driver.Place
	for _, text := range d.Allowed {
		if p, err := driver.ParsePlace(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}
