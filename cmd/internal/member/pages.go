// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cmd/internal/health"
	"fairlead.io/fairlead/k8s/tokenreview"
)

// pages are those of the health port. Metrics are among them unless they have a port of their own.
func (m *Member) pages() http.Handler {
	if m.network.ServeMetrics != nil {
		return health.Handler(nil, m.checks())
	}
	return health.Handler(m.registry, m.checks())
}

func (m *Member) checks() health.Checks {
	return health.Checks{Alive: health.Alive, Healthy: health.Alive, Ready: m.ready, Notice: m.notice}
}

// notice tells of sources that ran back. Members that do not act on them are ready all the same: what they serve they go on serving, and to
// count on none of them would take more away.
func (m *Member) notice() string {
	if m.state == nil {
		return ""
	}
	var out []string
	for _, h := range leader.Rewinds(m.state.Read()) {
		out = append(out, "source "+strings.Join(h.Subjects, ", ")+": "+h.Why)
	}
	return strings.Join(out, "\n")
}

// whose is a health.Review: it asks the API server for the ServiceAccount of a token.
func (m *Member) whose(ctx context.Context, token string) (account string, err error) {
	reviewer := tokenreview.Reviewer{Reviews: m.kube.Client.AuthenticationV1().TokenReviews(), Audience: enrol.Audience}
	a, err := reviewer.Review(ctx, token)
	if err != nil {
		return "", err
	}
	return accountOf(a), nil
}

// accountOf is the ServiceAccount, namespace/name, that showed a token for us; empty if nobody did.
func accountOf(a tokenreview.Answer) string {
	if !a.Authenticated || !slices.Contains(a.Audiences, enrol.Audience) { // an API server may know of no audiences
		return ""
	}
	if name, of := strings.CutPrefix(a.Username, "system:serviceaccount:"); of {
		return strings.Replace(name, ":", "/", 1)
	}
	return "user " + a.Username // people may be called as accounts are
}
