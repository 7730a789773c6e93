// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// FuzzAnswers has a driver answer each call with any bytes: what comes of it is a word that the call knows, or an error that says whose
// fault it is.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		`{"status":"Succ"}`, `{"status":"Fail","msg":"no","minRetryDelayInSeconds":"30"}`, `{"status":"Running","minRetryDelayInSeconds":15}`,
		`{"status":"Succ","lbInfo":{"id":"1"}}`, `{"status":"Succ","backendAddr":"192.0.2.1:80"}`, `{"status":"Succ","injectedInfo":{"a":"b"}}`,
		`{"succ":true,"doNotDeregister":[{"metadata":{"uid":"a"}},{"metadata":{"uid":"b"}}]}`, `{"healthy":true}`, `null`, `[]`, ``, `{"status":"Succ"} x`,
	} {
		f.Add(200, []byte(body))
	}
	f.Add(404, []byte("no"))
	f.Add(307, []byte{})
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			return // net/http gives no other
		}
		one := func() *driver.Client { // each of its own: a driver that fails is not asked again for a while
			c, err := driver.New(driver.Options{
				Name: "shop/d", URL: "http://driver.example:80/p", HTTP: &endpoint{serve: answer(status, string(body))}, Now: watch(),
				Random: rand.NewPCG(1, 2), Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		for name, err := range all(t.Context(), one()) {
			if e := (*driver.Error)(nil); err != nil && (!errors.As(err, &e) || e.Cause == "" || e.Webhook != name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		ctx, call := t.Context(), driver.Call{}
		if a, err := one().CreateLoadBalancer(ctx, call, webhook.CreateLoadBalancerRequest{LBSpec: webhook.Map{"a": "b"}}); err == nil &&
			(!a.Status.Valid() || (a.Status == webhook.Succ) != (len(a.LBInfo) > 0) || a.RetryAfter() < 0) {
			t.Errorf("create: %+v", a)
		}
		if a, err := one().GenerateBackendAddr(ctx, call, webhook.GenerateBackendAddrRequest{}); err == nil && (!a.Status.Valid() || (a.Status == webhook.Succ) != (a.BackendAddr != "")) {
			t.Errorf("address: %+v", a)
		}
		if a, err := ensure(ctx, one(), call); err == nil && (!a.Status.Valid() || a.Status != webhook.Succ && a.InjectedInfo != nil) {
			t.Errorf("ensure: %+v", a)
		}
		pods := []json.RawMessage{json.RawMessage(`{"metadata":{"uid":"a"}}`)}
		if j, err := one().JudgePodDeregister(ctx, call, webhook.JudgePodDeregisterRequest{NotReadyPods: pods}); err == nil &&
			slices.ContainsFunc(j.Keep, func(uid string) bool { return uid != "a" }) {
			t.Errorf("judge: %+v", j)
		}
	})
}
