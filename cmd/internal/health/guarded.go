// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// trusted is how long an answer about a token counts: so long may one be used after it was withdrawn.
	trusted = time.Minute
	// maxTrusted bounds how many are remembered. A Prometheus has one, and another one once an hour.
	maxTrusted = 256
	// maxToken is more than a token of a ServiceAccount has.
	maxToken = 16 << 10
	// reviewWithin is for the API server to answer.
	reviewWithin = 5 * time.Second
	// Questions about tokens that are not known yet: strangers ask the API server nothing by way of us at a higher rate.
	reviewsPerSecond, reviewsAtOnce = 5, 20
)

// Review tells whose a token is; empty if nobody's. Errors: that is not known now.
type Review func(ctx context.Context, token string) (account string, err error)

// Guarded shows pages to ServiceAccounts, namespace/name, who show a token of theirs as Prometheus does.
func Guarded(pages http.Handler, accounts []string, review Review) http.Handler {
	return &guarded{pages: pages, accounts: accounts, review: review, limit: rate.NewLimiter(reviewsPerSecond, reviewsAtOnce), until: map[[sha256.Size]byte]time.Time{}}
}

type guarded struct {
	pages    http.Handler
	accounts []string
	review   Review
	limit    *rate.Limiter

	mu    sync.Mutex
	until map[[sha256.Size]byte]time.Time // tokens of those who may, by their hash
}

// ServeHTTP implements http.Handler.
func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, shown := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !shown || token == "" || len(token) > maxToken {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "show a token of a ServiceAccount", http.StatusUnauthorized)
		return
	}
	if code, err := g.admit(r.Context(), token); err != nil {
		http.Error(w, err.Error(), code)
		return
	}
	g.pages.ServeHTTP(w, r)
}

// admit tells whether a token is of somebody who may; if not, the status that says so.
func (g *guarded) admit(ctx context.Context, token string) (code int, err error) {
	hash := sha256.Sum256([]byte(token))
	if g.remembers(hash) {
		return 0, nil
	}
	if !g.limit.Allow() {
		return http.StatusTooManyRequests, fmt.Errorf("too many tokens that are not known; at most %d a second are looked at", reviewsPerSecond)
	}
	ctx, cancel := context.WithTimeout(ctx, reviewWithin)
	defer cancel()
	account, err := g.review(ctx, token)
	switch {
	case err != nil:
		return http.StatusServiceUnavailable, fmt.Errorf("whose the token is cannot be told now; is the API server away?")
	case account == "":
		return http.StatusUnauthorized, fmt.Errorf("the token is nobody's, not for this audience, or its time is over")
	case !slices.Contains(g.accounts, account):
		return http.StatusForbidden, fmt.Errorf("%s may not; name it in metrics.serviceAccounts", account)
	}
	g.remember(hash)
	return 0, nil
}

func (g *guarded) remembers(hash [sha256.Size]byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.until[hash])
}

func (g *guarded) remember(hash [sha256.Size]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.until) >= maxTrusted {
		clear(g.until) // they are asked about again
	}
	g.until[hash] = time.Now().Add(trusted)
}
