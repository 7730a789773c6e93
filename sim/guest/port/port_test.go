// SPDX-License-Identifier: Apache-2.0

package port

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestHTTPGoesOverConnections(t *testing.T) {
	a, b := pair(t)
	l := b.Listen("80")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	gone := make(chan struct{})
	go func() {
		ended <- Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/stream" {
				fmt.Fprint(w, "first")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				close(gone)
				return
			}
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("X", PeerFrom(r.Context()))
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, body)
		}))
	}()
	client := http.Client{Transport: RoundTripper{Port: a}}
	r, err := client.Post("http://b:80/x?y=z", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusTeapot || r.Header.Get("X") != "a" || string(text) != "POST /x?y=z hello" {
		t.Fatalf("%v %q %v", r, text, err)
	}
	asking, leave := context.WithCancel(ctx)
	request, _ := http.NewRequestWithContext(asking, http.MethodGet, "http://b:80/stream", nil)
	if r, err = client.Do(request); err != nil {
		t.Fatal(err)
	}
	piece := make([]byte, 5)
	if _, err := io.ReadFull(r.Body, piece); err != nil || string(piece) != "first" {
		t.Fatalf("%q %v", piece, err)
	}
	leave() // the handler hears of it
	<-gone
	if _, err := r.Body.Read(piece); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestConnTellsHowItEnded(t *testing.T) {
	a, b := pair(t)
	l := b.Listen("1")
	near, _ := a.Dial(context.Background(), "b", "1", []byte("hi"))
	far, _ := l.AcceptConn()
	if far.Peer() != "a" || string(far.Hello()) != "hi" {
		t.Fatal(far.Peer(), far.Hello())
	}
	if err := near.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	_ = near.SetReadDeadline(time.Time{})
	_, _ = far.Write([]byte("last"))
	_ = far.Close() // what was written arrives all the same
	got := make([]byte, 4)
	if _, err := io.ReadFull(near, got); err != nil || string(got) != "last" {
		t.Fatalf("%q %v", got, err)
	}
	broken := make(chan struct{})
	near.OnBreak(func() { close(broken) }) // that nothing more follows may have been heard before
	<-broken
	if _, err := near.Read(got); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	if _, err := near.Write(got); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
}
