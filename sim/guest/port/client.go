// SPDX-License-Identifier: Apache-2.0

package port

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"

	"fairlead.io/fairlead/sim/network/head"
)

// RoundTripper does requests, each over a connection of its own. It is what both client-go and Connect take.
type RoundTripper struct {
	Port *Port
	// Address is host:port to connect to, whatever the URL says; optional.
	Address string
	// Header is added to every request; optional.
	Header http.Header
}

// Do implements connect.HTTPClient.
func (t RoundTripper) Do(r *http.Request) (*http.Response, error) { return t.RoundTrip(r) }

// RoundTrip implements http.RoundTripper. A body whose length is known is sent before the answer is waited for, one that is
// being made as it is made.
func (t RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	host, at, err := net.SplitHostPort(cmp.Or(t.Address, r.URL.Host))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL, err)
	}
	h := head.Request{Method: r.Method, Target: r.URL.RequestURI(), Header: r.Header}
	if len(t.Header) > 0 {
		h.Header = maps.Clone(r.Header)
		maps.Copy(h.Header, t.Header)
	}
	if r.ContentLength < 0 {
		return t.stream(r, h, host, at)
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	c, err := t.Port.Dial(r.Context(), host, at, h.Encode())
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		if _, err := c.Write(body); err != nil {
			return nil, err
		}
	}
	_ = c.CloseWrite() // a broken connection shows when the answer is read
	return answer(r, c)
}

func (t RoundTripper) stream(r *http.Request, h head.Request, host, at string) (*http.Response, error) {
	c, err := t.Port.Dial(r.Context(), host, at, h.Encode())
	if err != nil {
		_ = r.Body.Close() // whoever writes to it learns that nobody reads
		return nil, err
	}
	go func() {
		defer func() { _ = r.Body.Close() }()
		if _, err := io.Copy(c, r.Body); err != nil {
			_ = c.Reset()
			return
		}
		_ = c.CloseWrite() // a broken connection shows when the answer is read
	}()
	return answer(r, c)
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }() // it was read to its end
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: read the body: %w", r.Method, r.URL, err)
	}
	return body, nil
}

// answer waits for the head. The connection breaks when the request's context ends.
func answer(r *http.Request, c *Conn) (*http.Response, error) {
	stop := context.AfterFunc(r.Context(), func() { _ = c.Reset() })
	first, err := c.ReadPiece()
	if err == nil {
		var h head.Response
		if h, err = head.DecodeResponse(first); err == nil {
			return response(r, h, &body{conn: c, stop: stop, ctx: r.Context()}), nil
		}
	}
	stop()
	_ = c.Reset()
	if cause := r.Context().Err(); cause != nil {
		err = cause
	}
	return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL, err)
}

func response(r *http.Request, h head.Response, b *body) *http.Response {
	out := &http.Response{
		StatusCode: h.Status, Status: strconv.Itoa(h.Status) + " " + http.StatusText(h.Status), Header: h.Header,
		Proto: "HTTP/2.0", ProtoMajor: 2, Body: b, ContentLength: -1, Request: r, Trailer: http.Header{},
	}
	if n, err := strconv.ParseInt(out.Header.Get("Content-Length"), 10, 64); err == nil {
		out.ContentLength = n
	}
	return out
}

// body is what follows the head of an answer.
type body struct {
	conn *Conn
	stop func() bool
	ctx  context.Context
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.conn.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := b.ctx.Err(); cause != nil {
			err = cause
		} else {
			err = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
		}
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.stop()
	return b.conn.Close()
}
