// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"fairlead.io/fairlead/cmd/internal/config"
)

const memberFile = `name: m1
dataDir: data
tls: {ca: ca.crt, cert: m1.crt, key: m1.key}
members: [{name: m1, api: "192.0.2.1:7443", raft: "192.0.2.1:7444"}]
advertise: {api: "192.0.2.1:7443", raft: "192.0.2.1:7444"}
`

// given gives the configuration of a file and the flags of a command line.
func given(t *testing.T, file string, args ...string) (config.Controller, []string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "controller.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	conf, err := config.LoadController(path)
	if err != nil {
		t.Fatal(err)
	}
	var f lbcfFlags
	set := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	f.add(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	unused, err := f.apply(set, &conf)
	return conf, unused, err
}

// lbcf §9: a drop-in must accept LBCF's flags unchanged.
func TestFlagsOfLBCFBecomeConfiguration(t *testing.T) {
	conf, unused, err := given(t, memberFile,
		"--informer-resync-period=1m", "--min-retry-delay=5s", "--retry-delay-step=10s", "--max-retry-delay=2m",
		"--kubeconfig=/etc/kubeconfig", "--server-crt=/etc/lbcf/server.crt", "--server_key=/etc/lbcf/server.key", "--dry-run",
		"--client-qps=200", "--client-burst=400", "-v=3", "--logtostderr", "--alsologtostderr=false", "--log_dir=/var/log", "--stderrthreshold=2")
	if err != nil {
		t.Fatal(err)
	}
	want := config.LBCF{
		MinRetryDelay: 5 * time.Second, RetryDelayStep: 10 * time.Second, MaxRetryDelay: 2 * time.Minute, DryRun: true,
		ClientQPS: 200, ClientBurst: 400,
	}
	if conf.LBCF != want {
		t.Errorf("%+v, not %+v", conf.LBCF, want)
	}
	if k := conf.Sources.Kubernetes; !reflect.DeepEqual(k, &config.Kubernetes{Kubeconfig: "/etc/kubeconfig", ConfigMaps: "kube-system"}) {
		t.Errorf("cluster %+v", k)
	}
	slices.Sort(unused)
	if want := []string{"alsologtostderr", "informer-resync-period", "log-dir", "logtostderr", "server-crt", "server-key", "stderrthreshold", "v"}; !slices.Equal(unused, want) {
		t.Errorf("without effect: %v, not %v", unused, want)
	}
}

func TestFlagsOfLBCFComeBeforeTheFileAndOnlyThoseThatAreGiven(t *testing.T) {
	file := memberFile + "lbcf: {minRetryDelay: 1s, maxRetryDelay: 1m, dryRun: true, clientBurst: 7}\nsources: {kubernetes: {inCluster: true}}\n"
	conf, unused, err := given(t, file, "--max-retry-delay=2m", "--dry-run=false")
	want := config.LBCF{MinRetryDelay: time.Second, MaxRetryDelay: 2 * time.Minute, ClientBurst: 7}
	if err != nil || conf.LBCF != want || len(unused) != 0 || !conf.Sources.Kubernetes.InCluster {
		t.Errorf("%+v, %v, %v", conf.LBCF, unused, err)
	}
	conf, _, err = given(t, memberFile, "--kubeconfig=")
	if err != nil || conf.Sources.Kubernetes == nil || !conf.Sources.Kubernetes.InCluster {
		t.Errorf("lbcf §9: an empty kubeconfig is not the pod's own account: %+v, %v", conf.Sources.Kubernetes, err)
	}
}

func TestControllerJudgesFlagsOfLBCF(t *testing.T) {
	isolate(t)
	path := filepath.Join(t.TempDir(), "controller.yaml")
	if err := os.WriteFile(path, []byte(memberFile), 0o600); err != nil {
		t.Fatal(err)
	}
	fairlead(t, "controller", "--config", path, "--min-retry-delay=-1s").mustFail(t, exitFailed, path, "with the flags given", "lbcf.minRetryDelay: -1s")
	fairlead(t, "controller", "--config", path, "--min-retry-delay=soon").mustFail(t, exitUsage, "--min-retry-delay")
	fairlead(t, "controller", "--leader-elect").mustFail(t, exitUsage, "--leader-elect")
	var b build
	if err := json.Unmarshal([]byte(fairlead(t, "controller", "--version").mustPrint(t)), &b); err != nil || b.Go == "" {
		t.Errorf("lbcf §9: --version prints %+v, %v", b, err)
	}
}
