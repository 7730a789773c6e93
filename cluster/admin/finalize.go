// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// Finalize implements fairleadv1connect.RaftServiceHandler. What a server reported when it last started may be of a
// release that was taken back since; therefore each is asked itself, and one that does not answer is no consent.
func (s *RaftService) Finalize(ctx context.Context, req *fairleadv1.FinalizeRequest) (*fairleadv1.FinalizeResponse, error) {
	return lead(ctx, s.onLeader, "finalize the format", func(ctx context.Context, caller Caller) (*fairleadv1.FinalizeResponse, error) {
		if err := s.mustLead(); err != nil {
			return nil, err
		}
		change := changeOf(caller, req)
		format, err := s.finalFormat(ctx, req.GetFormat(), change.Force)
		if err != nil {
			return nil, err
		}
		if format, err = s.group.Finalize(ctx, format, change); err != nil {
			return nil, err
		}
		s.log.Info("format finalized", "format", format, "actor", change.Actor, "reason", change.Reason)
		return &fairleadv1.FinalizeResponse{Format: format}, nil
	}, func(ctx context.Context, leader *Client) (*fairleadv1.FinalizeResponse, error) {
		return leader.Raft.Finalize(ctx, req)
	})
}

// finalFormat is the wanted format, or for 0 the newest that every server of the configuration knows. It is refused
// when a server knows none so new, and unless force is set when one does not say what it knows.
func (s *RaftService) finalFormat(ctx context.Context, wanted uint32, force bool) (uint32, error) {
	own, err := s.group.Status(ctx)
	if err != nil {
		return 0, err
	}
	status := s.toStatus(own)
	merge(status, s.ask(ctx, status.GetMembers()))
	least := findMember(status, status.GetAnsweredBy())
	for _, m := range status.GetMembers() {
		if m.GetUnreachable() != "" && !force {
			return 0, &Refusal{
				Code: NotReady, What: "finalize the format", Why: "what " + m.GetServerId() + " runs is unknown: " + m.GetUnreachable(),
				Remedy: "start it, or remove it from the group", ForceOverrides: true,
			}
		}
		if m.GetUnreachable() == "" && m.GetFormat() < least.GetFormat() {
			least = m
		}
	}
	if wanted > least.GetFormat() {
		return 0, &Refusal{
			Code: Invalid, What: fmt.Sprintf("finalize format %d", wanted),
			Why:    fmt.Sprintf("%s runs %s, which knows formats up to %d", least.GetServerId(), least.GetVersion(), least.GetFormat()),
			Remedy: "upgrade it first",
		}
	}
	if wanted == 0 {
		wanted = least.GetFormat()
	}
	return wanted, nil
}
