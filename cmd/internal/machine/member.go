// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"log/slog"
	"math/rand/v2"

	"fairlead.io/fairlead/cluster/liveness"
	"fairlead.io/fairlead/cluster/liveness/probe"
	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/gobgp"
	"fairlead.io/fairlead/dataplane/bgp/subprocess"
	"fairlead.io/fairlead/dataplane/bgp/supervisor"
	"fairlead.io/fairlead/internal/private"
	"fairlead.io/fairlead/k8s/client"
)

// Member gives the edges of a member on this machine. Listeners that are given become the member's when it opens its
// network.
func Member(listeners Listeners) member.Edges {
	return member.Edges{
		Folder: disk.Open, Floor: openFloor, Narrow: private.Narrow,
		Network: func(o member.NetworkOptions) (*member.Network, error) {
			return openNetwork(o, listeners)
		},
		Kubernetes: func(k config.Kubernetes) (*client.API, error) {
			return client.Open(client.Options{Kubeconfig: k.Kubeconfig, InCluster: k.InCluster})
		},
		Speaker: newSpeaker,
		Prober:  func(port uint16, log *slog.Logger) liveness.Prober { return probe.New(port, log) },
		Clock:   bootClock{},
		Random:  rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
}

// newSpeaker starts the BGP speaker that a member's configuration asks for, in a process of its own.
func newSpeaker(c config.BGP, log *slog.Logger) (member.Speaker, error) {
	listen := gobgp.Config{ASN: c.ASN, RouterID: c.RouterID, ListenAddrs: c.Listen, Management: c.Management, Logger: log}
	if c.Port > 0 {
		listen.ListenPort = uint16(c.Port)
	}
	s, err := subprocess.New(subprocess.Options{Config: listen})
	if err != nil {
		return nil, err
	}
	return speaker{s}, nil
}

// speaker tells of its sessions in member's words.
type speaker struct{ *supervisor.Speaker }

// Sessions implements member.Speaker.
func (s speaker) Sessions(ctx context.Context) (map[string]string, error) {
	peers, err := s.Peers(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, p := range peers {
		out[p.Name] = p.State
		if p.Fault != (bgp.Fault{}) {
			out[p.Name] += ": " + p.Fault.String()
		}
	}
	return out, nil
}
