// SPDX-License-Identifier: Apache-2.0

package enrol

import (
	"context"
	"errors"
	"fmt"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
)

// stranger refuses to renew the certificate of a node or a host that the record does not know; nil for those that it does.
func (s *Service) stranger(what string, id pki.Identity) *admin.Refusal {
	view, known := s.o.Record.Read(), false
	why, remedy := "the group took the host out", "enrol it anew: `fairlead pki enrol "+id.Name+" --outside`"
	if id.Role == pki.Host {
		_, known = fsm.Get[*fsm.Host](view, fsm.TableHosts, id.Name)
	} else {
		why, remedy = "the group knows no such node", "`fairlead get nodes` lists those that it does: is the Node there, and is the cluster read?"
		_, known = fsm.Get[*fsm.Node](view, fsm.TableNodes, id.Name)
	}
	if known {
		return nil
	}
	return &admin.Refusal{Code: admin.Forbidden, What: what, Why: why, Remedy: remedy}
}

// AdmitHost implements fairleadv1connect.EnrolServiceHandler.
func (s *Service) AdmitHost(ctx context.Context, req *fairleadv1.AdmitHostRequest) (*fairleadv1.AdmitHostResponse, error) {
	what := "take in host " + req.GetName()
	if err := pki.CheckName(req.GetName()); err != nil {
		return nil, &admin.Refusal{Code: admin.Invalid, What: what, Why: err.Error(), Remedy: "use the name in its certificate"}
	}
	err := s.changeHost(ctx, what, &fsm.RegisterHost{ID: fsm.HostID(req.GetName()), Admit: true}, "take out hosts that are no more; `fairlead get hosts` lists them")
	return &fairleadv1.AdmitHostResponse{}, err
}

// RemoveHost implements fairleadv1connect.EnrolServiceHandler.
func (s *Service) RemoveHost(ctx context.Context, req *fairleadv1.RemoveHostRequest) (*fairleadv1.RemoveHostResponse, error) {
	err := s.changeHost(ctx, "take out host "+req.GetName(), &fsm.RemoveHost{ID: fsm.HostID(req.GetName())}, "`fairlead get hosts` lists those that there are")
	return &fairleadv1.RemoveHostResponse{}, err
}

// changeHost commits an operator's word about a host.
func (s *Service) changeHost(ctx context.Context, what string, c fsm.Command, remedy string) error {
	if have := s.o.Record.Read().Group().Format; have < fsm.FormatHosts {
		return &admin.Refusal{
			Code: admin.Invalid, What: what, Why: fmt.Sprintf("the group's format is %d, and members of it cannot read hosts, which came with %d", have, fsm.FormatHosts),
			Remedy: "run this release on every member, then `fairlead raft finalize`",
		}
	}
	caller, _ := admin.CallerFrom(ctx)
	err := s.propose(ctx, caller.Signature(), "host", c)
	switch refused := (*fsm.OutcomeError)(nil); {
	case err == nil:
		s.o.Log.Info("hosts changed", "what", what, "identity", caller.Actor())
		return nil
	case !errors.As(err, &refused):
		return said(what, err)
	}
	return &admin.Refusal{Code: admin.Invalid, What: what, Why: err.Error(), Remedy: remedy}
}
