// SPDX-License-Identifier: Apache-2.0

// Package tokenreview asks the Kubernetes API whose a ServiceAccount token is, and to which node it is bound.
//
// It knows the TokenReview API (authentication.k8s.io/v1) and where the API server puts the node of a Pod-bound token
// (Kubernetes 1.32 and newer). It decides nothing. Start reading at Reviewer.Review.
package tokenreview

import (
	"context"
	"fmt"

	authentication "k8s.io/api/authentication/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeKey is where the API server says which node a token is bound to.
const nodeKey = "authentication.kubernetes.io/node-name"

// Answer is what Kubernetes says about a token.
type Answer struct {
	Authenticated bool
	Why           string // where it is not
	Username      string
	Audiences     []string // those asked for that the token is for
	Node          string   // empty: bound to none, or the API server is too old to say
}

// Creator creates TokenReviews at an API server, which fills in their status and does not keep them.
type Creator interface {
	Create(context.Context, *authentication.TokenReview, meta.CreateOptions) (*authentication.TokenReview, error)
}

// Reviewer asks about tokens. It needs the right to create tokenreviews.
type Reviewer struct {
	Reviews  Creator
	Audience string // that tokens must be for
}

// Review asks about one token. Errors: Kubernetes did not answer; the token is in none of them.
func (r Reviewer) Review(ctx context.Context, token string) (Answer, error) {
	done, err := r.Reviews.Create(ctx, &authentication.TokenReview{
		Spec: authentication.TokenReviewSpec{Token: token, Audiences: []string{r.Audience}},
	}, meta.CreateOptions{})
	if err != nil {
		return Answer{}, fmt.Errorf("review token: %w", err)
	}
	s := done.Status
	a := Answer{Authenticated: s.Authenticated, Why: s.Error, Username: s.User.Username, Audiences: s.Audiences}
	if nodes := s.User.Extra[nodeKey]; len(nodes) == 1 {
		a.Node = nodes[0]
	}
	return a, nil
}
