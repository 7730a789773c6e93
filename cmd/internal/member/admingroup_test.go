// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"fmt"
	"testing"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
)

// Who takes a vote that the others cannot do without is told how to go on.
func TestRefusedVotesSayWhatHelps(t *testing.T) {
	for err, helps := range map[error]bool{fmt.Errorf("remove: %w: no majority", cluster.ErrNotReady): true, cluster.ErrUnknownServer: false} {
		var r *admin.Refusal
		if !errors.As(voteRefusal("remove x", err), &r) || r.ForceOverrides != helps || (r.Remedy != "") != helps {
			t.Errorf("%v: %+v", err, r)
		}
	}
}
