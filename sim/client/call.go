// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/network/head"
	"fairlead.io/fairlead/sim/network/httpd"
)

// RefusedError is what a member had to say instead of an answer.
type RefusedError struct {
	Member string
	Status string     // as Connect names it: "unavailable"
	Code   admin.Code // empty where the member gave none
	Text   string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Member + ": " + e.Text }

// Unwrap gives the code.
func (e *RefusedError) Unwrap() error { return e.Code }

// Sure tells whether a call that failed surely has done nothing, and will not.
func Sure(err error) bool {
	if errors.Is(err, httpd.ErrRefused) {
		return true
	}
	for _, code := range []admin.Code{admin.NotLeader, admin.Busy, admin.NoQuorum, admin.NotReady, admin.Invalid, admin.Forbidden, admin.Unreachable} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// call calls a procedure of a member. What its answer says is in the message given when done is called without an error.
func (g *Group) call(from, member, procedure string, request, answer proto.Message, within time.Duration, done func(error)) {
	body, err := proto.Marshal(request)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", request, err)) // plain values only
	}
	h := head.Request{Method: http.MethodPost, Target: procedure, Header: map[string][]string{
		"Content-Type":             {"application/proto"},
		"Content-Length":           {strconv.Itoa(len(body))},
		"Connect-Protocol-Version": {"1"},
		"Connect-Timeout-Ms":       {strconv.FormatInt(within.Milliseconds(), 10)},
	}}
	var us fsm.Lineage
	if from == Machine {
		us = g.named()
		h.Header["Fairlead-Membership"] = []string{strings.TrimRight(fmt.Sprintf("%s %d false %s", us.Group, us.Epoch, us.Nonce), " ")}
	}
	httpd.Call(g.o.World, g.o.Network, from, member, start.APIPort, h, body, within, func(r httpd.Response, err error) {
		if from == Machine {
			g.met(us, err)
		}
		switch {
		case err != nil:
			done(err)
		case r.Status != http.StatusOK:
			done(refusal(member, r))
		default:
			done(proto.Unmarshal(r.Body, answer))
		}
	})
}

// named is the lineage that a client names. After a restore of a backup that knows none, members go on naming the former one for some
// seconds, after a recover none of them knows it any more: whoever is not welcome by the one tries the other.
func (g *Group) named() fsm.Lineage {
	if g.welcome == (fsm.Lineage{}) || g.unwelcome {
		return g.o.Record().Group().Of()
	}
	return g.welcome
}

// met takes note of how a call went in which a lineage was named.
func (g *Group) met(us fsm.Lineage, err error) {
	switch {
	case err == nil:
		g.welcome, g.unwelcome = us, false
	case errors.Is(err, httpd.ErrBroken):
		g.unwelcome = !g.unwelcome
	}
}

// refusal reads an error as the Connect protocol writes it.
func refusal(member string, r httpd.Response) error {
	var wire struct {
		Code    string
		Message string
		Details []struct{ Type, Value string }
	}
	e := &RefusedError{Member: member, Text: strconv.Itoa(r.Status)}
	if json.Unmarshal(r.Body, &wire) != nil {
		return e
	}
	e.Status, e.Text = wire.Code, wire.Message
	for _, d := range wire.Details {
		var detail fairleadv1.Refusal
		value, err := base64.RawStdEncoding.DecodeString(d.Value)
		if err == nil && d.Type == "fairlead.v1.Refusal" && proto.Unmarshal(value, &detail) == nil {
			e.Code = admin.Code(detail.GetCode())
		}
	}
	return e
}
