// SPDX-License-Identifier: Apache-2.0

package records

import (
	"time"

	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

func (r *renderer) revocation(v *fsm.Revocation) any {
	doc := records.Revocation{Name: v.Key(), Of: string(v.Of), Subject: v.Name, Since: revision(v.Since)}
	if v.Before != 0 {
		doc.GoodSince = time.Unix(v.Before, 0).UTC().Format(time.RFC3339)
	}
	if len(v.History) > 0 {
		last := v.History[len(v.History)-1]
		doc.Time, doc.By, doc.Reason = stamp(last.AtUnixMilli), last.By().Actor, last.By().Reason
	}
	return doc
}
