// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"

	"fairlead.io/fairlead/dataplane/flows"
)

// Loads implements Edge: it reads the connection tracking of the network namespace.
func (k *kernel) Loads(ctx context.Context, of []flows.Endpoint) (map[flows.Endpoint]flows.Load, error) {
	counted, err := flows.Reader{NetNS: k.netns}.Loads(ctx, of, k.connections)
	if err != nil {
		k.connections = nil
		return nil, err
	}
	k.connections = counted.Now
	return counted.Of, nil
}
