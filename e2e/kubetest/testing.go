// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"os"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/testkit"
)

// Start is New for a test: the cluster ends with it, and where the binaries cannot be had the test is skipped with
// the reason, or fails if birdtest.RequireTools asks for that. Logs are shown if the test failed.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	testkit.NotFast(t, "starts a Kubernetes API server")
	o.Log = t.Output()
	if _, err := Binaries(t.Context(), o.Log); err != nil {
		if os.Getenv(birdtest.RequireTools) == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	c, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, p := range []*process{c.etcd, c.apiServer, c.controllers, c.proxy} {
				if p != nil {
					t.Logf("log of %s:\n%s", p.name, p.lastWords())
				}
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Eventually is testkit.Eventually for a condition that asks the cluster.
func Eventually(t testing.TB, what string, condition func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, what, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		return condition(ctx)
	})
}
