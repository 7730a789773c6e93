// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cmd/internal/config"
)

const valid = `name: m1
dataDir: data
listen: {api: "127.0.0.1:7443", raft: "127.0.0.1:7444", health: ""}
tls: {ca: ca.crt, cert: m1.crt, key: m1.key}
members:
- {name: m1, api: "127.0.0.1:7443", raft: "127.0.0.1:7444"}
bgp: {asn: 65000, routerID: 192.0.2.1, restartWindow: 2s}
`

func load(t *testing.T, text string) (config.Controller, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "controller.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.LoadController(path)
}

func TestLoadFillsInWhatFollows(t *testing.T) {
	c, err := load(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	if c.Advertise.API != "127.0.0.1:7443" || c.BGP.Port != 179 || c.Log != "info" {
		t.Errorf("advertise %q, BGP port %d, log %q", c.Advertise.API, c.BGP.Port, c.Log)
	}
}

// lbcf §6.1: members answer by LBCF's name, too, and refuse what cannot be asked about.
func TestAdmissionAnswersByTheNamesOfItsServices(t *testing.T) {
	on := strings.Replace(valid, `health: ""`, `health: "", admission: ":7482"`, 1) + "sources: {kubernetes: {inCluster: true}}\n"
	c, err := load(t, on)
	if err != nil {
		t.Fatal(err)
	}
	if a := c.Admission; a.DriverAway != "fail" || strings.Join(a.Names, " ") != "fairlead-admission.kube-system.svc lbcf-controller.kube-system.svc" {
		t.Errorf("%+v", a)
	}
	for text, want := range map[string]string{
		"admission: {names: [a.example, A_b]}\n":            `admission.names[1]: "A_b"`,
		"admission: {driverAway: ignore}\n":                 `admission.driverAway: "ignore"`,
		"admission: {clientNames: [a]}\n":                   "admission.clientNames: nobody is asked",
		"admission: {clientCA: ca.crt, clientNames: [a]}\n": "",
		"admission: {policyConflict: ignore}\n":             `admission.policyConflict: "ignore"`,
		"admission: {policyConflict: warn}\n":               "",
		"admission: {names: [192.0.2.1, \"::1\"]}\n":        "",
	} {
		if _, err := load(t, on+text); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Where nobody says, health is beside the API, and not at addresses that nobody thought of.
func TestHealthIsBesideTheAPI(t *testing.T) {
	for listen, want := range map[string]string{
		`{api: "127.0.0.1:7443", raft: "127.0.0.1:7444"}`:                  "127.0.0.1:7480",
		`{api: "[::1]:7443", raft: "127.0.0.1:7444"}`:                      "[::1]:7480",
		`{api: "127.0.0.1:7443", raft: "127.0.0.1:7444", health: ":7480"}`: ":7480",
		`{api: "127.0.0.1:7443", raft: "127.0.0.1:7444", health: ""}`:      "",
		"{raft: \"127.0.0.1:7444\"}\nadvertise: {api: \"127.0.0.1:7443\"}": ":7480",
	} {
		text := strings.Replace(valid, `{api: "127.0.0.1:7443", raft: "127.0.0.1:7444", health: ""}`, listen, 1)
		if c, err := load(t, text); err != nil || c.Listen.Health != want {
			t.Errorf("%s: %q, %v; want %q", listen, c.Listen.Health, err, want)
		}
	}
}

// Each mistake gives one line that names the field, and a remedy where there is more to say than the reason.
func TestLoadRefusesWithOneLineThatNamesTheField(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown field":        {"name: m1\n", "name: m1\nnmae: m2\n", "line 2: nmae: there is no such field; did you mean name?"},
		"no name":              {"name: m1\n", "", "name: is missing"},
		"no data folder":       {"dataDir: data\n", "", "dataDir: is missing"},
		"no key":               {", key: m1.key", "", "tls.key: is missing; `fairlead pki init`"},
		"bad listener":         {`raft: "127.0.0.1:7444", health`, `raft: "7444", health`, `listen.raft: "7444" is no host:port`},
		"no host to dial":      {`listen: {api: "127.0.0.1:7443"`, `listen: {api: ":7443"`, "advertise.api:"},
		"unknown port":         {`raft: "127.0.0.1:7444"}`, `raft: "127.0.0.1:99999"}`, "members[0].raft:"},
		"no router id":         {"routerID: 192.0.2.1", `routerID: "2001:db8::1"`, "bgp.routerID: is no IPv4 address"},
		"bad duration":         {"restartWindow: 2s", "restartWindow: soon", "line 7"},
		"not in the list":      {"- {name: m1, api", "- {name: m2, api", "members: does not list"},
		"bad cordon":           {"name: m1\n", "name: m1\nnodes: {cordoned: drain}\n", `nodes.cordoned: "drain" is neither serve nor aside`},
		"bad taint":            {"name: m1\n", "name: m1\nnodes: {taints: [\"a=b:NoSchedule\"]}\n", `nodes.taints[0]: "a=b:NoSchedule" is no key of a taint`},
		"bad account":          {"name: m1\n", "name: m1\nenrolment: {serviceAccount: agent}\n", `enrolment.serviceAccount: "agent" is no namespace/name`},
		"unknown log level":    {"name: m1\n", "name: m1\nlog: loud\n", `log: "loud" is no log level`},
		"no API server":        {"name: m1\n", "name: m1\nsources: {kubernetes: {}}\n", "sources.kubernetes: says no API server; give kubeconfig"},
		"two API servers":      {"name: m1\n", "name: m1\nsources: {kubernetes: {kubeconfig: k, inCluster: true}}\n", "sources.kubernetes: has both"},
		"nobody asks":          {"name: m1\n", "name: m1\nadmission: {driverAway: warn}\n", "admission: nobody can ask for it"},
		"nobody asks either":   {"name: m1\n", "name: m1\nadmission: {policyConflict: warn}\n", "admission: nobody can ask for it"},
		"metrics of nobody":    {"name: m1\n", "name: m1\nmetrics: {listen: \":7483\"}\n", "metrics.listen: there is no cluster to ask whose a token is; name one in sources.kubernetes; metrics.serviceAccounts: is missing"},
		"metrics nowhere":      {"name: m1\n", "name: m1\nmetrics: {serviceAccounts: [a/b]}\n", "metrics.serviceAccounts: everybody may read"},
		"metrics of a name":    {"name: m1\n", "name: m1\nmetrics: {listen: \"x\", serviceAccounts: [a]}\n", `metrics.listen: "x" is no host:port`},
		"no cluster to ask":    {`health: ""`, `health: "", admission: ":7482"`, "listen.admission: there is no cluster"},
		"bad name":             {"name: m1\n", "name: m1\nadmission: {names: [A_b]}\n", "admission"},
		"bad namespace":        {"name: m1\n", "name: m1\nsources: {kubernetes: {kubeconfig: k, configMaps: Kube/System}}\n", `sources.kubernetes.configMaps: "Kube/System" is no name`},
		"unknown source":       {"name: m1\n", "name: m1\nsources: {kubernetes: {kubeConfig: k}}\n", "sources.kubernetes.kubeConfig: there is no such field; did you mean kubeconfig?"},
		"status of nothing":    {"name: m1\n", "name: m1\nstatus: {externalIPs: true}\n", "status: there is no cluster"},
		"finalizer of nothing": {"name: m1\n", "name: m1\nstatus: {finalizer: true}\n", "status: there is no cluster"},
		"unknown status":       {"name: m1\n", "name: m1\nstatus: {externalips: true}\n", "status.externalips: there is no such field; did you mean externalIPs?"},
		"open API":             {"bgp: {", `bgp: {management: "192.0.2.1:50051", `, `bgp.management: "192.0.2.1:50051" could be reached from other hosts`},
		"API for all":          {"bgp: {", `bgp: {management: ":50051", `, `bgp.management: ":50051" is no address and port; use 127.0.0.1:PORT`},
		"API by name":          {"bgp: {", `bgp: {management: "localhost:50051", `, `bgp.management: "localhost:50051" is no address`},
		"API at no port":       {"bgp: {", `bgp: {management: "127.0.0.1:0", `, `bgp.management: "127.0.0.1:0" is no address and port`},
		"API on all sides":     {"bgp: {", `bgp: {management: "[::ffff:0.0.0.0]:50051", `, "could be reached from other hosts"},
		"API somewhere":        {"bgp: {", `bgp: {management: "unix://gobgp.sock", `, `bgp.management: "unix://gobgp.sock" has no absolute path`},
		"two APIs":             {"bgp: {", `bgp: {management: "unix:///a.sock,:50051", `, "without commas"},
		"open API, no BGP":     {"bgp: {asn: 65000, ", `bgp: {management: "192.0.2.1:50051", `, "bgp.management:"},
		"negative delay":       {"name: m1\n", "name: m1\nlbcf: {minRetryDelay: -1s}\n", "lbcf.minRetryDelay: -1s is no delay"},
		"delay of days":        {"name: m1\n", "name: m1\nlbcf: {retryDelayStep: 48h}\n", "lbcf.retryDelayStep: 48h0m0s is no delay"},
		"no rate":              {"name: m1\n", "name: m1\nlbcf: {clientQPS: .nan}\n", "lbcf.clientQPS: NaN is no rate"},
		"negative burst":       {"name: m1\n", "name: m1\nlbcf: {clientBurst: -1}\n", "lbcf.clientBurst: -1"},
		"unknown of LBCF":      {"name: m1\n", "name: m1\nlbcf: {retries: 1}\n", "lbcf.retries: there is no such field; it is one of"},
		"quick heartbeat":      {"name: m1\n", "name: m1\nraft: {heartbeat: 1ns}\n", "raft.heartbeat: 1ns is not from 20ms to 10s"},
		"negative election":    {"name: m1\n", "name: m1\nraft: {election: -1s}\n", "raft.election: -1s is not from 20ms to 10s"},
		"short log":            {"name: m1\n", "name: m1\nraft: {maxLogBytes: 1000}\n", "raft.maxLogBytes: 1000 is not from 67108864 to 9223372036854775807"},
		"negative interval":    {"name: m1\n", "name: m1\nraft: {snapshotInterval: -1s}\n", "raft.snapshotInterval: -1s is less than nothing"},
		"short lease":          {"name: m1\n", "name: m1\nl2: {lease: 100ms}\n", "l2.lease: 100ms is not from 300ms to 3s"},
		"long lease":           {"name: m1\n", "name: m1\nl2: {lease: 4s}\n", "l2.lease: 4s is not from 300ms to 3s"},
		"no yaml":              {"name: m1\n", "name: [m1\n", "line "},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			text := strings.Replace(valid, c.old, c.new, 1)
			if name == "not in the list" {
				text += "bootstrapToken: t\n"
			}
			_, err := load(t, text)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "controller.yaml: ") {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// Leases last until a new leader can be found, which takes longer where heartbeats do.
func TestLeasesFitHowSoonALeaderIsMissed(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"log: info": 600 * time.Millisecond, "raft: {heartbeat: 100ms}": 600 * time.Millisecond, "raft: {heartbeat: 300ms}": 1200 * time.Millisecond,
		"raft: {heartbeat: 300ms, election: 400ms}": 1600 * time.Millisecond, "raft: {heartbeat: 2s}": 3 * time.Second,
		"l2: {lease: 300ms}": 300 * time.Millisecond, "raft: {heartbeat: 1s}\nl2: {lease: 900ms}": 900 * time.Millisecond,
	} {
		if c, err := load(t, strings.Replace(valid, "name: m1\n", "name: m1\n"+text+"\n", 1)); err != nil || c.L2.Lease != want {
			t.Errorf("%s: %s, %v; want %s", text, c.L2.Lease, err, want)
		}
	}
}

// GoBGP's API asks nobody who they are.
func TestManagementIsOffUnlessOnlyThisHostReachesIt(t *testing.T) {
	if c, err := load(t, valid); err != nil || c.BGP.Management != "" {
		t.Errorf("without the field: %v, %q", err, c.BGP.Management)
	}
	for _, v := range []string{"127.0.0.1:50051", "127.0.0.11:50051", "[::1]:50052", "unix:///run/fairlead/gobgp.sock"} {
		c, err := load(t, strings.Replace(valid, "bgp: {", fmt.Sprintf("bgp: {management: %q, ", v), 1))
		if err != nil || c.BGP.Management != v {
			t.Errorf("%s: %v, %q", v, err, c.BGP.Management)
		}
	}
}

func TestLoadNamesAMissingFile(t *testing.T) {
	_, err := config.LoadController(filepath.Join(t.TempDir(), "none.yaml"))
	if err == nil || !strings.Contains(err.Error(), "none.yaml: does not exist") {
		t.Fatalf("got %v", err)
	}
}

func TestLoadReadsWhereTheClusterIs(t *testing.T) {
	for text, want := range map[string]config.Kubernetes{
		"sources: {kubernetes: {kubeconfig: /etc/fairlead/kubeconfig}}": {Kubeconfig: "/etc/fairlead/kubeconfig", ConfigMaps: "kube-system"},
		"sources: {kubernetes: {inCluster: true, lbcf: {force: true}}}": {InCluster: true, ConfigMaps: "kube-system", LBCF: config.HandOver{Force: true}},
		"sources: {kubernetes: {inCluster: true, configMaps: lb}}":      {InCluster: true, ConfigMaps: "lb"},
	} {
		c, err := load(t, valid+text+"\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Sources.Kubernetes; got == nil || *got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	if c, err := load(t, valid); err != nil || c.Sources.Kubernetes != nil {
		t.Errorf("without the section: %v, %+v", err, c.Sources.Kubernetes)
	}
}
