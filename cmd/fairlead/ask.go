// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
)

// How long an answer may take, all servers tried in turn included. Members end calls by themselves before that.
const (
	lookWithin   = 20 * time.Second
	changeWithin = 70 * time.Second
	longWithin   = 11 * time.Minute
)

// ask makes one call to the group; what says, for the error, what was asked.
func ask[T any](ctx context.Context, c *cli, what string, within time.Duration, call func(context.Context, *admin.Client) (T, error)) (T, error) {
	var none T
	client, err := c.dial()
	if err != nil {
		return none, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %s", within))
	defer cancel()
	answer, err := call(ctx, client)
	if err != nil {
		return none, explain(ctx, what, client.Server(), err)
	}
	return answer, nil
}

// dial makes the client. Errors name what is missing, or the certificate file that cannot be used.
func (c *cli) dial() (*admin.Client, error) {
	group, err := c.findGroup()
	if err != nil {
		return nil, err
	}
	source, err := pki.OpenTrusted(group.Files(), slog.New(slog.DiscardHandler)) // it would speak of later changes only
	if err != nil {
		return nil, err
	}
	if err := inForce(source, group.Cert, time.Now()); err != nil {
		return nil, err
	}
	return admin.NewClient(admin.ClientOptions{Endpoint: &pki.Endpoint{Source: source}, Servers: group.Servers}), nil
}

// inForce tells of an expired certificate here, with the file's name; the member could only refuse it.
func inForce(source *pki.Source, path string, now time.Time) error {
	material := source.Material()
	switch leaf := material.Certificate.Leaf; {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("certificate %s of %s: it expired on %s; issue it anew with `fairlead pki issue`",
			path, material.Identity, leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("certificate %s of %s: it counts from %s on; set this machine's clock",
			path, material.Identity, leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// explain turns an error of a call into what, on what, why, remedy.
func explain(ctx context.Context, what, server string, err error) error {
	var refusal *admin.Refusal
	if errors.As(err, &refusal) {
		if refusal.Code == admin.NotReady && strings.HasPrefix(refusal.What, "call /") { // who calls knows what for
			told := *refusal
			told.What = what
			return &told
		}
		return err // says all of it
	}
	if server != "" {
		what += " at " + server
	}
	var remote *connect.Error
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, context.Canceled):
		return fmt.Errorf("%s: interrupted before an answer came", what)
	case errors.Is(err, admin.Unreachable):
		return unreachable(what, err)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w, so what became of it is unknown; look at that member's log, or name another with --server", what, cause)
	case errors.As(err, &remote) && remote.Code() == connect.CodeUnimplemented:
		return fmt.Errorf("%s: %s; use the release of fairlead that the group runs", what, remote.Message())
	case errors.As(err, &remote) && connect.IsWireError(err):
		return fmt.Errorf("%s: %s", what, remote.Message())
	}
	return fmt.Errorf("%s: %w", what, err)
}

// unreachable says it without Connect's code. Where certificates do not fit, the remedy is there already.
func unreachable(what string, err error) error {
	var call *connect.Error
	if errors.As(err, &call) {
		err = call.Unwrap()
	}
	var certificate *tls.CertificateVerificationError
	if errors.Is(err, pki.ErrRefusedByPeer) || errors.As(err, &certificate) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w; start a controller there, or name others with --server", what, err)
}
