// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/cmd/internal/config"
)

// written makes files of a conf.yml, unless that is empty, and of one of ours.
func written(t *testing.T, conf, ours string) (old, path string) {
	t.Helper()
	put := func(name, text string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	if conf != "" {
		old = put("conf.yml", conf)
	}
	return old, put("fairlead.yaml", ours)
}

// noted are the things that notes are about, each of which says what to do instead.
func noted(t *testing.T, notes []config.Note, file string) (whats []string) {
	t.Helper()
	for _, n := range notes {
		whats = append(whats, strings.TrimPrefix(n.What, file+": "))
		if n.Instead == "" {
			t.Errorf("%s: nothing is said to do instead", n.What)
		}
	}
	return whats
}

// loadOld reads what is said in the old way, and an agent.yaml over it.
func loadOld(t *testing.T, env map[string]string, conf, agent string) (config.Agent, []string, error) {
	t.Helper()
	file, path := written(t, conf, agent)
	old, err := config.ReadOld(func(name string) string { return env[name] }, file)
	if err != nil {
		return config.Agent{}, nil, err
	}
	c, err := config.LoadAgentOver(old, path, "")
	return c, noted(t, old.Notes, file), err
}

const outsideAgent = "outOfCluster: true\nstateDir: state\nmembers: [\"m1:7443\"]\nenrol: {ca: group.crt, tokenFile: token}\n"

// Balancing §11, §15, §22: the environment and the conf.yml of the old agent are heeded, the environment before the file and
// agent.yaml before both; what means nothing here is named.
// Rule: balancing §22.
func TestOldConfigurationIsHeeded(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	type want struct {
		node, health, log string
		v4, v6            bool
		limit             int
		notes             []string
	}
	for name, c := range map[string]struct {
		env         map[string]string
		conf, agent string
		want        want
	}{
		"nothing": {nil, "", outsideAgent, want{strings.ToLower(hostname), ":7480", "info", true, true, 0, nil}},
		"conf.yml": {nil, "enableIPv4: true\nenableIPv6: \"false\"\nredirectQosLimit: 7\napiServerHost: 198.51.100.1\napiServerPort: \"6443\"\nother:\n", outsideAgent,
			want{strings.ToLower(hostname), ":7480", "info", true, false, 7, []string{"apiServerHost", "apiServerPort", "other"}}},
		"environment": {map[string]string{
			"ENV_LOCAL_NODE_NAME": "edge-1", "ENV_ENABLE_IPV4": "False", "ENV_REDIRECT_QOS_LIMIT": "10", "ENV_HTTP_PORT": "5810", "ENV_METRIC_HTTP_PORT": "5811",
			"ENV_LOG_LEVEL": "DEBUG", "ENV_EBPF_LOG_LEVEL": "verbose", "KUBECONFIG": "/root/.kube/config",
		}, "", outsideAgent, want{"edge-1", ":5810", "debug", false, true, 10, []string{"ENV_EBPF_LOG_LEVEL", "ENV_METRIC_HTTP_PORT", "KUBECONFIG"}}},
		"the other spelling":          {map[string]string{"REDIRECT_QOS_LIMIT": "3"}, "", outsideAgent, want{strings.ToLower(hostname), ":7480", "info", true, true, 3, nil}},
		"environment before conf.yml": {map[string]string{"ENV_REDIRECT_QOS_LIMIT": "0", "ENV_ENABLE_IPV6": "true"}, "enableIPv6: false\nredirectQosLimit: 7\n", outsideAgent, want{strings.ToLower(hostname), ":7480", "info", true, true, 0, nil}},
		"agent.yaml before both":      {map[string]string{"ENV_LOCAL_NODE_NAME": "x", "ENV_HTTP_PORT": "1", "ENV_LOG_LEVEL": "warn"}, "enableIPv6: false\nredirectQosLimit: 7\n", "node: edge-2\nhealth: \"127.0.0.1:2\"\nlog: error\nsock: {ipv6: true, redirectLimit: 4}\n" + outsideAgent, want{"edge-2", "127.0.0.1:2", "error", true, true, 4, nil}},
		"of sock only what it says":   {nil, "enableIPv6: false\nredirectQosLimit: 7\n", "node: edge-2\nsock: {events: 5}\n" + outsideAgent, want{"edge-2", ":7480", "info", true, false, 7, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			a, notes, err := loadOld(t, c.env, c.conf, c.agent)
			if err != nil {
				t.Fatal(err)
			}
			got := want{a.Node, a.Health, a.Log, a.Sock.Resolves(false), a.Sock.Resolves(true), a.Sock.RedirectLimit, notes}
			if w := c.want; got.node != w.node || got.health != w.health || got.log != w.log || got.v4 != w.v4 || got.v6 != w.v6 || got.limit != w.limit || !slices.Equal(notes, w.notes) {
				t.Errorf("have %+v\nwant %+v", got, w)
			}
		})
	}
	if a, _, err := loadOld(t, map[string]string{"ENV_REDIRECT_QOS_LIMIT": "10"}, "", validAgent); err != nil || a.Sock != nil {
		t.Errorf("the environment switches resolution on: %+v, %v", a.Sock, err)
	}
}

// Rule: balancing §22.
func TestOldConfigurationThatCannotBeIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		env        map[string]string
		conf, want string
	}{
		"family":   {map[string]string{"ENV_ENABLE_IPV4": "maybe"}, "", `ENV_ENABLE_IPV4: "maybe" is neither true nor false`},
		"limit":    {nil, "redirectQosLimit: -1\n", `redirectQosLimit: "-1" is no number of calls a second`},
		"port":     {map[string]string{"ENV_HTTP_PORT": "x"}, "", `ENV_HTTP_PORT: "x" is no port`},
		"level":    {map[string]string{"ENV_LOG_LEVEL": "loud"}, "", `ENV_LOG_LEVEL: "loud" is no log level`},
		"no-value": {nil, "enableIPv4: [true]\n", "enableIPv4 is no single value"},
		"no-yaml":  {nil, "a: b: c\n", "conf.yml: "},
		"neither":  {nil, "enableIPv4: false\nenableIPv6: false\n", "sock.ipv4: and sock.ipv6 are both off"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := loadOld(t, c.env, c.conf, outsideAgent); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := config.ReadOld(func(string) string { return "" }, "none.yml"); err == nil || !strings.Contains(err.Error(), "--config-path") {
		t.Errorf("a file that is not there: %v", err)
	}
}
