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

const (
	// maxTTL bounds how long a one-time token is good for.
	maxTTL = 7 * 24 * time.Hour
	// maxOffers bounds the tokens that are good at a time.
	maxOffers = 10_000
)

// Offer implements fairleadv1connect.EnrolServiceHandler.
func (s *Service) Offer(ctx context.Context, req *fairleadv1.OfferRequest) (*fairleadv1.OfferResponse, error) {
	caller, _ := admin.CallerFrom(ctx)
	what := "offer a token for " + subjectOf(req.GetNode(), req.GetOutside())
	ttl := time.Duration(req.GetTtlSeconds()) * time.Second
	var err error
	named := pki.CheckName(req.GetNode())
	switch {
	case named != nil:
		err = &admin.Refusal{Code: admin.Invalid, What: what, Why: named.Error(), Remedy: "name it as its certificate shall"}
	case ttl <= 0 || ttl > maxTTL:
		err = &admin.Refusal{Code: admin.Invalid, What: what, Why: fmt.Sprintf("it cannot be good for %v", ttl), Remedy: fmt.Sprintf("use --ttl up to %v", maxTTL)}
	case len(fsm.List[*fsm.Enrolment](s.o.Record.Read(), fsm.TableEnrolments)) >= maxOffers:
		err = &admin.Refusal{Code: admin.Busy, What: what, Why: fmt.Sprintf("%d tokens are offered already", maxOffers), Remedy: "wait until some are over"}
	default:
		err = s.propose(ctx, caller.Signature(), "pki enrol", &fsm.PutEnrolment{
			ID: fsm.EnrolmentID(req.GetTokenSha256()), Node: fsm.NodeID(req.GetNode()), TTL: ttl, Outside: req.GetOutside(),
		})
		if refused := (*fsm.OutcomeError)(nil); errors.As(err, &refused) {
			err = &admin.Refusal{Code: admin.Invalid, What: what, Why: err.Error(), Remedy: "`fairlead raft finalize` once every member runs this release"}
		}
		err = said(what, err)
	}
	if err != nil {
		return nil, s.refused(callOffer, caller, err)
	}
	s.metrics.count(callOffer, "granted")
	s.o.Log.Info("one-time token offered", "node", req.GetNode(), "outside", req.GetOutside(), "ttl", ttl, "identity", caller.Actor())
	return &fairleadv1.OfferResponse{}, nil
}

func subjectOf(name string, outside bool) string {
	if outside {
		return "host " + name
	}
	return "node " + name
}
