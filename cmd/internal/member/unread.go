// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"

	"fairlead.io/fairlead/k8s/informers"
	"fairlead.io/fairlead/k8s/unread"
)

// openUnread has this member tell people of objects that are not read where they are, while it leads, if it reads a cluster.
func (m *Member) openUnread() (informers.Unread, error) {
	t, err := unread.New(unread.Config{
		Namespaces: m.config.ConfigNamespaces(), Write: unread.Kubernetes{API: m.kube}.Tell, Clock: wallClock{}, Log: m.log, Ours: m.ours,
		Instance: m.config.Name, Metrics: m.registry,
	})
	if err != nil {
		return nil, err
	}
	m.node.WhileLeader(func(ctx context.Context, _ uint64) { t.Run(ctx) })
	return t, nil
}
