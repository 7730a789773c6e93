// SPDX-License-Identifier: Apache-2.0

package records

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
)

// codes joins the group's errors with what they are called over the API, both ways.
func codes() []struct {
	code admin.Code
	err  error
} {
	return []struct {
		code admin.Code
		err  error
	}{
		{admin.UnknownOutcome, cluster.ErrUnknownOutcome}, // first: it may stand beside others
		{admin.NotLeader, cluster.ErrNotLeader},
		{admin.Busy, cluster.ErrBusy},
		{admin.Stopped, cluster.ErrStopped},
	}
}

// remote is an error of the group, as it crosses the API.
func remote(what string, err error) error {
	for _, c := range codes() {
		if errors.Is(err, c.err) {
			return &admin.Refusal{Code: c.code, What: what, Why: err.Error()}
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// refused is an error of the group that people are told: where nobody leads, with what is known of why.
func (s *Service) refused(what string, err error) error {
	if !errors.Is(err, cluster.ErrNotLeader) || errors.Is(err, cluster.ErrUnknownOutcome) {
		return remote(what, err)
	}
	why, remedy := s.leaderless()
	if why == "" {
		why, remedy = "no leader took it: "+err.Error(), "try again in a moment; `fairlead raft status` tells more if it stays so"
	}
	return &admin.Refusal{Code: admin.NotLeader, What: what, Why: why, Remedy: remedy}
}

// local is the inverse of remote: what a member makes of the leader's answer. A call that may have arrived and
// was not answered is of unknown outcome.
func local(err error) error {
	for _, c := range codes() {
		if errors.Is(err, c.code) {
			return fmt.Errorf("%w: %w", c.err, err)
		}
	}
	var refusal *admin.Refusal
	var dial *net.OpError
	if errors.As(err, &refusal) || errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Errorf("%w: %w", cluster.ErrNotLeader, err) // refused before it was looked at, or never sent
	}
	return fmt.Errorf("%w: %w", cluster.ErrUnknownOutcome, err)
}

// notFoundCode is what programs go by where an object does not exist.
const notFoundCode = "not-found"

func notFound(what, why, remedy string) error {
	return refuse(connect.CodeNotFound, notFoundCode, what, why, remedy)
}

func unknownKind(what, kind string) error {
	return notFound(what, "unknown kind "+strconv.Quote(kind), "it is one of "+strings.Join(records.Names(), ", "))
}

// refuse makes a refusal of a read, with a code that no other service has.
func refuse(status connect.Code, code, what, why, remedy string) error {
	refusal := &fairleadv1.Refusal{What: what, Why: why, Remedy: remedy, Code: code}
	err := connect.NewError(status, errors.New(what+": "+why+"; "+remedy))
	if detail, detailErr := connect.NewErrorDetail(refusal); detailErr == nil { // else the message says it all anyway
		err.AddDetail(detail)
	}
	return err
}
