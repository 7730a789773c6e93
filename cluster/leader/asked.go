// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"maps"
)

// Asked gives what everything would be planned from now: the record as it is, and the views as the guards judged them
// last. It is for Explain, which then costs the caller a plan and the loop next to nothing. False: this member does not
// lead, or the loop had no time before ctx ended, as while it waits for a commit.
func (l *Leader) Asked(ctx context.Context) (Input, bool) {
	if l.Status().Term == 0 {
		return Input{}, false
	}
	reply := make(chan Input, 1)
	select {
	case l.asks <- reply:
	case <-ctx.Done():
		return Input{}, false
	}
	return <-reply, true
}

// present is what Asked gives. It shares nothing that this loop still writes to.
func (p *planning) present() Input {
	return p.input(p.c.Record.Read(), p.excused, p.c.Group.Servers(), &origins{of: maps.Clone(p.origins.of)})
}
