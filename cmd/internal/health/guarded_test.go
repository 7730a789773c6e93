// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// reviewer knows whose tokens are, and counts how often it was asked.
type reviewer struct {
	accounts map[string]string
	away     bool
	asked    int
}

func (r *reviewer) review(_ context.Context, token string) (string, error) {
	if r.asked++; r.away {
		return "", errors.New("connection refused")
	}
	return r.accounts[token], nil
}

func guard(r *reviewer) func(authorization string) int {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") })
	g := Guarded(page, []string{"monitoring/prometheus"}, r.review)
	return func(authorization string) int {
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		answer := httptest.NewRecorder()
		g.ServeHTTP(answer, request)
		if shown := answer.Body.String() == "metrics"; shown != (answer.Code == http.StatusOK) {
			panic(answer.Body.String())
		}
		return answer.Code
	}
}

func TestMetricsAreForNamedAccounts(t *testing.T) {
	r := &reviewer{accounts: map[string]string{"good": "monitoring/prometheus", "other": "shop/web"}}
	ask := guard(r)
	for authorization, want := range map[string]int{
		"": http.StatusUnauthorized, "Basic good": http.StatusUnauthorized, "Bearer ": http.StatusUnauthorized,
		"Bearer " + strings.Repeat("x", maxToken+1): http.StatusUnauthorized,
		"Bearer unknown": http.StatusUnauthorized, "Bearer other": http.StatusForbidden, "Bearer good": http.StatusOK,
	} {
		if got := ask(authorization); got != want {
			t.Errorf("%.20q: %d, want %d", authorization, got, want)
		}
	}
	if r.asked != 3 {
		t.Errorf("asked about %d tokens", r.asked)
	}
}

// While the API server is away nobody new is let in, and who was is for a minute.
func TestAnswersAboutTokensCountForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{accounts: map[string]string{"good": "monitoring/prometheus"}, away: true}
		ask := guard(r)
		if got := ask("Bearer good"); got != http.StatusServiceUnavailable {
			t.Errorf("away: %d", got)
		}
		r.away = false
		if got := ask("Bearer good"); got != http.StatusOK {
			t.Errorf("back: %d", got)
		}
		r.accounts, r.asked = nil, 0
		time.Sleep(trusted - time.Nanosecond)
		if got := ask("Bearer good"); got != http.StatusOK || r.asked != 0 {
			t.Errorf("within a minute: %d, asked %d times", got, r.asked)
		}
		time.Sleep(time.Nanosecond)
		if got := ask("Bearer good"); got != http.StatusUnauthorized || r.asked != 1 {
			t.Errorf("after a minute: %d, asked %d times", got, r.asked)
		}
	})
}

// Strangers with tokens of their invention do not have the API server asked without end.
func TestTokensThatAreNotKnownAreAskedAboutAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{}
		ask := guard(r)
		for i := range 1000 {
			ask(fmt.Sprintf("Bearer %d", i))
		}
		if r.asked != reviewsAtOnce || ask("Bearer x") != http.StatusTooManyRequests {
			t.Errorf("asked %d times", r.asked)
		}
	})
}
