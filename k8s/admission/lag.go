// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"time"
)

// A view follows what is stored by a watch. Who applies a driver and its LoadBalancer in one manifest has the second
// judged some milliseconds after the first was stored, which the view need not show by then.
const (
	lagLongest = time.Second           // after that, what is lacking is taken not to be there
	lagLook    = 50 * time.Millisecond // how often to look
)

// judgeSettled validates a request, and again for a moment as long as nothing but a missing object speaks against it.
func (h *Handler) judgeSettled(ctx context.Context, r Request) Decision {
	d := h.judgeNow(ctx, r)
	if !d.lacking {
		return d
	}
	ctx, cancel := context.WithTimeout(ctx, lagLongest)
	defer cancel()
	look := time.NewTicker(lagLook)
	defer look.Stop()
	for d.lacking {
		select {
		case <-ctx.Done():
			return d
		case <-look.C:
			d = h.judgeNow(ctx, r)
		}
	}
	return d
}

// judgeNow validates a request by what is known to be stored now.
func (h *Handler) judgeNow(ctx context.Context, r Request) Decision {
	view, err := h.View(ctx)
	unknown := &nothing{}
	if err != nil {
		view = unknown
	}
	d := Validate(r, view, h.Rules)
	if unknown.asked {
		return Decision{Denied: fmt.Sprintf("%s: cannot be judged yet: %v: try again in a moment", r.subject(), err)}
	}
	return d
}
