// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// L5, G7, B8: `kubectl apply` of a driver and of what names it, in one file, is no mistake.
func TestAnObjectThatTheViewIsAboutToShowIsWaitedFor(t *testing.T) {
	group := edited(t, BackendGroup, "")
	for name, c := range map[string]struct {
		path    string
		object  []byte
		lag     time.Duration // until the view shows drivers and LoadBalancers
		broken  bool          // then there is no view
		allowed bool
		took    time.Duration // at most, and at least a look less
		words   string
	}{
		"LoadBalancer, driver shown":      {PathValidateLoadBalancer, edited(t, LoadBalancer, ""), 0, false, true, 0, ""},
		"LoadBalancer, driver late":       {PathValidateLoadBalancer, edited(t, LoadBalancer, ""), 120 * time.Millisecond, false, true, 150 * time.Millisecond, ""},
		"LoadBalancer, driver too late":   {PathValidateLoadBalancer, edited(t, LoadBalancer, ""), time.Hour, false, false, time.Second, "create this LoadBalancerDriver first"},
		"LoadBalancer, wrong besides":     {PathValidateLoadBalancer, edited(t, LoadBalancer, `{spec: {scope: [x]}}`), 120 * time.Millisecond, false, false, 0, "scope"},
		"LoadBalancer, no view any more":  {PathValidateLoadBalancer, edited(t, LoadBalancer, ""), 120 * time.Millisecond, true, false, 150 * time.Millisecond, "cannot be judged yet"},
		"group, LoadBalancer late":        {PathValidateBackendGroup, group, 120 * time.Millisecond, false, true, 150 * time.Millisecond, ""},
		"Bind, driver late":               {PathValidateBind, edited(t, Bind, ""), 120 * time.Millisecond, false, true, 150 * time.Millisecond, ""},
		"LoadBalancer, as late as can be": {PathValidateLoadBalancer, edited(t, LoadBalancer, ""), 920 * time.Millisecond, false, true, 950 * time.Millisecond, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clinic, began := newClinic(Answer{Succ: true}), time.Now()
				clinic.View = func(context.Context) (View, error) {
					switch late := time.Since(began) >= c.lag; {
					case late && c.broken:
						return nil, errors.New("LoadBalancers are listed again")
					case late:
						return town(), nil
					}
					return &shelf{}, nil
				}
				_, got, text := clinic.post(t, c.path, reviewOf(create, c.object, nil))
				took := time.Since(began)
				if got.Response.Allowed != c.allowed || !strings.Contains(text, c.words) || took > c.took || took < c.took-lagLook {
					t.Errorf("%s after %v: %s", name, took, text)
				}
				if c.allowed == (len(clinic.asked) == 0) {
					t.Errorf("%d drivers asked", len(clinic.asked))
				}
			})
		})
	}
}

// Who asked and went away is not waited for.
func TestWaitingForAnObjectEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Handler{View: func(context.Context) (View, error) { return &shelf{}, nil }}
		ctx, cancel := context.WithTimeout(t.Context(), 70*time.Millisecond)
		defer cancel()
		began := time.Now()
		d := h.validate(ctx, request(t, LoadBalancer, create, edited(t, LoadBalancer, ""), nil))
		if took := time.Since(began); d.Denied == "" || took != 70*time.Millisecond {
			t.Errorf("%v: %s", took, d.Denied)
		}
	})
}
