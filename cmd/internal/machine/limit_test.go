// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/cmd/internal/config"
)

// Balancing §11: another limit in the old ConfigMap's file or in agent.yaml counts while the agent runs, as each goes before the other; one that
// cannot be, a file that is gone and a kernel that refuses leave the old one, and are told once.
// Rule: balancing §11.
func TestTheLimitFollowsItsFiles(t *testing.T) {
	dir := t.TempDir()
	path, old := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "conf.yml")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agent := func(sock string) {
		write(path, "node: n1\nstateDir: state\nmembers: [\"m1:7443\"]\nnat: kube-proxy\ntls: {ca: a, cert: b, key: c}\n"+sock)
	}
	env := map[string]string{}
	var set []uint32
	var refuses error
	var said bytes.Buffer
	l := &limit{now: 10, log: slog.New(slog.NewTextHandler(&said, nil)), set: func(n uint32) error { set = append(set, n); return refuses }, reread: func() (config.Agent, error) {
		o, err := config.ReadOld(func(name string) string { return env[name] }, old)
		if err != nil {
			return config.Agent{}, err
		}
		return config.LoadAgentOver(o, path, "")
	}}
	looks := func(when string, now uint32, faults int, sets ...uint32) {
		t.Helper()
		set = nil
		said.Reset()
		for range 3 {
			l.look()
		}
		if l.now != now || !slices.Equal(set, sets) || strings.Count(said.String(), "level=ERROR") != faults {
			t.Errorf("%s: it is %d by %v, want %d by %v; said %s", when, l.now, set, now, sets, said.String())
		}
	}
	agent("sock: {}\n")
	write(old, "redirectQosLimit: \"10\"\n")
	looks("as before", 10, 0)
	write(old, "redirectQosLimit: 3\n")
	looks("conf.yml", 3, 0, 3)
	for _, wrong := range []string{"many", "-1", fmt.Sprint(1 << 40)} {
		write(old, "redirectQosLimit: \""+wrong+"\"\n")
		looks(wrong, 3, 1)
	}
	if err := os.Remove(old); err != nil {
		t.Fatal(err)
	}
	looks("no file", 3, 1)
	write(old, "redirectQosLimit: 3\n")
	looks("right again", 3, 0)
	agent("sock: {redirectLimit: 5}\n")
	looks("agent.yaml goes before", 5, 0, 5)
	agent("sock: {redirectLimit: -5}\n")
	looks("which is wrong", 5, 1)
	agent("sock: {}\n")
	env["REDIRECT_QOS_LIMIT"] = "7"
	looks("the environment goes before conf.yml", 7, 0, 7)
	delete(env, "REDIRECT_QOS_LIMIT")
	refuses = errors.New("no such table")
	looks("the kernel refuses", 7, 1, 3, 3, 3)
	refuses = nil
	looks("and takes it", 3, 0, 3)
	agent("")
	looks("sock is gone", 3, 0)
}
