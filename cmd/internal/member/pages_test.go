// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cmd/internal/health"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/tokenreview"
)

// Metrics are at the health port unless they have a port of their own.
func TestMetricsAreAtOnePort(t *testing.T) {
	for name, c := range map[string]struct {
		own  func(context.Context, http.Handler) error
		want int
	}{
		"beside-health": {nil, http.StatusOK},
		"own-port":      {func(context.Context, http.Handler) error { return nil }, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Member{registry: prometheus.NewRegistry(), network: &Network{ServeMetrics: c.own}}
			answer := httptest.NewRecorder()
			m.pages().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			if answer.Code != c.want {
				t.Errorf("%d, want %d", answer.Code, c.want)
			}
		})
	}
}

// /readyz of every member tells of a source that ran back, with what to do. The member is as ready as before.
func TestReadinessTellsOfSourcesThatRanBack(t *testing.T) {
	g := grouptest.NewGroup(t)
	m := &Member{registry: prometheus.NewRegistry(), network: &Network{}, state: g.State}
	checks := m.checks()
	checks.Ready = health.Alive
	page := func() (code int, text string) {
		answer := httptest.NewRecorder()
		health.Handler(nil, checks).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return answer.Code, answer.Body.String()
	}
	if code, text := page(); code != http.StatusOK || text != "ok\n" {
		t.Errorf("without one: %d %q", code, text)
	}
	g.Apply(t, &fsm.PutHold{ID: "rewind-kubernetes", Of: "Source", Subjects: []string{"kubernetes"}, Why: "it ran back: fairlead accept-rewind kubernetes"})
	if code, text := page(); code != http.StatusOK || text != "ok\nsource kubernetes: it ran back: fairlead accept-rewind kubernetes\n" {
		t.Errorf("with one: %d %q", code, text)
	}
}

// Metrics are for ServiceAccounts, by tokens that are meant for us.
func TestTokensAreThoseOfServiceAccountsForUs(t *testing.T) {
	const account = "system:serviceaccount:monitoring:prometheus"
	us := []string{"fairlead"}
	for name, c := range map[string]struct {
		answer tokenreview.Answer
		want   string
	}{
		"account":        {tokenreview.Answer{Authenticated: true, Username: account, Audiences: us}, "monitoring/prometheus"},
		"nobody":         {tokenreview.Answer{Username: account, Audiences: us}, ""},
		"other-audience": {tokenreview.Answer{Authenticated: true, Username: account, Audiences: []string{"vault"}}, ""},
		"no-audience":    {tokenreview.Answer{Authenticated: true, Username: account}, ""},
		"person":         {tokenreview.Answer{Authenticated: true, Username: "monitoring/prometheus", Audiences: us}, "user monitoring/prometheus"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := accountOf(c.answer); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
