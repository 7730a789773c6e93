// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/pflag"

	"fairlead.io/fairlead/cmd/internal/config"
)

// lbcfFlags are the flags of LBCF's controller (lbcf §9), so that the arguments of its Deployment serve as they
// are. Those that are given replace what controller.yaml says.
type lbcfFlags struct {
	lbcf       config.LBCF
	kubeconfig string
	version    bool
}

// vainFlags have no effect: those that take a value, and those that need none. The certificate of admission is the member's
// own or in admission.certDir, and LBCF's logger is not ours.
func vainFlags() (valued, bare []string) {
	return []string{"server-crt", "server-key", "v", "vmodule", "stderrthreshold", "log-backtrace-at", "log-dir", "log-file", "log-file-max-size"},
		[]string{"logtostderr", "alsologtostderr", "skip-headers", "skip-log-headers", "add-dir-header"}
}

func (f *lbcfFlags) add(set *pflag.FlagSet) {
	set.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-")) // LBCF takes both
	})
	set.DurationVar(&f.lbcf.InformerResyncPeriod, "informer-resync-period", 0, "LBCF's; accepted, without effect")
	set.DurationVar(&f.lbcf.MinRetryDelay, "min-retry-delay", 0, "LBCF's, as lbcf.minRetryDelay in the file")
	set.DurationVar(&f.lbcf.RetryDelayStep, "retry-delay-step", 0, "LBCF's, as lbcf.retryDelayStep in the file")
	set.DurationVar(&f.lbcf.MaxRetryDelay, "max-retry-delay", 0, "LBCF's, as lbcf.maxRetryDelay in the file")
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "LBCF's, as sources.kubernetes.kubeconfig in the file; empty: inCluster")
	set.BoolVar(&f.lbcf.DryRun, "dry-run", false, "LBCF's, as lbcf.dryRun in the file")
	set.Float64Var(&f.lbcf.ClientQPS, "client-qps", 0, "LBCF's, as lbcf.clientQPS in the file")
	set.IntVar(&f.lbcf.ClientBurst, "client-burst", 0, "LBCF's, as lbcf.clientBurst in the file")
	set.BoolVar(&f.version, "version", false, "LBCF's: print which build this is, as JSON")
	valued, bare := vainFlags()
	for _, name := range valued {
		short := ""
		if len(name) == 1 {
			short = name
		}
		set.StringP(name, short, "", "LBCF's; accepted, without effect")
	}
	for _, name := range bare {
		set.Bool(name, false, "LBCF's; accepted, without effect")
	}
	for _, name := range append(valued, bare...) {
		set.Lookup(name).Hidden = true
	}
}

// apply writes what was given into a configuration and judges it again. It names the flags that were given in vain.
func (f *lbcfFlags) apply(set *pflag.FlagSet, conf *config.Controller) (unused []string, err error) {
	to := &conf.LBCF
	for name, take := range map[string]func(){
		"min-retry-delay":  func() { to.MinRetryDelay = f.lbcf.MinRetryDelay },
		"retry-delay-step": func() { to.RetryDelayStep = f.lbcf.RetryDelayStep },
		"max-retry-delay":  func() { to.MaxRetryDelay = f.lbcf.MaxRetryDelay },
		"dry-run":          func() { to.DryRun = f.lbcf.DryRun },
		"client-qps":       func() { to.ClientQPS = f.lbcf.ClientQPS },
		"client-burst":     func() { to.ClientBurst = f.lbcf.ClientBurst },
		"kubeconfig":       func() { reach(&conf.Sources, f.kubeconfig) },
	} {
		if set.Changed(name) {
			take()
		}
	}
	valued, bare := vainFlags()
	for _, name := range append(append([]string{"informer-resync-period"}, valued...), bare...) {
		if set.Changed(name) {
			unused = append(unused, name)
		}
	}
	return unused, conf.Validate()
}

// reach has the cluster be read with a file, or with the pod's own account.
func reach(s *config.Sources, kubeconfig string) {
	if s.Kubernetes == nil {
		s.Kubernetes = &config.Kubernetes{}
	}
	s.Kubernetes.Kubeconfig, s.Kubernetes.InCluster = kubeconfig, kubeconfig == ""
}
