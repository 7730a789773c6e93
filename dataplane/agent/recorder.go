// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync"

	"fairlead.io/fairlead/api/desired"
)

// Recorder is an Applier that touches nothing: for `fairlead dev`, and for hosts where somebody else steers. It
// remembers what it was told last.
type Recorder struct {
	mu   sync.Mutex
	last desired.State
}

// Apply implements Applier. It always succeeds.
func (r *Recorder) Apply(_ context.Context, want desired.State) ([]Failure, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = want
	return nil, nil
}

// Told is what it was told last; the zero State if nothing.
func (r *Recorder) Told() desired.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}
