// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
)

// openKubernetes makes the clients of the API server that the configuration names, if any. They are shared by
// everything of this member that speaks to it: source, status and the check of tokens.
func (m *Member) openKubernetes() (err error) {
	k := m.config.Sources.Kubernetes
	if k == nil {
		return nil
	}
	if m.kube, err = m.edges.Kubernetes(*k); err != nil {
		return fmt.Errorf("sources.kubernetes: %w", err)
	}
	return nil
}
