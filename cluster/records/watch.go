// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

// Watch implements fairleadv1connect.RecordServiceHandler. Nothing is queued for a reader: one who is slow gets
// what changed meanwhile as one message.
func (s *Service) Watch(ctx context.Context, req *fairleadv1.WatchRequest, stream *connect.ServerStream[fairleadv1.WatchResponse]) error {
	kinds, err := kindsNamed(req.GetKinds())
	if err != nil {
		return err
	}
	v := s.o.Record.Read()
	changed := kinds
	for {
		if len(changed) > 0 {
			m := &fairleadv1.WatchResponse{Revision: desired.RevisionMessage(v.Revision())}
			for _, k := range changed {
				m.Kinds = append(m.Kinds, k.Name)
			}
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		if changed, v, err = s.next(ctx, v.Only(), kinds); err != nil {
			return err
		}
	}
}

func kindsNamed(names []string) ([]kind, error) {
	if len(names) == 0 {
		names = records.Names()
	}
	var out []kind
	for _, name := range names {
		k, ok := kindNamed(name)
		if !ok {
			return nil, unknownKind("watch", name)
		}
		out = append(out, k)
	}
	return out, nil
}

// next waits for a change, then until those that follow it are in, and tells which kinds differ from v.
func (s *Service) next(ctx context.Context, v *fsm.View, kinds []kind) ([]kind, *fsm.View, error) {
	var tables []fsm.Table
	for _, k := range kinds {
		tables = append(tables, k.tables()...)
	}
	if err := s.o.Record.Wait(ctx, v, tables...); err != nil {
		return nil, nil, err
	}
	settled := time.NewTimer(s.o.Settle)
	defer settled.Stop()
	select {
	case <-settled.C:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	now := s.o.Record.Read()
	over, cancel := context.WithCancel(ctx)
	cancel()
	var changed []kind
	for _, k := range kinds {
		if s.o.Record.Wait(over, v, k.tables()...) == nil { // true at once, or not at all
			changed = append(changed, k)
		}
	}
	return changed, now, nil
}
