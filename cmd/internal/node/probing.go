// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/health"
)

// checking is a Checker as a part of an agent.
type checking struct {
	*health.Checker
	policies bool // this host carries them out
}

// ProbingOver makes a Checker a part of the agent that a configuration describes.
func ProbingOver(c config.Agent, checker *health.Checker) Probing {
	return checking{checker, c.Sock != nil}
}

// Apply has addresses probed as policies and Services ask for it.
func (p checking) Apply(_ context.Context, want desired.State) ([]agent.Failure, error) {
	var services []desired.Source
	for _, t := range want.Told() {
		if t.HasProbe() { // the others are not even decoded
			services = append(services, t)
		}
	}
	if p.policies {
		p.Take(want.Policies(), services, want.Revision)
	} else {
		p.Take(nil, services, want.Revision)
	}
	return nil, nil
}
