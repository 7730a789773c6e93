// SPDX-License-Identifier: Apache-2.0

package enrol

import (
	"context"
	"errors"
	"fmt"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
)

// Revocations is the deny-list of a record. Why is a pki.Revoked.
type Revocations struct{ Record interface{ Read() *fsm.View } }

// Why tells why a certificate is good no more; empty where it is. Of one that only another member has seen, issued is zero: that one
// looked since when they are good.
func (r Revocations) Why(id pki.Identity, serial string, issued time.Time) string {
	view := r.Record.Read()
	if view.Count(fsm.TableRevocations) == 0 {
		return ""
	}
	if one, ok := view.Revoked(fsm.RevokedSerial, serial); ok {
		return "the certificate with serial number " + serial + " was " + by(one)
	}
	all, ok := view.Revoked(fsm.RevocationOf(id.Role), id.Name)
	switch {
	case !ok, all.Before != 0 && (issued.IsZero() || issued.Unix() >= all.Before):
		return ""
	case all.Before != 0:
		return "certificates of " + id.String() + " from before " + time.Unix(all.Before, 0).UTC().Format(time.RFC3339) + " were " + by(all)
	}
	return "all certificates of " + id.String() + " were " + by(all)
}

// by says who revoked, when and why.
func by(r *fsm.Revocation) string {
	if len(r.History) == 0 {
		return "revoked"
	}
	first := r.History[0]
	text := "revoked by " + first.By().Actor + " at " + time.UnixMilli(first.AtUnixMilli).UTC().Format(time.RFC3339)
	if first.By().Reason != "" {
		text += ": " + first.By().Reason
	}
	return text
}

func (s *Service) revocations() Revocations { return Revocations{s.o.Record} }

// Revoke implements fairleadv1connect.EnrolServiceHandler.
func (s *Service) Revoke(ctx context.Context, req *fairleadv1.RevokeRequest) (*fairleadv1.RevokeResponse, error) {
	caller, _ := admin.CallerFrom(ctx)
	of, name := fsm.RevocationOf(req.GetOf()), req.GetName()
	what := "revoke " + req.GetOf() + " " + name
	if req.GetUndo() {
		what = "take back that " + req.GetOf() + " " + name + " was revoked"
	}
	command, refusal := s.revocation(what, of, req)
	if refusal != nil {
		return nil, refusal
	}
	err := s.propose(ctx, caller.Signature(), req.GetReason(), command)
	if refused := (*fsm.OutcomeError)(nil); errors.As(err, &refused) {
		return nil, &admin.Refusal{Code: admin.Invalid, What: what, Why: err.Error(), Remedy: "`fairlead pki list` shows what is revoked"}
	}
	if err != nil {
		return nil, said(what, err)
	}
	s.o.Log.Warn("revocations changed", "what", what, "identity", caller.Actor(), "reason", req.GetReason())
	return &fairleadv1.RevokeResponse{}, nil
}

// revocation is the command that a request asks for.
func (s *Service) revocation(what string, of fsm.RevocationOf, req *fairleadv1.RevokeRequest) (fsm.Command, *admin.Refusal) {
	view, name := s.o.Record.Read(), req.GetName()
	refuse := func(why, remedy string) (fsm.Command, *admin.Refusal) {
		return nil, &admin.Refusal{Code: admin.Invalid, What: what, Why: why, Remedy: remedy}
	}
	if have := view.Group().Format; have < fsm.FormatRevocations {
		return refuse(fmt.Sprintf("the group's format is %d, and members of it cannot read revocations, which came with %d", have, fsm.FormatRevocations),
			"run this release on every member, then `fairlead raft finalize`")
	}
	if of == fsm.RevokedMembership {
		return refuse("whether somebody may be a member is said elsewhere", "`fairlead raft remove` and `fairlead raft add`")
	}
	if of != fsm.RevokedSerial {
		if err := pki.CheckName(name); err != nil {
			return refuse(err.Error(), "use the name in the certificate")
		}
	}
	switch revoked, ok := view.Revoked(of, name); {
	case req.GetUndo() && (req.GetAll() || of == fsm.RevokedSerial):
		return &fsm.EndRevocation{Of: of, Name: name}, nil
	case req.GetUndo() && !ok:
		return refuse("it is not revoked", "`fairlead pki list` shows what is")
	case req.GetUndo():
		return &fsm.Revoke{Of: of, Name: name, Before: goodAgain(revoked, s.o.Now()).Unix()}, nil
	case of == fsm.RevocationOf(pki.Member) && s.o.Serves(name) && !req.GetForce():
		return nil, &admin.Refusal{
			Code: admin.Invalid, What: what, Why: "it is a server of the group, which would have to do without", ForceOverrides: true,
			Remedy: "`fairlead raft remove " + name + "` first",
		}
	}
	return &fsm.Revoke{Of: of, Name: name}, nil
}

// clocks is by how much the clock of a signer may be behind for what it issues to be good.
const clocks = time.Minute

// goodAgain is since when certificates say that they were issued which are good once a revocation is taken back. They say so of a
// time that is pki.Backdate earlier. What was issued before the revocation never is.
func goodAgain(r *fsm.Revocation, now time.Time) time.Time {
	from := now.Add(-pki.Backdate - clocks)
	if len(r.History) > 0 {
		if revoked := time.UnixMilli(r.History[0].AtUnixMilli).Add(time.Second - pki.Backdate); from.Before(revoked) {
			return revoked
		}
	}
	return from
}
