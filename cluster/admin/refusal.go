// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/pki"
)

// Code is what programs go by; errors.Is(err, NotLeader) holds for every Refusal with that code, on both sides
// of a connection.
type Code string

// The codes.
const (
	NotLeader         Code = "not-leader"         // surely not done; the leader can
	NoQuorum          Code = "no-quorum"          // nothing can be agreed on at present
	WouldLoseQuorum   Code = "would-lose-quorum"  // not done; force does it all the same
	UnknownServer     Code = "unknown-server"     // no server of the configuration is meant
	NotReady          Code = "not-ready"          // not done; later it may be
	Removed           Code = "removed"            // the server can never belong again
	RolledBack        Code = "rolled-back"        // the server lost what it had acknowledged
	BootstrapMismatch Code = "bootstrap-mismatch" // the members were told different things
	Busy              Code = "busy"               // surely not done; too much is waiting
	Unreachable       Code = "unreachable"        // surely not done; no connection came to be
	UnknownOutcome    Code = "unknown-outcome"    // it may have been done
	Stopped           Code = "stopped"            // the member is ending
	Invalid           Code = "invalid"            // the request makes no sense
	Forbidden         Code = "forbidden"          // the caller's role does not allow it
)

// Error makes a Code the target of errors.Is.
func (c Code) Error() string { return string(c) }

func (c Code) connect() connect.Code {
	switch c {
	case NotLeader, NoQuorum, NotReady, Stopped, Unreachable:
		return connect.CodeUnavailable
	case WouldLoseQuorum, Removed, RolledBack, BootstrapMismatch:
		return connect.CodeFailedPrecondition
	case UnknownServer:
		return connect.CodeNotFound
	case Busy:
		return connect.CodeResourceExhausted
	case Invalid:
		return connect.CodeInvalidArgument
	case Forbidden:
		return connect.CodePermissionDenied
	default:
		return connect.CodeUnknown
	}
}

// Refusal is an error that a person can do something about. It crosses connections whole.
type Refusal struct {
	Code           Code
	What           string // what was refused, on what: "remove m2"
	Why            string
	Remedy         string
	ForceOverrides bool   // the same with force is done
	Leader         string // name of the member that leads, where that matters and is known
}

// Error gives all of it in one line: "what: why; remedy".
func (r *Refusal) Error() string {
	text := r.Why
	if r.What != "" {
		text = r.What + ": " + text
	}
	if r.Remedy != "" {
		text += "; " + r.Remedy
	}
	return text
}

// Unwrap gives the code.
func (r *Refusal) Unwrap() error { return r.Code }

// Unsure tells whether what was asked for in a call that failed may have been done all the same, now or later: the
// connection broke, time ran out, or the other side does not know. After nil nothing is unsure.
func Unsure(err error) bool {
	var code Code
	switch {
	case err == nil:
		return false
	case errors.As(err, &code):
		return code == UnknownOutcome || code == Stopped
	}
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument, connect.CodeUnimplemented, connect.CodePermissionDenied, connect.CodeResourceExhausted:
		return !connect.IsWireError(err) // the other side said so before it did anything
	default:
		return true
	}
}

// toConnect writes errors of handlers for the wire.
func toConnect(err error) error {
	var refusal *Refusal
	var code Code
	switch {
	case errors.As(err, &refusal):
	case errors.As(err, &code):
		refusal = &Refusal{Code: code, Why: err.Error()}
	default:
		return err // nil too
	}
	wire := connect.NewError(refusal.Code.connect(), errors.New(err.Error()))
	detail, detailErr := connect.NewErrorDetail(&fairleadv1.Refusal{
		What:           refusal.What,
		Why:            refusal.Why,
		Remedy:         refusal.Remedy,
		ForceOverrides: refusal.ForceOverrides,
		Leader:         refusal.Leader,
		Code:           string(refusal.Code),
	})
	if detailErr == nil { // else the message says it all anyway
		wire.AddDetail(detail)
	}
	return wire
}

// fromConnect reads errors that came over the wire: a Refusal if the other side sent one, and what TLS has to
// say in words that help.
func fromConnect(err error) error {
	var wire *connect.Error
	if !errors.As(err, &wire) {
		return pki.Explain(err) // nil too
	}
	for _, detail := range wire.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		if r, ok := value.(*fairleadv1.Refusal); ok {
			return &Refusal{
				Code: Code(r.GetCode()), What: r.GetWhat(), Why: r.GetWhy(), Remedy: r.GetRemedy(),
				ForceOverrides: r.GetForceOverrides(), Leader: r.GetLeader(),
			}
		}
	}
	return pki.Explain(err)
}

// clientErrors is the client's interceptor that applies fromConnect.
type clientErrors struct{}

func (clientErrors) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		response, err := next(ctx, req)
		return response, fromConnect(err)
	}
}

func (clientErrors) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

func (clientErrors) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return explainingConn{next(ctx, spec)}
	}
}

type explainingConn struct{ connect.StreamingClientConn }

func (c explainingConn) Receive(message any) error {
	return keepEOF(c.StreamingClientConn.Receive(message))
}

func (c explainingConn) Send(message any) error {
	return keepEOF(c.StreamingClientConn.Send(message))
}

// keepEOF leaves the end of a stream as it is: callers compare it.
func keepEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return err
	}
	return fromConnect(err)
}
