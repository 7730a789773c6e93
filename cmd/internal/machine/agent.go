// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/agent/disk"
	"fairlead.io/fairlead/internal/private"
)

// Agent gives the edges of a node's agent on this machine.
func Agent() node.Edges {
	p := &probing{}
	return node.Edges{
		Lock: disk.Lock, Narrow: private.Narrow, Boot: disk.BootID, Listen: listen, Dial: dialing,
		Steer: openSteer, NAT: openNAT, Probing: p.open, Sock: p.openSock, Underlay: underlay, Tunnel: openTunnel, L2: openL2, Speaker: openNodeSpeaker, Link: openLink, Flows: openFlows, ListenEverywhere: listenEverywhere,
		CleanSteer: cleanSteer, CleanNAT: cleanNAT, CleanSock: cleanSock, CleanTunnel: cleanTunnel,
	}
}
