// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/cmd/internal/config"
)

// loadOldController reads what is said in the old way, and a controller.yaml over it.
func loadOldController(t *testing.T, env map[string]string, conf string, flags config.OldFlags, controller string) (config.Controller, []string, error) {
	t.Helper()
	file, path := written(t, conf, controller)
	if file != "" {
		flags.ConfigPath = file
	}
	old, err := config.ReadOldController(func(name string) string { return env[name] }, flags)
	if err != nil {
		return config.Controller{}, nil, err
	}
	c, err := config.LoadControllerOver(old, path)
	return c, noted(t, old.Notes, file), err
}

// Balancing §22: environment, flags and conf.yml of the old controller are heeded where controller.yaml says nothing; what means nothing
// to a member is named.
// Rule: balancing §22.
func TestOldConfigurationOfControllersIsHeeded(t *testing.T) {
	quiet := strings.Replace(valid, `, health: ""`, "", 1) // says nothing of where to listen
	cluster := quiet + "sources: {kubernetes: {inCluster: true}}\n"
	certs := config.OldFlags{CACert: "/certs/ca.crt", ServerCert: "/certs/tls.crt", Key: "/certs/tls.key"}
	type want struct {
		health, admission, certDir, log string
		notes                           []string
	}
	for name, c := range map[string]struct {
		env        map[string]string
		conf       string
		flags      config.OldFlags
		controller string
		want       want
	}{
		"nothing": {nil, "", config.OldFlags{}, cluster, want{"127.0.0.1:7480", "", "", "info", nil}},
		"environment": {map[string]string{"ENV_HTTP_PORT": "5820", "ENV_WEBHOOK_PORT": "5822", "ENV_LOG_LEVEL": "DEBUG", "ENV_METRIC_HTTP_PORT": "5821", "ENV_REDIRECT_QOS_LIMIT": "10"}, "", config.OldFlags{}, cluster,
			want{":5820", ":5822", "", "debug", []string{"ENV_METRIC_HTTP_PORT", "ENV_REDIRECT_QOS_LIMIT"}}},
		"conf.yml": {nil, "enableIPv4: true\nredirectQosLimit: 7\napiServerHost: 198.51.100.1\nother:\n", config.OldFlags{}, cluster,
			want{"127.0.0.1:7480", "", "", "info", []string{"apiServerHost", "enableIPv4", "other", "redirectQosLimit"}}},
		"certificate": {nil, "", certs, cluster, want{"127.0.0.1:7480", ":5822", "/certs", "info", nil}},
		"certificate, and the port": {map[string]string{"ENV_WEBHOOK_PORT": "9443"}, "", config.OldFlags{CACert: "/ca/ca.crt", ServerCert: "/certs/tls.crt", Key: "/certs/tls.key"}, cluster,
			want{"127.0.0.1:7480", ":9443", "/certs", "info", []string{"--tls-ca-cert"}}},
		"no cluster": {map[string]string{"ENV_WEBHOOK_PORT": "5822"}, "", certs, quiet, want{"127.0.0.1:7480", "", "", "info", nil}},
		"controller.yaml before all": {map[string]string{"ENV_HTTP_PORT": "5820", "ENV_WEBHOOK_PORT": "5822", "ENV_LOG_LEVEL": "debug"}, "", certs,
			strings.Replace(cluster, "listen: {", `listen: {health: "127.0.0.1:1", admission: ":2", `, 1) + "log: error\nadmission: {certDir: /mine}\n", want{"127.0.0.1:1", ":2", "/mine", "error", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			got, notes, err := loadOldController(t, c.env, c.conf, c.flags, c.controller)
			if err != nil {
				t.Fatal(err)
			}
			if w := c.want; got.Listen.Health != w.health || got.Listen.Admission != w.admission || got.Admission.CertDir != w.certDir || got.Log != w.log || !slices.Equal(notes, w.notes) {
				t.Errorf("have %+v %+v %s %q\nwant %+v", got.Listen, got.Admission, got.Log, notes, w)
			}
		})
	}
}

// Rule: balancing §22.
func TestOldConfigurationOfControllersThatCannotBeIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		env   map[string]string
		conf  string
		flags config.OldFlags
		want  string
	}{
		"port":      {map[string]string{"ENV_WEBHOOK_PORT": "70000"}, "", config.OldFlags{}, `ENV_WEBHOOK_PORT: "70000" is no port`},
		"level":     {map[string]string{"ENV_LOG_LEVEL": "loud"}, "", config.OldFlags{}, `ENV_LOG_LEVEL: "loud" is no log level`},
		"no file":   {nil, "", config.OldFlags{ConfigPath: "none.yml"}, "--config-path"},
		"no yaml":   {nil, "a: b: c\n", config.OldFlags{}, "conf.yml: "},
		"no key":    {nil, "", config.OldFlags{ServerCert: "/certs/tls.crt"}, "--tls-server-cert, --tls-server-key"},
		"two homes": {nil, "", config.OldFlags{ServerCert: "/a/tls.crt", Key: "/b/tls.key"}, "not tls.crt and tls.key of one folder"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := loadOldController(t, c.env, c.conf, c.flags, valid); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
