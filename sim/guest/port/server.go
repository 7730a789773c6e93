// SPDX-License-Identifier: Apache-2.0

package port

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"fairlead.io/fairlead/sim/network/head"
)

// Serve answers requests that come in at a listener until ctx ends, which ends those under way as well. Who is asking
// is in RemoteAddr, and, as the world vouches for it, in PeerFrom.
func Serve(ctx context.Context, l *Listener, handler http.Handler) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		c, err := l.AcceptConn()
		if errors.Is(err, net.ErrClosed) && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		running.Go(func() { serve(ctx, c, handler) })
	}
}

type peerKey struct{}

// PeerFrom is the host that asks.
func PeerFrom(ctx context.Context) string {
	peer, _ := ctx.Value(peerKey{}).(string)
	return peer
}

func serve(ctx context.Context, c *Conn, handler http.Handler) {
	ctx, cancel := context.WithCancel(context.WithValue(ctx, peerKey{}, c.Peer()))
	defer cancel()
	c.OnBreak(cancel)
	a := &answerer{conn: c, header: http.Header{}}
	h, err := head.DecodeRequest(c.Hello())
	var body []byte
	if err == nil {
		body, err = io.ReadAll(c)
	}
	var r *http.Request
	if err == nil {
		r, err = http.NewRequestWithContext(ctx, h.Method, "http://"+c.at+h.Target, bytes.NewReader(body))
	}
	if err != nil {
		_ = c.Reset()
		return
	}
	r.Header, r.RemoteAddr, r.Proto, r.ProtoMajor, r.ProtoMinor = h.Header, c.RemoteAddr().String(), "HTTP/2.0", 2, 0
	r.RequestURI = h.Target
	defer func() {
		if value := recover(); value != nil {
			_ = c.Reset()
			if value != http.ErrAbortHandler {
				panic(value)
			}
			return
		}
		a.end()
	}()
	handler.ServeHTTP(a, r)
}

// answerer is the http.ResponseWriter of one request.
type answerer struct {
	conn    *Conn
	header  http.Header
	begun   bool
	pending []byte
}

// Header implements http.ResponseWriter.
func (a *answerer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answerer) WriteHeader(status int) {
	if a.begun || status < 200 {
		return
	}
	a.begun = true
	_, _ = a.conn.Write(head.Response{Status: status, Header: a.header}.Encode()) // the asker may have gone
}

// Write implements http.ResponseWriter.
func (a *answerer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.pending = append(a.pending, b...)
	if len(a.pending) > readSize {
		a.Flush()
	}
	return len(b), nil
}

// Flush implements http.Flusher.
func (a *answerer) Flush() {
	a.WriteHeader(http.StatusOK)
	if len(a.pending) > 0 {
		_, _ = a.conn.Write(a.pending) // the asker may have gone; its context has ended then
		a.pending = a.pending[:0]
	}
}

func (a *answerer) end() {
	a.Flush()
	_ = a.conn.CloseWrite()
}
