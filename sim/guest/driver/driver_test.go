// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/balancer"
	"fairlead.io/fairlead/sim/guest/bubble"
	"fairlead.io/fairlead/sim/guest/driver"
	"fairlead.io/fairlead/sim/guest/fact"
	"fairlead.io/fairlead/sim/guest/port"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/network/head"
	"fairlead.io/fairlead/sim/network/httpd"
)

// carrier takes requests into a world, as port.RoundTripper does for guests.
type carrier struct{ *bubble.World }

// RoundTrip implements http.RoundTripper.
func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	type result struct {
		httpd.Response
		error
	}
	results := make(chan result, 1)
	c.Do(func() {
		h := head.Request{Method: r.Method, Target: r.URL.RequestURI(), Header: r.Header}
		httpd.Call(c.World.World, c.Network, "m1", r.URL.Hostname(), r.URL.Port(), h, body, time.Hour,
			func(r httpd.Response, err error) { results <- result{r, err} })
	})
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case got := <-results:
		if errors.Is(got.error, httpd.ErrRefused) {
			return nil, port.ErrRefused
		}
		return &http.Response{StatusCode: got.Status, Body: io.NopCloser(bytes.NewReader(got.Body))}, got.error
	}
}

// lab is a world with a driver d1 of lb1, and a member's way to it.
type lab struct {
	carrier
	*driver.Driver
	outside *balancer.Driver
	began   time.Time
	told    []string
	attempt fsm.Index
}

func inLab(t *testing.T, test func(*lab)) {
	bubble.Test(t, 1, func(_ *testing.T, w *bubble.World) {
		l := &lab{carrier: carrier{w}, began: time.Now()}
		l.Do(func() {
			l.outside = balancer.New(l.World.World, l.Network, balancer.Options{Driver: "d1", Balancers: []string{"lb1"}})
		})
		l.Driver = driver.New(driver.Options{
			Name: "d1", URL: "http://" + start.Driver("d1") + ":" + start.DriverPort, HTTP: l.carrier, Now: l.now,
			Tell: func(f fact.Drive) {
				l.told = append(l.told, fmt.Sprintf("%s %s %s %s", f.Phase, f.Action, f.Binding, f.Result))
			},
		})
		test(l)
	})
}

func (l *lab) now() time.Duration { return time.Since(l.began) }

// call makes one about b1, for as long as most.
func (l *lab) call(a fsm.Action, address string, most time.Duration) leader.Answer {
	l.told = nil
	var attempt fsm.Revision
	if a != fsm.ActionAddress {
		l.attempt++
		attempt = fsm.Revision{Epoch: 1, Index: l.attempt}
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	r := leader.Request{
		Balancer: &fsm.LoadBalancer{ID: "o1", Spec: balancer.Info("lb1"), Info: balancer.Info("lb1"), Identity: balancer.Identity("d1", "lb1")}, Attempt: attempt, Deadline: l.now() + most,
	}
	if a == fsm.ActionCreateBalancer {
		r.Balancer = &fsm.LoadBalancer{ID: "o1", Spec: balancer.Info("lb1")}
	} else if a != fsm.ActionEnsureBalancer {
		r.Binding = &fsm.Binding{ID: "b1", Address: address, Parameters: []fsm.KV{{Key: balancer.BackendKey, Value: "192.0.2.7"}}}
	}
	return l.Call(ctx, a, r)
}

// What the driver answers is what the leader hears, and the world is told when a call left and when it was over.
func TestAnswersArriveAsTheyWereGiven(t *testing.T) {
	inLab(t, func(l *lab) {
		a := l.call(fsm.ActionCreateBalancer, "", time.Second)
		if a.Result != fsm.ResultSucceeded || fsm.IdentityOf("d1", a.Returned) != balancer.Identity("d1", "lb1") {
			t.Errorf("%+v", a)
		}
		if fmt.Sprint(l.told) != "[sent create-balancer o1  heard create-balancer o1 succeeded]" {
			t.Error(l.told)
		}
		if a := l.call(fsm.ActionEnsureBalancer, "", time.Second); a.Result != fsm.ResultSucceeded {
			t.Errorf("%+v", a)
		}
		if a := l.call(fsm.ActionAddress, "", time.Second); a.Result != fsm.ResultSucceeded || a.Address != "192.0.2.7" {
			t.Errorf("%+v", a)
		}
		a = l.call(fsm.ActionEnsure, "192.0.2.7", time.Second)
		if a.Result != fsm.ResultSucceeded || len(a.Returned) != 1 || a.Returned[0].Key != balancer.TokenKey {
			t.Errorf("%+v", a)
		}
		if fmt.Sprint(l.told) != "[sent ensure b1  heard ensure b1 succeeded]" {
			t.Error(l.told)
		}
	})
}

// Only an answer is taken for certain, or that nobody listens: everything else may have been done.
func TestWhatWasNotAnsweredIsUnknown(t *testing.T) {
	for _, c := range []struct {
		fault  balancer.Fault
		how    string
		want   fsm.Result
		heard  string
		answer string
	}{
		{balancer.Away, "", fsm.ResultUnknown, "lost", "context deadline exceeded"},
		{balancer.Away, "refused", fsm.ResultFailed, "failed", ""},
		{balancer.Away, "unavailable", fsm.ResultUnknown, "lost", "the driver answered 503"},
		{balancer.Mute, "", fsm.ResultUnknown, "lost", ""},
		{balancer.ErrorOn, "", fsm.ResultFailed, "failed", "the balancer's own API is out of order"},
		{balancer.ErrorOn, "status", fsm.ResultUnknown, "lost", "the driver answered 500"},
		{balancer.Busy, "", fsm.ResultRunning, "running", "it is being done"},
	} {
		t.Run(string(c.fault)+c.how, func(t *testing.T) {
			inLab(t, func(l *lab) {
				l.call(fsm.ActionEnsureBalancer, "", time.Second)
				l.Do(func() { l.outside.Begin(c.fault, balancer.Scope{How: c.how}) })
				a := l.call(fsm.ActionEnsure, "192.0.2.7", time.Second)
				if a.Result != c.want || c.answer != "" && a.Message != c.answer {
					t.Errorf("%+v", a)
				}
				if fmt.Sprint(l.told) != "[sent ensure b1  heard ensure b1 "+c.heard+"]" {
					t.Error(l.told)
				}
				if a.Refused != (c.fault == balancer.ErrorOn && c.how == "") {
					t.Errorf("refused %t", a.Refused) // only the driver's own word is one
				}
				if (a.RetryAfter > 0) != (c.want == fsm.ResultRunning) {
					t.Error(a.RetryAfter)
				}
			})
		})
	}
}

// Once the deadline has passed nothing is written, and nobody is told that something was.
func TestNothingIsSentAfterTheDeadline(t *testing.T) {
	inLab(t, func(l *lab) {
		if a := l.call(fsm.ActionEnsureBalancer, "", 0); a.Result != fsm.ResultFailed || len(l.told) != 0 {
			t.Errorf("%+v %v", a, l.told)
		}
		time.Sleep(time.Second)
		l.Do(func() {
			if l.outside.Made("lb1") {
				t.Error("it was sent")
			}
		})
	})
}
