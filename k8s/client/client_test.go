// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/k8s/client"
)

const good = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: u, user: {token: secret-token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

// Each mistake gives one line with the file, the reason and no secret.
func TestOpenTellsWhatIsWrongWithAKubeconfigInOneLine(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no-context":    {"current-context: x", "current-context: other", `context was not found for specified context: other`},
		"no-server":     {"https://192.0.2.1:6443", "", "no server found for cluster"},
		"no-yaml":       {"kind: Config", "kind: [Config", "yaml"},
		"missing-ca":    {`cluster: {server`, `cluster: {certificate-authority: gone.crt, server`, "gone.crt"},
		"no-cluster":    {"clusters: [", "clustersx: [", "cluster"},
		"bad-server":    {"https://192.0.2.1:6443", "https://192.0.2.1:port", "port"},
		"bad-ca-data":   {`cluster: {server`, `cluster: {certificate-authority-data: "!!", server`, "base64"},
		"bad-client-ca": {`cluster: {server`, `cluster: {certificate-authority-data: "AAAA", server`, "root certificates"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(path, []byte(strings.Replace(good, c.old, c.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := client.Open(client.Options{Kubeconfig: path})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret-token") {
				t.Errorf("several lines or a secret: %q", err)
			}
		})
	}
}

func TestOpenTellsWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		options client.Options
		want    string
	}{
		"no file":  {client.Options{Kubeconfig: filepath.Join(dir, "none")}, "none: does not exist"},
		"a folder": {client.Options{Kubeconfig: dir}, "is a folder"},
		"nothing":  {client.Options{}, "name a kubeconfig"},
		"no pod":   {client.Options{InCluster: true}, "outside of a cluster name a kubeconfig"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			if _, err := client.Open(c.options); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestRequestsNameFairlead(t *testing.T) {
	agents := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents <- r.UserAgent()
		http.Error(w, "no", http.StatusTeapot)
	}))
	defer s.Close()
	a, err := client.New(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = a.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if got := <-agents; got != "fairlead" {
		t.Errorf("user agent %q", got)
	}
}
