// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/x509"
	"net/http"
	"strconv"
	"strings"

	"fairlead.io/fairlead/cluster/pki"
)

// Caller is who makes a request.
type Caller struct {
	// Identity is on whose behalf: of the certificate, or, behind a member that handed the request on, the
	// one that this member proved.
	Identity pki.Identity
	// ForwardedBy is the name of that member; empty if the caller is connected to us.
	ForwardedBy string
	// Membership is what the connection named in its handshake; the zero value if nothing.
	Membership pki.Membership
	// Certificate is what the connection was made with; nil without one.
	Certificate *x509.Certificate
	// Serial is the number of the caller's own certificate, in hexadecimal; behind a member that handed the request on, as that one
	// says; empty where nobody says.
	Serial string
	// Remote is the address at the other end of the connection.
	Remote string
}

// Actor is how histories name the caller: "operator/alice".
func (c Caller) Actor() string { return c.Identity.String() }

// Signature is how histories tell who asked: "operator/alice (certificate 4f1a, by way of m2)".
func (c Caller) Signature() string {
	var how []string
	if c.Serial != "" {
		how = append(how, "certificate "+c.Serial)
	}
	if c.ForwardedBy != "" {
		how = append(how, "by way of "+c.ForwardedBy)
	}
	if len(how) == 0 {
		return c.Actor()
	}
	return c.Actor() + " (" + strings.Join(how, ", ") + ")"
}

// connected is who the connection is with: the caller, or the member that handed the request on.
func (c Caller) connected() pki.Identity {
	if c.ForwardedBy == "" {
		return c.Identity
	}
	return pki.Identity{Domain: c.Identity.Domain, Role: pki.Member, Name: c.ForwardedBy}
}

type callerKey struct{}

// CallerFrom gives the caller in a handler's context. It is there in every handler that a Server runs.
func CallerFrom(ctx context.Context) (Caller, bool) {
	caller, ok := ctx.Value(callerKey{}).(Caller)
	return caller, ok
}

// WithCaller names the caller of a request that Handler shall serve. Whoever calls it vouches for that: a Server does
// for connections that it accepted itself.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// A member that hands a request on says for whom, and that it did. Only members are believed.
const (
	headerActor       = "Fairlead-Actor"
	headerForwardedBy = "Fairlead-Forwarded-By"
	headerSerial      = "Fairlead-Serial" // of the caller's certificate; older releases leave it out
)

// maxSerial bounds a serial number, in hexadecimal digits.
const maxSerial = 42

// onBehalf replaces a member's own identity by the one it speaks for, if it says so.
func (c Caller) onBehalf(header http.Header) (Caller, *Refusal) {
	actor, by := header.Get(headerActor), header.Get(headerForwardedBy)
	if actor == "" && by == "" {
		return c, nil
	}
	refuse := func(why string) (Caller, *Refusal) {
		return c, &Refusal{
			Code: Forbidden, What: "act for " + quote(actor) + " as " + c.Identity.String(), Why: why,
			Remedy: "leave out " + headerActor + " and " + headerForwardedBy,
		}
	}
	if c.Identity.Role != pki.Member {
		return refuse("only members hand on requests of others")
	}
	if by != c.Identity.Name {
		return refuse("the request says that " + quote(by) + " handed it on")
	}
	identity, err := pki.ParseActor(actor)
	if err != nil {
		return refuse(err.Error())
	}
	serial := header.Get(headerSerial)
	if len(serial) > maxSerial || strings.Trim(serial, "0123456789abcdef") != "" {
		return refuse("no serial number of a certificate: " + quote(serial[:min(len(serial), maxSerial)]))
	}
	identity.Domain = c.Identity.Domain
	c.Identity, c.ForwardedBy, c.Serial = identity, by, serial
	return c, nil
}

type forwardKey struct{}

// forwarding marks the requests of ctx as handed on by member self for the caller.
func forwarding(ctx context.Context, self string, caller Caller) context.Context {
	header := http.Header{}
	header.Set(headerActor, caller.Actor())
	header.Set(headerForwardedBy, self)
	if caller.Serial != "" {
		header.Set(headerSerial, caller.Serial)
	}
	return context.WithValue(ctx, forwardKey{}, header)
}

// OnBehalf marks calls made with a Client and ctx as handed on by member self for a caller whom a certificate proved.
func OnBehalf(ctx context.Context, self string, caller Caller) context.Context {
	return forwarding(ctx, self, caller)
}

// addForwarding writes the mark into a request's header.
func addForwarding(ctx context.Context, to http.Header) {
	from, ok := ctx.Value(forwardKey{}).(http.Header)
	if !ok {
		return
	}
	for key, values := range from {
		to[key] = values
	}
}

func joinRoles(roles []pki.Role) string {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = string(role)
	}
	return strings.Join(names, " or ")
}

// quote keeps what callers wrote from being taken for our words.
func quote(text string) string { return strconv.Quote(text) }
