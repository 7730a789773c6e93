// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/takeover"
)

// Whoever stops LBCF is told what still acts, also if the time is over in the middle of a look.
func TestStopSaysWhatItWaitedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var lists atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !strings.HasSuffix(r.URL.Path, "/deployments"):
			_, _ = fmt.Fprint(w, `{"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []}`)
		case lists.Add(1) > 2:
			cancel()
			<-r.Context().Done()
		default:
			_, _ = fmt.Fprint(w, `{"kind": "DeploymentList", "apiVersion": "apps/v1", "metadata": {}, "items": [{
				"metadata": {"name": "lbcf-controller", "namespace": "kube-system"}, "spec": {"replicas": 0}, "status": {"readyReplicas": 1, "replicas": 1}}]}`)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	api, err := client.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := takeover.In(api)
	if err != nil {
		t.Fatal(err)
	}
	_, err = cluster.Stop(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "wait for LBCF to end") || !strings.Contains(err.Error(), "has 1 ready") {
		t.Errorf("it says %v", err)
	}
}
