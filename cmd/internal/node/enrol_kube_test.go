// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/internal/testkit"
)

// The whole way with nothing of it replaced: a Pod's token of a real API server, a real member, an agent. The token of
// another node's Pod is not enough.
func TestAgentEnrolsWithTheTokenOfItsPod(t *testing.T) {
	t.Parallel()
	cluster := kubetest.Start(t, kubetest.Options{NoControllers: true})
	ctx := t.Context()
	token := func(node string) string {
		t.Helper()
		if _, err := cluster.Node(ctx, node, nil, netip.MustParseAddr("198.51.100.1")); err != nil {
			t.Fatal(err)
		}
		pod, err := cluster.Pod(ctx, kubetest.PodSpec{Name: "agent-" + node, Node: node})
		if err != nil {
			t.Fatal(err)
		}
		token, err := cluster.PodToken(ctx, pod, "default", "fairlead")
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	w := &world{ca: pkitest.New(t)}
	api := w.member(t, cluster.Kubeconfig())
	right, wrong := token("n1"), token("n2")
	c := config.Agent{
		Node: "n1", StateDir: filepath.Join(t.TempDir(), "state"), Members: []string{api}, NAT: config.NATKubeProxy, Health: freeAddress(t), Log: "info",
		Enrol: &config.Enrol{CA: w.ca.Cert(), TokenFile: filepath.Join(t.TempDir(), "token")},
	}
	show := func(token string) {
		t.Helper()
		if err := os.WriteFile(c.Enrol.TokenFile, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	show(wrong)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	p := start(t, c)
	testkit.Until(t, "the token of another node's Pod is refused", func() bool {
		_, body := ask(t, c, "/readyz")
		return strings.Contains(body, "the token does not prove it")
	})
	show(right) // as the kubelet replaces it every hour
	testkit.Until(t, "it is ready", func() bool { code, _ := ask(t, c, "/readyz"); return code == http.StatusOK })
	if s := p.Status(); s.Member != api {
		t.Errorf("%+v", s)
	}
}

// member runs a group of one with the CA's key until the test ends, and gives the address of its API.
func (w *world) member(t *testing.T, kubeconfig string) (api string) {
	t.Helper()
	files := w.ca.Issue(t, pki.Request{Role: pki.Member, Name: "m1"})
	var l machine.Listeners
	for _, listener := range []*net.Listener{&l.API, &l.Raft} {
		var err error
		if *listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	api, raft := l.API.Addr().String(), l.Raft.Addr().String()
	c := config.Controller{
		Name: "m1", DataDir: filepath.Join(t.TempDir(), "m1"), FloorDir: t.TempDir(), Listen: config.Listen{API: api, Raft: raft}, BootstrapToken: "t", Log: "error",
		Enrolment: config.Enrolment{ServiceAccount: "default/default"},
		TLS:       config.MemberTLS{TLS: config.TLS(files), CAKey: w.ca.Key()},
		Members:   []config.Member{{Name: "m1", API: api, Raft: raft}}, Sources: config.Sources{Kubernetes: &config.Kubernetes{Kubeconfig: kubeconfig}},
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	m, err := member.Open(c, "test", machine.Member(l), quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("member: %v", err)
			}
		case <-time.After(grouptest.Patience):
			t.Error("the member does not end")
		}
	})
	return api
}
