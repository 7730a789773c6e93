// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/sim/kernel/message"
)

// sparing is how this kernel finds the cgroups of pods, and is told which of them programs leave alone.
func (k *Kernel) sparing() sock.Sparing {
	return sock.Sparing{
		Cgroups: func(uids []string) map[string]uint64 {
			if len(uids) == 0 {
				return nil
			}
			a, err := k.call(context.Background(), message.Request{Sockets: &message.Sockets{Cgroups: uids}})
			if err != nil {
				return nil
			}
			return a.Cgroups
		},
		Hold: func(want map[sock.Own]bool) error {
			own := []message.Own{}
			for o := range want {
				own = append(own, message.Own(o))
			}
			return explain("spare pods", k.do(context.Background(), message.Request{Sockets: &message.Sockets{Spare: own, Spares: true}}))
		},
	}
}
