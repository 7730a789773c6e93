// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
)

// spoken is a word over the API.
type spoken struct{ client *admin.Client }

// overAPI is how a word reaches the group.
func overAPI(client *admin.Client) word { return spoken{client} }

func (s spoken) ReleaseHold(ctx context.Context, id, reason string) error {
	_, err := s.client.Record.ReleaseHold(ctx, &fairleadv1.ReleaseHoldRequest{Id: id, Reason: reason})
	return err
}

func (s spoken) AcceptRewind(ctx context.Context, source, reason string) error {
	_, err := s.client.Record.AcceptRewind(ctx, &fairleadv1.AcceptRewindRequest{Source: source, Reason: reason})
	return err
}

func (s spoken) Move(ctx context.Context, service, node string, undo bool, reason string) error {
	_, err := s.client.Record.Move(ctx, &fairleadv1.MoveRequest{Service: service, Node: node, Undo: undo, Reason: reason})
	return err
}

func (s spoken) Drain(ctx context.Context, of, name string, undo bool, reason string) error {
	_, err := s.client.Record.Drain(ctx, &fairleadv1.DrainRequest{Of: of, Name: name, Undo: undo, Reason: reason})
	return err
}
