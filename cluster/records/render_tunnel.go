// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

func (r *renderer) tunnel(t *fsm.Tunnel) any {
	_, ready := r.view.TunnelOf(t.Host)
	return records.Tunnel{
		Name: string(t.Host), Addresses: texts(r.view.Group().Tunnels.Addresses(t.Number)), Underlay: t.Underlay.String(), Ready: ready,
		Leaving: t.Leaving, Since: revision(t.Since),
	}
}
