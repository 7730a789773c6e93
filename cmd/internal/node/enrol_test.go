// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// enrolling is the configuration of an agent without certificate.
func (w *world) enrolling(t *testing.T, token string) config.Agent {
	t.Helper()
	c := w.config(t)
	c.TLS, c.Enrol = config.TLS{}, &config.Enrol{CA: w.ca.Cert(), TokenFile: filepath.Join(t.TempDir(), "token")}
	if err := os.WriteFile(c.Enrol.TokenFile, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// An agent that is refused says so, and goes on trying; its certificate is its own for the next start, and goes with the
// cleanup.
func TestAgentEnrolsAndIsReady(t *testing.T) {
	t.Parallel()
	w, token := newWorld(t), enrol.NewToken()
	c := w.enrolling(t, token)
	w.route(t, "192.0.2.1")
	p := start(t, c)
	testkit.Until(t, "it says that it is not enrolled", func() bool {
		code, body := ask(t, c, "/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "not enrolled yet: ") && strings.Contains(body, "the token does not prove it")
	})
	if code, _ := ask(t, c, "/healthz"); code != http.StatusOK {
		t.Error("a restart does not help, but it is not healthy")
	}
	w.group.Apply(t, &fsm.PutEnrolment{ID: enrol.Sum(token), Node: "n1", TTL: time.Hour})
	ready := func() bool { code, _ := ask(t, c, "/readyz"); return code == http.StatusOK }
	testkit.Until(t, "it is ready", ready)
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, c) // the token is spent
	testkit.Until(t, "it is ready again", ready)
	if err := again.stop(); err != nil {
		t.Fatal(err)
	}
	if err := node.Cleanup(t.Context(), c, machine.Agent(), quiet); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.StateDir); !os.IsNotExist(err) {
		t.Errorf("state folder: %v", err)
	}
}

func TestAgentThatCannotEnrolSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, spoil := range map[string]func(*config.Agent){
		"enrol.ca: ":        func(c *config.Agent) { c.Enrol.CA = filepath.Join(t.TempDir(), "none") },
		"enrol.tokenFile: ": func(c *config.Agent) { c.Enrol.TokenFile = filepath.Join(t.TempDir(), "none") },
	} {
		c := w.enrolling(t, "token")
		spoil(&c)
		if _, err := node.Open(c, machine.Agent(), quiet); err == nil || !strings.HasPrefix(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
