// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"os"
	"testing"
	"time"

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

// Eventually waits for a condition, and fails the test with its last word if it does not come within half a minute.
func Eventually(t testing.TB, what string, condition func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := condition(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("no %s: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
