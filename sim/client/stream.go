// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/proto"

	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/network/head"
	"fairlead.io/fairlead/sim/network/httpd"
)

// stream calls a procedure of a member with several messages, for an operator. Take is given each message of the answer,
// once all have come; then done is called.
func (g *Group) stream(member, procedure string, requests []proto.Message, take func([]byte) error, done func(error)) {
	var body []byte
	for _, r := range requests {
		message, err := proto.Marshal(r)
		if err != nil {
			panic(fmt.Sprintf("encode %T: %v", r, err)) // plain values only
		}
		body = append(binary.BigEndian.AppendUint32(append(body, 0), uint32(len(message))), message...)
	}
	h := head.Request{Method: http.MethodPost, Target: procedure, Header: map[string][]string{
		"Content-Type":             {"application/connect+proto"},
		"Connect-Protocol-Version": {"1"},
		"Connect-Timeout-Ms":       {strconv.FormatInt(changing.Milliseconds(), 10)},
	}}
	httpd.Call(g.o.World, g.o.Network, OperatorMachine, member, start.APIPort, h, body, changing, func(r httpd.Response, err error) {
		if err == nil && r.Status != http.StatusOK {
			err = refusal(member, r)
		}
		if err == nil {
			err = messages(member, r, take)
		}
		done(err)
	})
}

// The bits of an envelope's first byte.
const (
	isCompressed = 1
	isLast       = 2
)

var errCut = errors.New("the answer is cut off")

// messages takes the envelopes of an answer, the last of which says how the call ended.
func messages(member string, r httpd.Response, take func([]byte) error) error {
	for rest := r.Body; len(rest) >= 5; {
		kind, size := rest[0], binary.BigEndian.Uint32(rest[1:])
		if uint64(len(rest)-5) < uint64(size) {
			return errCut
		}
		message := rest[5 : 5+size]
		rest = rest[5+size:]
		switch {
		case kind&isCompressed != 0:
			return errors.New("the answer is compressed, which nobody asked for")
		case kind&isLast == 0:
			if err := take(message); err != nil {
				return err
			}
		default:
			var last struct{ Error json.RawMessage }
			if err := json.Unmarshal(message, &last); err != nil || last.Error == nil {
				return err
			}
			return refusal(member, httpd.Response{Status: r.Status, Body: last.Error})
		}
	}
	return errCut
}
