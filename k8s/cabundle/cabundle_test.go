// SPDX-License-Identifier: Apache-2.0

package cabundle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/cabundle"
	"fairlead.io/fairlead/k8s/client"
)

// server has the validating configuration, and keeps the patches that it is sent.
type server struct {
	stored  *admissionv1.ValidatingWebhookConfiguration
	patches []string
	status  int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case s.stored == nil || path.Base(r.URL.Path) != s.stored.Name:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		return
	case s.status != 0:
		w.WriteHeader(s.status)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":%d,"message":"no such right"}`, s.status)
		return
	case r.Method == http.MethodPatch:
		body, _ := io.ReadAll(r.Body)
		s.patches = append(s.patches, r.Header.Get("Content-Type")+" "+string(body))
		for i := range s.stored.Webhooks {
			s.stored.Webhooks[i].ClientConfig.CABundle = []byte("ours")
		}
	}
	_ = json.NewEncoder(w).Encode(s.stored)
}

func ours(bundles ...string) *admissionv1.ValidatingWebhookConfiguration {
	c := &admissionv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: cabundle.Validating, ResourceVersion: "7", Labels: map[string]string{"app.kubernetes.io/part-of": "fairlead"}},
	}
	for i, b := range bundles {
		c.Webhooks = append(c.Webhooks, admissionv1.ValidatingWebhook{Name: fmt.Sprintf("w%d.lbcf.tkestack.io", i), ClientConfig: admissionv1.WebhookClientConfig{CABundle: []byte(b)}})
	}
	return c
}

func keeper(t *testing.T, s *server, o cabundle.Options) *cabundle.Keeper {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	api, err := client.New(&rest.Config{Host: h.URL})
	if err != nil {
		t.Fatal(err)
	}
	o.API = api
	if o.Bundle == nil {
		o.Bundle = func() ([]byte, error) { return []byte("ours"), nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	k, err := cabundle.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestOnlyWhatDiffersIsWrittenAndOnlyOnce(t *testing.T) {
	s := &server{stored: ours("ours", "", "old")}
	k := keeper(t, s, cabundle.Options{})
	for range 2 {
		if err := k.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const want = `application/strategic-merge-patch+json {"metadata":{"resourceVersion":"7"},"webhooks":[` +
		`{"clientConfig":{"caBundle":"b3Vycw=="},"name":"w1.lbcf.tkestack.io"},{"clientConfig":{"caBundle":"b3Vycw=="},"name":"w2.lbcf.tkestack.io"}]}`
	if len(s.patches) != 1 || s.patches[0] != want {
		t.Errorf("%q", s.patches)
	}
}

func TestWhatIsSomebodyElsesIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*server, *cabundle.Options)
		fails  string
	}{
		"nothing-installed": {func(s *server, _ *cabundle.Options) { s.stored = nil }, ""},
		"lbcf's":            {func(s *server, _ *cabundle.Options) { s.stored.Labels = nil }, "somebody else's: take LBCF over first"},
		"cert-manager's": {func(s *server, _ *cabundle.Options) {
			s.stored.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "kube-system/fairlead-admission"}
		}, ""},
		"no-bundle-of-ours": {func(_ *server, o *cabundle.Options) { o.Bundle = func() ([]byte, error) { return nil, nil } }, ""},
		"no-right":          {func(s *server, _ *cabundle.Options) { s.status = http.StatusForbidden }, "read webhook configuration lbcf-validate"},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := &server{stored: ours("theirs")}, cabundle.Options{}
			c.change(s, &o)
			err := keeper(t, s, o).Look(t.Context())
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Error(err)
			}
			if len(s.patches) > 0 {
				t.Errorf("written: %q", s.patches)
			}
		})
	}
}

// turns is a clock that lets a Keeper look so often, and then ends its term.
type turns struct {
	left int
	end  context.CancelFunc
}

func (c *turns) After(time.Duration) <-chan time.Time {
	now := make(chan time.Time, 1)
	if c.left--; c.left > 0 {
		now <- time.Time{}
	} else {
		c.end()
	}
	return now
}

func TestTroubleIsSaidOnce(t *testing.T) {
	var log testkit.Log
	ctx, cancel := context.WithCancel(t.Context())
	s := &server{stored: ours("theirs"), status: http.StatusForbidden}
	keeper(t, s, cabundle.Options{Clock: &turns{5, cancel}, Log: slog.New(slog.NewTextHandler(&log, nil))}).Run(ctx)
	if n := strings.Count(log.String(), "not kept"); n != 1 {
		t.Errorf("said %d times:\n%s", n, &log)
	}
}

// The configurations of policies are kept where policies are judged, and not even asked for elsewhere: members have no right to.
func TestConfigurationsOfPoliciesAreKeptWherePoliciesAreJudged(t *testing.T) {
	for _, judged := range []bool{false, true} {
		s := &server{stored: ours("theirs")}
		s.stored.Name = cabundle.ValidatingPolicies
		if err := keeper(t, s, cabundle.Options{Policies: judged}).Look(t.Context()); err != nil {
			t.Error(err)
		}
		if (len(s.patches) == 1) != judged {
			t.Errorf("judged %t: written %q", judged, s.patches)
		}
		s.status = http.StatusForbidden
		if err := keeper(t, s, cabundle.Options{Policies: judged}).Look(t.Context()); (err != nil) != judged {
			t.Errorf("judged %t: %v", judged, err)
		}
	}
}
