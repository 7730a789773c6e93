// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"

	"fairlead.io/fairlead/internal/netnstest"
)

const kubeProxy = "kube-proxy"

// ProxyBinary gives the path of kube-proxy, which is built into the folder of Binaries if nobody has before.
func ProxyBinary(ctx context.Context, log io.Writer) (string, error) {
	dir, err := Binaries(ctx, log)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, kubeProxy)
	if complete(dir, kubeProxy) == nil {
		return path, nil
	}
	if os.Getenv(AssetsVariable) != "" {
		return "", complete(dir, kubeProxy)
	}
	module, err := moduleFolder(ctx)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", kubeProxy, err)
	}
	_, version, err := cacheFolder(module)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", kubeProxy, err)
	}
	fmt.Fprintf(log, "building %s %s into %s, once\n", kubeProxy, version, dir)
	partial, err := os.MkdirTemp(dir, kubeProxy+"-") // two that build at a time do not meet
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(partial)
	built := filepath.Join(partial, kubeProxy)
	if err := build(ctx, module, built, source[kubeProxy], version); err != nil {
		return "", err
	}
	return path, os.Rename(built, path)
}

// ProxyMetrics is where a Proxy tells its metrics, in its namespace.
const ProxyMetrics = 10249

// Proxy runs kube-proxy in mode nftables as a node's, in the network namespace that is the node, from which the API server
// can be called. Pods are in the given range. It ends with Close.
func (c *Cluster) Proxy(ctx context.Context, in *netnstest.Namespace, node string, pods netip.Prefix) error {
	path, err := ProxyBinary(ctx, c.options.Log)
	if err != nil {
		return err
	}
	p, err := launch(c.file(kubeProxy+".log"), "nsenter", fmt.Sprintf("--net=/proc/%d/fd/%d", os.Getpid(), in.FD()), path,
		"--kubeconfig="+c.Kubeconfig(), "--hostname-override="+node, "--proxy-mode=nftables", "--cluster-cidr="+pods.String(),
		fmt.Sprintf("--metrics-bind-address=0.0.0.0:%d", ProxyMetrics),
		"--conntrack-max-per-core=0", // the table is the machine's, not the namespace's
	)
	if err != nil {
		return err
	}
	p.name = kubeProxy
	c.mu.Lock()
	c.proxy = p
	c.mu.Unlock()
	return p.wait(ctx, func(context.Context) error {
		_, err := in.Try("nft", "list", "table", "ip", kubeProxy)
		return err
	})
}
