// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"context"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/fsm"
)

// Local is this member as its own colleague.
func (s *Service) Local() Colleague { return local{s} }

type local struct{ service *Service }

func (l local) Silences(_ context.Context, about []fsm.NodeID) (Report, error) {
	return l.service.report(about), nil
}

func (l local) Probe(ctx context.Context, nodes []fsm.NodeID) (map[fsm.NodeID]bool, error) {
	answers := l.service.probe(ctx, nodes)
	return answers, ctx.Err() // cut short, silence says nothing
}

func nodeIDs(names []string) []fsm.NodeID {
	ids := make([]fsm.NodeID, len(names))
	for i, name := range names {
		ids[i] = fsm.NodeID(name)
	}
	return ids
}

// Over is another member as a colleague, behind a client of it.
func Over(client fairleadv1connect.LivenessServiceClient) Colleague { return remote{client} }

type remote struct {
	client fairleadv1connect.LivenessServiceClient
}

func (r remote) Silences(ctx context.Context, about []fsm.NodeID) (Report, error) {
	answer, err := r.client.Silences(ctx, &fairleadv1.SilencesRequest{About: names(about)})
	if err != nil {
		return Report{}, err
	}
	out := Report{Heard: int(answer.GetHeard()), Silences: map[fsm.NodeID]Silence{}}
	for _, said := range answer.GetSilences() {
		// More than a day is as good as a day, and no time is negative.
		forUs := min(said.GetForUs(), uint64((24 * time.Hour).Microseconds()))
		out.Silences[fsm.NodeID(said.GetNode())] = Silence{Boot: fsm.BootID(said.GetBoot()), For: time.Duration(forUs) * time.Microsecond}
	}
	return out, nil
}

func (r remote) Probe(ctx context.Context, nodes []fsm.NodeID) (map[fsm.NodeID]bool, error) {
	answer, err := r.client.Probe(ctx, &fairleadv1.ProbeRequest{Nodes: names(nodes)})
	if err != nil {
		return nil, err
	}
	out := map[fsm.NodeID]bool{}
	for _, a := range answer.GetAnswers() {
		out[fsm.NodeID(a.GetNode())] = a.GetAnswered()
	}
	return out, nil
}

func names(ids []fsm.NodeID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}
