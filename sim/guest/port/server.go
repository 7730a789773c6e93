// SPDX-License-Identifier: Apache-2.0

package port

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"fairlead.io/fairlead/sim/network/head"
)

// Serve answers requests that come in at a listener until ctx ends, which ends those under way as well. Who is asking
// is in RemoteAddr, and, as the world vouches for it, in PeerFrom.
func Serve(ctx context.Context, l *Listener, handler http.Handler) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	work := make(chan *Conn)
	defer close(work)
	for {
		c, err := l.AcceptConn()
		if errors.Is(err, net.ErrClosed) && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case work <- c: // to a goroutine that served before: its stack has grown already
		default:
			running.Go(func() {
				for more := true; more; c, more = <-work {
					serve(ctx, c, handler)
				}
			})
		}
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
	var at *url.URL
	if err == nil {
		at, err = url.ParseRequestURI(h.Target)
	}
	if err != nil {
		_ = c.Reset()
		return
	}
	r := &http.Request{
		Method: h.Method, URL: at, Host: c.at, RequestURI: h.Target, Proto: "HTTP/2.0", ProtoMajor: 2, Header: h.Header,
		Body: asked{c}, ContentLength: -1, RemoteAddr: c.RemoteAddr().String(),
	}
	defer func() {
		if value := recover(); value != nil {
			_ = c.Reset()
			if value != http.ErrAbortHandler { //nolint:errorlint // net/http tells it by this very value
				panic(value)
			}
			return
		}
		a.end()
		c.CloseRead()
	}()
	handler.ServeHTTP(a, r.WithContext(ctx))
}

// asked is the body of a request.
type asked struct{ *Conn }

// Close implements io.Closer: the answer goes on.
func (a asked) Close() error {
	a.CloseRead()
	return nil
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

// SetReadDeadline is for http.ResponseController: the world lets no request hang for ever.
func (a *answerer) SetReadDeadline(time.Time) error { return http.ErrNotSupported }

// SetWriteDeadline is for http.ResponseController: writing never waits.
func (a *answerer) SetWriteDeadline(time.Time) error { return http.ErrNotSupported }

func (a *answerer) end() {
	a.Flush()
	_ = a.conn.CloseWrite()
}
