// SPDX-License-Identifier: Apache-2.0

package httpd_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/network/head"
	"fairlead.io/fairlead/sim/network/httpd"
)

// What is asked arrives as it was asked, and what is answered as it was answered, however many pieces it came in.
func TestRequestsAndAnswersArriveWhole(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		w := engine.New(rapid.Uint64().Draw(t, "seed"))
		n := network.New(w, network.Options{})
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		pieces := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 9), 0, 5).Draw(t, "pieces")
		status := rapid.IntRange(200, 599).Draw(t, "status")
		var want []byte
		httpd.Serve(n, "s", "http", func(r *httpd.Request, a *httpd.Answer) {
			if r.From != "c" || r.Method != "POST" || r.Path != "/p" || r.Query.Get("q") != "1" || r.Get("K") != "v" || string(r.Body) != string(body) {
				t.Fatalf("%+v", r)
			}
			a.Begin(status, map[string]string{"A": "b"})
			for i, p := range pieces {
				want = append(want, p...)
				w.After(time.Duration(i)*time.Second, func() { a.Write(p) })
			}
			w.After(10*time.Second, a.End)
		})
		var got httpd.Response
		failed := errors.New("not called")
		request := head.Request{Method: "POST", Target: "/p?q=1", Header: map[string][]string{"K": {"v"}}}
		httpd.Call(w, n, "c", "s", "http", request, body, time.Minute, func(r httpd.Response, err error) { got, failed = r, err })
		if err := w.Run(2 * time.Minute); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		header := map[string]string{}
		for k, v := range got.Header {
			header[k] = v[0]
		}
		if got.Status != status || string(got.Body) != string(want) || !maps.Equal(header, map[string]string{"A": "b"}) {
			t.Fatalf("%+v", got)
		}
	})
}

func TestCallsSayWhyThereIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(*httpd.Request, *httpd.Answer)
		want  error
	}{
		"nobody": {nil, httpd.ErrRefused},
		"broken": {func(_ *httpd.Request, a *httpd.Answer) { a.Begin(200, nil); a.Break() }, httpd.ErrBroken},
		"silent": {func(*httpd.Request, *httpd.Answer) {}, httpd.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			w := engine.New(1)
			n := network.New(w, network.Options{})
			if c.serve != nil {
				httpd.Serve(n, "s", "http", c.serve)
			}
			var got error
			httpd.Call(w, n, "c", "s", "http", head.Request{Method: "GET", Target: "/"}, nil, time.Second,
				func(_ httpd.Response, err error) { got = err })
			if err := w.Run(time.Minute); err != nil || !errors.Is(got, c.want) {
				t.Fatal(err, got)
			}
		})
	}
}

// Who asked and went away is noticed, so that a watch can be forgotten.
func TestServerHearsThatTheAskerWent(t *testing.T) {
	w := engine.New(1)
	n := network.New(w, network.Options{})
	gone := false
	httpd.Serve(n, "s", "http", func(_ *httpd.Request, a *httpd.Answer) {
		a.Begin(200, nil)
		a.OnClose(func() { gone = true })
	})
	c := n.Dial("c", "s", "http", head.Request{Method: "GET", Target: "/watch"}.Encode())
	c.Handle(nil, nil)
	c.End()
	w.At(time.Second, c.Reset)
	if err := w.Run(time.Minute); err != nil {
		t.Fatal(err)
	}
	if !gone {
		t.Fatal("not noticed")
	}
}
