// SPDX-License-Identifier: Apache-2.0

package httpd

import (
	"net/url"

	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/network/head"
)

// Request is a whole request.
type Request struct {
	From   string // the machine that asks
	Method string
	Path   string
	Query  url.Values
	Header map[string][]string
	Body   []byte
}

// Get gives the first value of a header, written as Go's canonical form has it; empty without one.
func (r *Request) Get(key string) string {
	if v := r.Header[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Answer is the way back of one request. Its methods do nothing once the answer has ended or the asker has gone.
type Answer struct {
	conn   *network.Conn
	begun  bool
	over   bool
	closed []func()
}

// Serve answers requests at a port.
func Serve(n *network.Network, machine, port string, handle func(*Request, *Answer)) {
	n.Listen(machine, port, func(c *network.Conn) { receive(c, handle) })
}

// receive reads one request.
func receive(c *network.Conn, handle func(*Request, *Answer)) {
	a := &Answer{conn: c}
	h, err := head.DecodeRequest(c.Hello())
	target, parsed := url.ParseRequestURI(h.Target)
	if err != nil || parsed != nil {
		a.Respond(400, nil, []byte("malformed request"))
		return
	}
	r := &Request{From: c.Peer(), Method: h.Method, Path: target.Path, Query: target.Query(), Header: h.Header}
	c.Handle(
		func(b []byte) { r.Body = append(r.Body, b...) },
		func(broken bool) {
			if broken {
				a.gone()
				return
			}
			c.Handle(nil, func(bool) { a.gone() })
			handle(r, a)
		})
}

// Respond gives a whole answer.
func (a *Answer) Respond(status int, header map[string]string, body []byte) {
	a.Begin(status, header)
	if len(body) > 0 {
		a.Write(body)
	}
	a.End()
}

// Begin gives the head of an answer, whose body follows in pieces.
func (a *Answer) Begin(status int, header map[string]string) {
	if a.begun || a.over {
		return
	}
	a.begun = true
	h := head.Response{Status: status, Header: map[string][]string{}}
	for key, value := range header {
		h.Header[key] = []string{value}
	}
	a.conn.Send(h.Encode())
}

// Write gives a piece of the body.
func (a *Answer) Write(b []byte) {
	if a.begun && !a.over {
		a.conn.Send(append([]byte(nil), b...))
	}
}

// End says that the body is whole.
func (a *Answer) End() {
	if !a.over {
		a.over = true
		a.conn.End()
	}
}

// Break breaks the answer off.
func (a *Answer) Break() {
	if !a.over {
		a.over = true
		a.conn.Reset()
	}
}

// Over tells whether the answer has ended, or nobody waits for it any more.
func (a *Answer) Over() bool { return a.over }

// OnClose has f called when the asker went before the answer had ended.
func (a *Answer) OnClose(f func()) { a.closed = append(a.closed, f) }

func (a *Answer) gone() {
	if a.over {
		return
	}
	a.over = true
	for _, f := range a.closed {
		f()
	}
}
