// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"fairlead.io/fairlead/cluster/pki"
)

// gate stands before every method: it admits callers by the table, bounds calls, and counts them.
type gate struct {
	table    map[string]access
	log      *slog.Logger
	metrics  *metrics
	repeats  *pki.Repeats
	now      func() time.Time
	stopping context.Context // done when streams have to end
	standing Standing
	streams  streams
	callers  *callers
}

// options are those of every mounted handler.
func (g *gate) options() []connect.HandlerOption {
	return []connect.HandlerOption{
		connect.WithRequestGate(g.admit),
		connect.WithInterceptors(g),
		connect.WithRecover(g.recovered),
		connect.WithCompressMinBytes(worthCompressing),
		connect.WithConditionalHandlerOptions(func(spec connect.Spec) []connect.HandlerOption {
			most := max(g.table[spec.Procedure].maxMessage, 1)
			return []connect.HandlerOption{connect.WithReadMaxBytes(most), gzipUpTo(most)}
		}),
	}
}

// admit runs before a byte of the request is read.
func (g *gate) admit(ctx context.Context, spec connect.Spec, _ connect.Peer, header http.Header) (context.Context, error) {
	connected, ok := CallerFrom(ctx)
	if !ok {
		return nil, toConnect(&Refusal{Code: Forbidden, What: "call " + spec.Procedure, Why: "no certificate", Remedy: "connect with mutual TLS"})
	}
	caller, refusal := connected.onBehalf(header)
	if refusal == nil {
		refusal = g.refuse(caller, spec.Procedure)
	}
	if refusal != nil {
		g.refused(connected, spec.Procedure, refusal)
		return nil, toConnect(refusal)
	}
	leave, refusal := g.callers.enter(caller, spec.Procedure, g.table[spec.Procedure])
	if refusal != nil {
		g.limited(caller, spec.Procedure, "calls", refusal)
		return nil, toConnect(refusal)
	}
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		v.leave = leave
	} else {
		leave()
	}
	return WithCaller(ctx, caller), nil
}

// refuse decides by what the group says of a caller now, and by the table; nil for one that may call.
func (g *gate) refuse(caller Caller, procedure string) *Refusal {
	rule, known := g.table[procedure]
	if !known {
		rule = access{} // no roles
	}
	refusal := g.standing.fault(caller, procedure, g.now())
	if refusal == nil && (!rule.newcomers || caller.ForwardedBy != "") {
		refusal = g.standing.serving(caller, procedure)
	}
	if refusal == nil {
		refusal = rule.admit(caller, procedure)
	}
	if refusal == nil && rule.record {
		refusal = g.standing.starting(procedure)
	}
	return refusal
}

func (g *gate) refused(caller Caller, procedure string, refusal *Refusal) {
	g.metrics.refused.WithLabelValues(procedure, string(caller.Identity.Role)).Inc()
	suppressed, due := g.repeats.Due(procedure + " " + caller.Actor())
	if !due {
		return
	}
	g.log.Warn("call refused", "procedure", procedure, "identity", caller.Actor(), "forwarded_by", caller.ForwardedBy,
		"remote", caller.Remote, "reason", refusal.Why, "remedy", refusal.Remedy, "suppressed", suppressed)
}

// limited notes that a call was refused since its caller asks for too much; other errors are not.
func (g *gate) limited(caller Caller, procedure, limit string, err error) {
	if !errors.Is(err, Busy) {
		return
	}
	g.metrics.limited.WithLabelValues(procedure, string(caller.Identity.Role), limit).Inc()
	suppressed, due := g.repeats.Due("limited " + procedure + " " + caller.Actor())
	if due {
		g.log.Warn("caller over its limit", "procedure", procedure, "identity", caller.Actor(), "remote", caller.Remote, "err", err, "suppressed", suppressed)
	}
}

// change waits until the caller may make a change, of which the message is.
func (g *gate) change(ctx context.Context, caller Caller, procedure string, message any) error {
	n := g.table[procedure].changes
	if m, ok := message.(proto.Message); ok && n > 0 {
		n += proto.Size(m) >> 10
	}
	err := g.callers.change(ctx, caller, procedure, n)
	if err != nil {
		g.limited(caller, procedure, "changes", err)
	}
	return toConnect(err)
}

// WrapUnary implements connect.Interceptor.
func (g *gate) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		procedure, begin := req.Spec().Procedure, g.now()
		caller, _ := CallerFrom(ctx)
		rule := g.table[procedure]
		if refusal := rule.admitMessage(caller, procedure, req.Any()); refusal != nil {
			g.refused(caller, procedure, refusal)
			return nil, toConnect(refusal)
		}
		ctx, cancel := context.WithTimeout(ctx, rule.within)
		defer cancel()
		if err := g.change(ctx, caller, procedure, req.Any()); err != nil {
			return nil, err
		}
		response, err := next(ctx, req)
		g.metrics.seconds.WithLabelValues(procedure).Observe(g.now().Sub(begin).Seconds())
		g.metrics.ended(procedure, caller, err)
		return response, toConnect(err)
	}
}

// WrapStreamingClient implements connect.Interceptor; the gate stands on the server's side only.
func (g *gate) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor. Streams end when the server stops.
func (g *gate) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		procedure := conn.Spec().Procedure
		caller, _ := CallerFrom(ctx)
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stop := context.AfterFunc(g.stopping, func() {
			cancel(&Refusal{Code: Stopped, What: "call " + procedure, Why: "this member is ending", Remedy: "ask another one"})
		})
		defer stop()
		defer g.streams.begin(stream{caller, procedure, cancel})()
		if refusal := g.refuse(caller, procedure); refusal != nil { // since it was admitted
			return toConnect(refusal)
		}
		if err := g.change(ctx, caller, procedure, nil); err != nil {
			return err
		}
		open := g.metrics.streams.WithLabelValues(procedure)
		open.Inc()
		defer open.Dec()
		err := next(ctx, &ownConn{StreamingHandlerConn: conn, ctx: ctx, gate: g, caller: caller})
		if cause := context.Cause(ctx); err != nil && cause != nil && ctx.Err() != cause { //nolint:errorlint // a context that was given no cause has this very one
			err = cause
		}
		g.metrics.ended(procedure, caller, err)
		return toConnect(err)
	}
}

// ownConn holds each received message against the table.
type ownConn struct {
	connect.StreamingHandlerConn
	ctx    context.Context //nolint:containedctx // the stream's, which it lives no longer than
	gate   *gate
	caller Caller
}

func (c *ownConn) Receive(message any) error {
	if err := c.StreamingHandlerConn.Receive(message); err != nil {
		return err
	}
	procedure := c.Spec().Procedure
	if refusal := c.gate.table[procedure].admitMessage(c.caller, procedure, message); refusal != nil {
		c.gate.refused(c.caller, procedure, refusal)
		return toConnect(refusal)
	}
	if err := c.gate.callers.message(c.ctx, c.caller, procedure); err != nil {
		c.gate.limited(c.caller, procedure, "messages", err)
		return toConnect(err)
	}
	return nil
}

// errInternal is all that a caller is told about a fault of ours.
var errInternal = errors.New("internal error; the member's log says more")

// recovered keeps a fault in one handler to that call.
func (g *gate) recovered(_ context.Context, spec connect.Spec, _ http.Header, value any) error {
	g.log.Error("handler panicked", "procedure", spec.Procedure, "panic", value, "stack", string(debug.Stack()))
	return connect.NewError(connect.CodeInternal, errInternal)
}
