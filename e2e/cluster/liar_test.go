// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"fairlead.io/fairlead/e2e/kubetest"
)

// liar stands between the members and the API server. It may answer lists with nothing, or with what was true once.
type liar struct {
	t      testing.TB
	server *httptest.Server
	proxy  *httputil.ReverseProxy

	mu      sync.Mutex
	lie     func(path string, truth []byte) []byte // nil: the truth
	kept    map[string][]byte                      // lists as they were when they were kept
	keeping bool
}

// newLiar gives a liar in front of a cluster, and the kubeconfig that leads to it.
func newLiar(t testing.TB, kube *kubetest.Cluster) (l *liar, kubeconfig string) {
	t.Helper()
	target, err := url.Parse(kube.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	l = &liar{t: t, kept: map[string][]byte{}}
	l.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Accept", "application/json") // so that a lie can be written
			r.Out.Header.Del("Accept-Encoding")
		},
		Transport: transport, FlushInterval: -1, ModifyResponse: l.change,
	}
	l.server = httptest.NewUnstartedServer(l.proxy)
	l.server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	l.server.Start()
	t.Cleanup(func() {
		l.server.CloseClientConnections()
		l.server.Close()
	})
	config := clientcmdapi.NewConfig()
	config.Clusters["liar"] = &clientcmdapi.Cluster{Server: l.server.URL}
	config.Contexts["liar"] = &clientcmdapi.Context{Cluster: "liar"}
	config.CurrentContext = "liar"
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return l, kubeconfig
}

// says changes what lists are answered with, and breaks all connections so that everything is listed anew.
func (l *liar) says(lie func(path string, truth []byte) []byte) {
	l.mu.Lock()
	l.lie = lie
	l.mu.Unlock()
	l.server.CloseClientConnections()
}

// keep has every list remembered from now on, until stop.
func (l *liar) keep(on bool) {
	l.mu.Lock()
	l.keeping = on
	l.mu.Unlock()
	if on {
		l.server.CloseClientConnections()
	}
}

// old gives the list as it was kept.
func (l *liar) old(path string, truth []byte) []byte {
	if body, ok := l.kept[path]; ok {
		return body
	}
	return truth
}

func (l *liar) change(r *http.Response) error {
	q := r.Request.URL.Query()
	isList := r.Request.Method == http.MethodGet && r.StatusCode == http.StatusOK && q.Get("watch") == "" &&
		strings.HasPrefix(r.Header.Get("Content-Type"), "application/json")
	if !isList {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	_ = r.Body.Close()
	l.mu.Lock()
	path := r.Request.URL.Path
	if l.keeping {
		l.kept[path] = body
	}
	if l.lie != nil {
		body = l.lie(path, body)
	}
	l.mu.Unlock()
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	r.ContentLength = int64(len(body))
	r.Header.Del("Content-Length")
	return nil
}

// nothing answers lists of Services, slices and nodes as an empty cluster of the same version would.
func nothing(path string, truth []byte) []byte {
	if !strings.HasSuffix(path, "/services") && !strings.HasSuffix(path, "/endpointslices") && !strings.HasSuffix(path, "/nodes") {
		return truth
	}
	var list map[string]any
	if json.Unmarshal(truth, &list) != nil || list["items"] == nil {
		return truth
	}
	list["items"] = []any{}
	out, err := json.Marshal(list)
	if err != nil {
		return truth
	}
	return out
}
