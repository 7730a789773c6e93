// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"sync"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/agent"
)

// stiff is an agent's kernel that can be stopped: what is applied meanwhile waits, and the agent acknowledges nothing, but goes on to be
// in touch with members.
type stiff struct {
	agent.Recorder

	mu   sync.Mutex
	free chan struct{} // closed, but while it is stopped
}

func newStiff() *stiff {
	free := make(chan struct{})
	close(free)
	return &stiff{free: free}
}

// Apply implements agent.Applier.
func (s *stiff) Apply(ctx context.Context, want desired.State) ([]agent.Failure, error) {
	s.mu.Lock()
	free := s.free
	s.mu.Unlock()
	select {
	case <-free:
		return s.Recorder.Apply(ctx, want)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Hold has the machine's agent carry nothing out, and so acknowledge nothing, until Release.
func (m *Machine) Hold() {
	m.kernel.mu.Lock()
	defer m.kernel.mu.Unlock()
	m.kernel.free = make(chan struct{})
}

// Release ends a Hold.
func (m *Machine) Release() {
	m.kernel.mu.Lock()
	defer m.kernel.mu.Unlock()
	close(m.kernel.free)
}
