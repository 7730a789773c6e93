// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

func (r *renderer) register(p *fsm.Register) any {
	spec := p.Spec
	if spec == nil {
		spec = []byte{}
	}
	return records.Register{Name: string(p.ID), UID: p.UID, Version: p.Version, Spec: spec}
}
