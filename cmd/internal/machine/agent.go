// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/agent/disk"
)

// Agent gives the edges of a node's agent on this machine.
func Agent() node.Edges {
	return node.Edges{
		Lock: disk.Lock, Boot: disk.BootID, Listen: listen,
		Steer: openSteer, NAT: openNAT, Sock: openSock, Underlay: underlay, Tunnel: openTunnel, L2: openL2, Speaker: openNodeSpeaker, Link: openLink, Flows: openFlows, ListenEverywhere: listenEverywhere,
		CleanSteer: cleanSteer, CleanNAT: cleanNAT, CleanSock: cleanSock, CleanTunnel: cleanTunnel,
	}
}
