// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"path/filepath"
)

// OldController is what the environment, the flags and the conf.yml of the controller of elf-io's balancing say, as far as it means
// something to a member. What controller.yaml says goes before it (balancing §22).
type OldController struct {
	Health, Admission, Log string
	CertDir                string
	Notes                  []Note
}

// oldWebhook is where the old controller listened for questions of the API server, unless it was told.
const oldWebhook = ":5822"

// OldFlags are those of the old controller.
type OldFlags struct {
	ConfigPath              string // --config-path
	CACert, ServerCert, Key string // --tls-ca-cert, --tls-server-cert, --tls-server-key
}

// oldControllerVariables have no meaning to a member; what to do instead.
func oldControllerVariables() map[string]string {
	const agents = "agents heed it, each on its node"
	return map[string]string{
		"ENV_METRIC_HTTP_PORT": "metrics are at the port of `listen.health`, under /metrics", "ENV_ENABLED_METRIC": "metrics are at the port of `listen.health`, under /metrics, unless that is \"\"",
		"ENV_GOPS_LISTEN_PORT": "it has no port for gops; /metrics tells of the process", "ENV_PYROSCOPE_PUSH_SERVER_ADDRESS": "it sends profiles nowhere; leave it out",
		"ENV_ENABLE_IPV4": agents, "ENV_ENABLE_IPV6": agents, "ENV_REDIRECT_QOS_LIMIT": agents,
	}
}

// oldControllerKeys of conf.yml have no meaning to a member, likewise.
func oldControllerKeys() map[string]string {
	const agents, api = "agents heed it: give the file to `fairlead agent --config-path`", "sources.kubernetes says where members find the API server: inCluster, or a kubeconfig"
	return map[string]string{"enableIPv4": agents, "enableIPv6": agents, "redirectQosLimit": agents, "apiServerHost": api, "apiServerPort": api}
}

// ReadOldController reads the environment, and what flags name. Errors name what has a value that cannot be.
func ReadOldController(getenv func(string) string, flags OldFlags) (OldController, error) {
	r, err := newOldReader(getenv, flags.ConfigPath)
	if err != nil {
		return OldController{}, err
	}
	o := OldController{Health: r.port("ENV_HTTP_PORT"), Admission: r.port("ENV_WEBHOOK_PORT"), Log: r.level("ENV_LOG_LEVEL")}
	o.Notes = append(r.variables(oldControllerVariables()), r.keys(oldControllerKeys(), "docs/controller.md lists what controller.yaml can say")...)
	if flags.CACert+flags.ServerCert+flags.Key == "" {
		return o, joinSorted(r.errs)
	}
	o.Admission = cmp.Or(o.Admission, oldWebhook)
	if o.CertDir = filepath.Dir(flags.ServerCert); flags.ServerCert != filepath.Join(o.CertDir, "tls.crt") || flags.Key != filepath.Join(o.CertDir, "tls.key") {
		r.bad("--tls-server-cert, --tls-server-key: %q and %q are not tls.crt and tls.key of one folder; put them there, or leave the flags out and members use a certificate of the group's CA", flags.ServerCert, flags.Key)
	}
	if ca := filepath.Join(o.CertDir, "ca.crt"); flags.CACert != "" && flags.CACert != ca {
		o.Notes = append(o.Notes, Note{"--tls-ca-cert", "ca.crt in the folder of the certificate is read, if there is one: " + ca})
	}
	return o, joinSorted(r.errs)
}

// under puts it where controller.yaml says nothing: into what the file is decoded over. Without a cluster nothing is admitted.
func (o OldController) under(c *Controller, cluster bool) {
	for to, said := range map[*string]string{&c.Listen.Health: o.Health, &c.Log: o.Log} {
		if said != "" {
			*to = said
		}
	}
	if cluster && o.Admission != "" {
		c.Listen.Admission = o.Admission
	}
	if cluster {
		c.Admission.CertDir = o.CertDir
	}
}
