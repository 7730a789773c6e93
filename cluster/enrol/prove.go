// SPDX-License-Identifier: Apache-2.0

package enrol

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
)

// Audience is whom ServiceAccount tokens have to be for: one that was made for somebody else proves nothing to us.
const Audience = "fairlead"

// Review is what Kubernetes says about a token.
type Review struct {
	Authenticated bool
	Why           string // where it is not
	Username      string
	Audiences     []string // those of ours that the token is for
	Node          string   // that the token is bound to, by its Pod or itself; empty for none
}

// Reviewer asks Kubernetes about a token for Audience. Errors: it cannot be asked.
type Reviewer interface {
	Review(ctx context.Context, token string) (Review, error)
}

// unproven is why a node was not proven. The caller is told less than the log: a stranger shall not learn which of his
// guesses came close.
type unproven struct {
	refusal *admin.Refusal
	why     string
}

func (u *unproven) Error() string { return u.refusal.Error() }
func (u *unproven) Unwrap() error { return u.refusal }

func notProven(what, why string) error {
	return &unproven{why: why, refusal: &admin.Refusal{
		Code: admin.Forbidden, What: what, Why: "the token does not prove it",
		Remedy: "the member's log says more; use a ServiceAccount token of a Pod on that node for the audience " + Audience +
			", or one that `fairlead pki enrol` printed for it, once and in time",
	}}
}

// prove decides whether a caller runs on the node that it asks for; nil if so. It spends a one-time token.
func (s *Service) prove(ctx context.Context, what string, req *fairleadv1.EnrolRequest) error {
	switch {
	case req.GetServiceAccountToken() != "" && req.GetOutside():
		return notProven(what, "tokens of ServiceAccounts are for nodes; a host outside the cluster shows a one-time token")
	case req.GetServiceAccountToken() != "":
		return s.proveByReview(ctx, what, req.GetNode(), req.GetServiceAccountToken())
	case req.GetToken() != "":
		return s.proveByToken(ctx, what, &fsm.UseEnrolment{ID: Sum(req.GetToken()), Node: fsm.NodeID(req.GetNode()), Outside: req.GetOutside()})
	}
	return notProven(what, "no token was shown")
}

func (s *Service) proveByReview(ctx context.Context, what, node, token string) error {
	review, err := s.o.Reviewer.Review(ctx, token)
	if err != nil {
		s.o.Log.Error("token not reviewed", "node", node, "err", err)
		return &admin.Refusal{Code: admin.NotReady, What: what, Why: "Kubernetes cannot be asked about the token at present", Remedy: "try again"}
	}
	if why := review.fault(s.o.ServiceAccount, node); why != "" {
		return notProven(what, why)
	}
	return nil
}

// fault tells why a reviewed token does not prove that its bearer is the agent on a node; empty if it does.
func (r Review) fault(account, node string) string {
	namespace, name, _ := strings.Cut(account, "/")
	user := "system:serviceaccount:" + namespace + ":" + name
	switch {
	case !r.Authenticated:
		return "Kubernetes does not know the token: " + r.Why
	case !slices.Contains(r.Audiences, Audience):
		return fmt.Sprintf("the token is for the audiences %q, not for %s", r.Audiences, Audience)
	case r.Username != user:
		return fmt.Sprintf("the token is %s's, not %s's", r.Username, user)
	case r.Node == "":
		return "the token is bound to no node"
	case r.Node != node:
		return fmt.Sprintf("the token is bound to node %s", r.Node)
	}
	return ""
}

// proveByToken spends a one-time token. What this member knows to be no good is not proposed: strangers shall not
// write into the log.
func (s *Service) proveByToken(ctx context.Context, what string, use *fsm.UseEnrolment) error {
	known, ok := fsm.Get[*fsm.Enrolment](s.o.Record.Read(), fsm.TableEnrolments, string(use.ID))
	switch {
	case !ok:
		return notProven(what, "the one-time token is not known, or its time is over")
	case known.Node != use.Node:
		return notProven(what, "the one-time token is for "+subjectOf(string(known.Node), known.Outside))
	case known.Outside && !use.Outside:
		return notProven(what, "the one-time token is for a host outside the cluster; write outOfCluster: true into its agent.yaml")
	case use.Outside && !known.Outside:
		return notProven(what, "the one-time token is for a node; offer one with --outside")
	case known.Used:
		return notProven(what, "the one-time token was used already")
	}
	err := s.propose(ctx, "member/"+s.o.Member, "token shown", use)
	if refused := (*fsm.OutcomeError)(nil); errors.As(err, &refused) {
		return notProven(what, err.Error())
	}
	return said(what, err)
}

func (s *Service) propose(ctx context.Context, actor, reason string, c fsm.Command) error {
	out, err := s.o.Proposer.Propose(ctx, cluster.Urgent, fsm.Proposal{
		Actor: actor, Reason: reason, AtUnixMilli: s.o.Now().UnixMilli(), Command: c,
	})
	if err != nil {
		return err
	}
	return out[0].Err()
}

// said puts an error of the group into the words of the API.
func said(what string, err error) error {
	for from, code := range map[error]admin.Code{
		cluster.ErrNotLeader: admin.NotReady, cluster.ErrBusy: admin.Busy, cluster.ErrStopped: admin.Stopped,
		cluster.ErrUnknownOutcome: admin.UnknownOutcome,
	} {
		if errors.Is(err, from) {
			return &admin.Refusal{Code: code, What: what, Why: err.Error(), Remedy: "try again in a moment; if the token was spent, offer another one"}
		}
	}
	return err
}

// NewToken draws a one-time token: 130 bits, so that nobody guesses one.
func NewToken() string { return strings.ToLower(rand.Text()) }

// Sum is what the group keeps of a one-time token.
func Sum(token string) fsm.EnrolmentID {
	sum := sha256.Sum256([]byte(token))
	return fsm.EnrolmentID(hex.EncodeToString(sum[:]))
}
