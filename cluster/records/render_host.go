// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

func (r *renderer) host(h *fsm.Host) any {
	return records.Host{
		Name: string(h.ID), Addresses: texts(h.Addresses), Boot: string(h.Boot), Since: revision(h.Since), Acknowledged: maybe(h.Acknowledged),
	}
}
