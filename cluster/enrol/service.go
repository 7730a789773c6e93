// SPDX-License-Identifier: Apache-2.0

package enrol

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
)

// Proposer hands proposals to the leader, whoever that is; *cluster.Node is one.
type Proposer interface {
	Propose(ctx context.Context, u cluster.Urgency, proposals ...fsm.Proposal) ([]fsm.Outcome, error)
}

// Signer signs certificate requests; *pki.Authority is one.
type Signer interface {
	Sign(request []byte, req pki.Request) (*pki.Issued, error)
}

// Other is another member, to hand calls on to.
type Other struct {
	Name   string
	Client fairleadv1connect.EnrolServiceClient
}

// Options is what a Service is made of. Fields without "optional" are required.
type Options struct {
	Member   string // this member's name
	Record   fsm.Reader
	Proposer Proposer
	// Signer has the CA's key; nil: this member has not, and hands calls on.
	Signer Signer
	// Reviewer asks Kubernetes about ServiceAccount tokens; nil: this member cannot.
	Reviewer Reviewer
	// ServiceAccount is the only one whose tokens enrol agents, namespace/name. Default kube-system/fairlead-agent.
	ServiceAccount string
	// Others are the other members, as far as they are known now; optional.
	Others func() []Other
	// Serves tells whether a member is a server of the group; optional: none is known to be.
	Serves func(member string) bool
	// TTL is how long certificates live. Default pki.MachineTTL.
	TTL     time.Duration
	Log     *slog.Logger
	Metrics prometheus.Registerer // optional
	Now     func() time.Time      // optional, time.Now
}

// DefaultServiceAccount is whose tokens enrol agents unless something else is configured.
const DefaultServiceAccount = "kube-system/fairlead-agent"

// Service implements fairleadv1connect.EnrolServiceHandler. Who may call it at all is seen to in cluster/admin.
type Service struct {
	o       Options
	limits  *limits
	metrics *metrics
	repeats *pki.Repeats
}

var _ fairleadv1connect.EnrolServiceHandler = (*Service)(nil)

// New makes a service. Errors: the metrics are registered already.
func New(o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ServiceAccount == "" {
		o.ServiceAccount = DefaultServiceAccount
	}
	if o.Serves == nil {
		o.Serves = func(string) bool { return false }
	}
	if o.Others == nil {
		o.Others = func() []Other { return nil }
	}
	m, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	return &Service{o: o, limits: newLimits(), metrics: m, repeats: pki.NewRepeats(o.Now)}, nil
}

// Enrol implements fairleadv1connect.EnrolServiceHandler.
func (s *Service) Enrol(ctx context.Context, req *fairleadv1.EnrolRequest) (*fairleadv1.EnrolResponse, error) {
	caller, _ := admin.CallerFrom(ctx)
	handedOn := caller.Identity.Role == pki.Member
	role, what := pki.Agent, "enrol "+subjectOf(req.GetNode(), req.GetOutside())
	if req.GetOutside() {
		role = pki.Host
	}
	if !handedOn && !s.limits.allow(caller.Remote, s.o.Now()) {
		return nil, s.refused(callEnrol, caller, &admin.Refusal{
			Code: admin.Busy, What: what, Why: "too many enrolments at present", Remedy: "try again in a while",
		})
	}
	if s.o.Signer == nil || req.GetServiceAccountToken() != "" && s.o.Reviewer == nil {
		if handedOn {
			return nil, s.refused(callEnrol, caller, s.cannot(what))
		}
		return handOn(ctx, s, what, func(ctx context.Context, o Other) (*fairleadv1.EnrolResponse, error) {
			return o.Client.Enrol(ctx, req)
		})
	}
	if why := s.revocations().Why(pki.Identity{Role: role, Name: req.GetNode()}, "", s.o.Now()); why != "" {
		return nil, s.refused(callEnrol, caller, notProven(what, why))
	}
	// Signed before the token is spent: what fails here may be tried again with the same token. Nobody sees the
	// certificate unless the token turns out to be good.
	signed, err := s.sign(what, req.GetRequest(), pki.Request{Role: role, Name: req.GetNode()})
	if err == nil {
		err = s.prove(ctx, what, req)
	}
	if err != nil {
		return nil, s.refused(callEnrol, caller, err)
	}
	s.granted(callEnrol, signed, caller)
	return &fairleadv1.EnrolResponse{Certificate: message(signed)}, nil
}

// Renew implements fairleadv1connect.EnrolServiceHandler. That the name is the caller's own has been seen to.
func (s *Service) Renew(ctx context.Context, req *fairleadv1.RenewRequest) (*fairleadv1.RenewResponse, error) {
	caller, _ := admin.CallerFrom(ctx)
	what := "renew the certificate of " + caller.Identity.String()
	if s.o.Signer == nil {
		if caller.ForwardedBy != "" {
			return nil, s.refused(callRenew, caller, s.cannot(what))
		}
		ctx = admin.OnBehalf(ctx, s.o.Member, caller)
		return handOn(ctx, s, what, func(ctx context.Context, o Other) (*fairleadv1.RenewResponse, error) {
			return o.Client.Renew(ctx, req)
		})
	}
	if refusal := s.stranger(what, caller.Identity); refusal != nil {
		return nil, s.refused(callRenew, caller, refusal)
	}
	signed, err := s.sign(what, req.GetRequest(), pki.Request{Role: caller.Identity.Role, Name: req.GetNode()})
	if err != nil {
		return nil, s.refused(callRenew, caller, err)
	}
	s.granted(callRenew, signed, caller)
	return &fairleadv1.RenewResponse{Certificate: message(signed)}, nil
}

// RenewMember implements fairleadv1connect.EnrolServiceHandler. The hosts are those that the caller's certificate
// proves.
func (s *Service) RenewMember(ctx context.Context, req *fairleadv1.RenewMemberRequest) (*fairleadv1.RenewMemberResponse, error) {
	caller, _ := admin.CallerFrom(ctx)
	what := "renew the certificate of member " + req.GetName()
	if s.o.Signer == nil || caller.Certificate == nil {
		return nil, s.refused(callRenew, caller, s.cannot(what))
	}
	signed, err := s.sign(what, req.GetRequest(), pki.Request{Role: pki.Member, Name: req.GetName(), Hosts: pki.HostsOf(caller.Certificate)})
	if err != nil {
		return nil, s.refused(callRenew, caller, err)
	}
	s.granted(callRenew, signed, caller)
	return &fairleadv1.RenewMemberResponse{Certificate: message(signed)}, nil
}

func (s *Service) sign(what string, request []byte, req pki.Request) (*pki.Issued, error) {
	req.TTL, req.Now = s.o.TTL, s.o.Now
	signed, err := s.o.Signer.Sign(request, req)
	if errors.Is(err, pki.ErrRequest) {
		return nil, &admin.Refusal{Code: admin.Invalid, What: what, Why: err.Error(), Remedy: "use the agent of a release that this member knows"}
	}
	if err != nil {
		s.o.Log.Error("certificate not signed", "name", req.Name, "role", string(req.Role), "err", err)
		return nil, &admin.Refusal{
			Code: admin.NotReady, What: what, Why: "this member cannot use the CA's key at present", Remedy: "its log says why; try again, or ask another member",
		}
	}
	return signed, nil
}

func (s *Service) cannot(what string) *admin.Refusal {
	return &admin.Refusal{
		Code: admin.NotReady, What: what, Why: s.o.Member + " cannot: it has not the CA's key, or no way to ask Kubernetes about tokens",
		Remedy: "ask a member with tls.caKey, and with sources.kubernetes for tokens of ServiceAccounts",
	}
}

// handOn asks the other members, until one knows what to do.
func handOn[T any](ctx context.Context, s *Service, what string, there func(context.Context, Other) (T, error)) (T, error) {
	var none T
	others := s.o.Others()
	for _, other := range others {
		answer, err := there(ctx, other)
		var refusal *admin.Refusal
		if err == nil || errors.As(err, &refusal) && refusal.Code != admin.NotReady {
			return answer, err // it was decided there, counted and logged
		}
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
	}
	s.metrics.count(callHandOn, "nobody-can")
	s.o.Log.Warn("no other member can sign", "asked", len(others))
	return none, &admin.Refusal{
		Code: admin.NotReady, What: what, Why: "no member that answers can sign certificates for this",
		Remedy: "give a member tls.caKey, and sources.kubernetes for tokens of ServiceAccounts",
	}
}

func message(c *pki.Issued) *fairleadv1.SignedCertificate {
	return &fairleadv1.SignedCertificate{Certificate: c.Cert, Ca: c.CA}
}

func (s *Service) granted(call string, signed *pki.Issued, caller admin.Caller) {
	s.metrics.count(call, "granted")
	s.o.Log.Info("certificate granted", "call", call, "identity", signed.Identity.String(), "not_after", signed.NotAfter,
		"remote", caller.Remote, "forwarded_by", caller.ForwardedBy)
}

// refused counts and logs what is not granted, and gives it back for the caller.
func (s *Service) refused(call string, caller admin.Caller, err error) error {
	result := "failed"
	var refusal *admin.Refusal
	if errors.As(err, &refusal) {
		result = string(refusal.Code)
	}
	s.metrics.count(call, result)
	why, hidden := err.Error(), (*unproven)(nil)
	if errors.As(err, &hidden) {
		why = hidden.why
	}
	if suppressed, due := s.repeats.Due(call + why + hostOf(caller.Remote)); due {
		s.o.Log.Warn("certificate refused", "call", call, "remote", caller.Remote, "identity", caller.Actor(), "reason", why, "suppressed", suppressed)
	}
	return err
}
