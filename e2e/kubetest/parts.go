// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (c *Cluster) startEtcd() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	c.etcd, err = c.launch(etcd,
		"--data-dir="+c.file("etcd"),
		"--unsafe-no-fsync", // the data lives as long as the test
		"--listen-client-urls="+c.etcdURL, "--advertise-client-urls="+c.etcdURL,
		"--listen-peer-urls="+c.etcdPeer, "--initial-advertise-peer-urls="+c.etcdPeer,
		"--initial-cluster=default="+c.etcdPeer,
		"--log-level=warn",
	)
	return err
}

// Start starts the API server, again after Stop or Kill, and returns when it answers. It does nothing if one runs.
func (c *Cluster) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiServer != nil && !c.apiServer.ended() {
		return nil
	}
	// Without another word the API server would publish an address of the machine's, which loopback cannot be.
	reconciler := "lease"
	if c.options.Bind.IsLoopback() {
		reconciler = "none"
	}
	var err error
	c.apiServer, err = c.launch(apiServer,
		"--etcd-servers="+c.etcdURL,
		"--bind-address="+c.options.Bind.String(), "--advertise-address="+c.options.Bind.String(),
		"--secure-port="+portText(c.options.Port),
		"--endpoint-reconciler-type="+reconciler,
		"--service-cluster-ip-range="+c.options.ServiceCIDR,
		"--client-ca-file="+c.file("ca.crt"),
		"--tls-cert-file="+c.file("serving.crt"), "--tls-private-key-file="+c.file("serving.key"),
		"--service-account-issuer="+Issuer,
		"--service-account-key-file="+c.file("accounts.key"), "--service-account-signing-key-file="+c.file("accounts.key"),
		"--authorization-mode=RBAC",
		// It taints each new node until a controller finds it ready, which is not one of ours.
		"--disable-admission-plugins=TaintNodesByCondition",
		"--enable-admission-plugins="+strings.Join(c.options.Plugins, ","),
		"--allow-privileged",
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	return c.apiServer.wait(ctx, c.ready)
}

// ready tells what is missing until the API server answers and has made what every cluster holds.
func (c *Cluster) ready(ctx context.Context) error {
	if err := c.client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	for _, ns := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		if _, err := c.client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	_, err := c.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	return err
}

func (c *Cluster) startControllers(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	c.controllers, err = c.launch(controllerManager,
		"--kubeconfig="+c.Kubeconfig(),
		"--leader-elect=false", // it would end when the API server does
		"--controllers="+strings.Join(append(append([]string{}, usual...), c.options.Controllers...), ","),
		"--service-account-private-key-file="+c.file("accounts.key"), "--root-ca-file="+c.file("ca.crt"),
		"--node-monitor-grace-period="+c.options.NodeGrace.String(),
		"--secure-port=0",
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	return c.controllers.wait(ctx, c.controlled)
}

// controlled tells what is missing until controllers work. While they only start, they end if the API server does.
func (c *Cluster) controlled(ctx context.Context) error {
	_, account := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	_, root := c.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	return errors.Join(account, root)
}

// ignoreExists is for objects that another part may have made meanwhile.
func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// EnsureNamespace makes a namespace and its default ServiceAccount if they are not there, so that Pods may be made.
func (c *Cluster) EnsureNamespace(ctx context.Context, name string) error {
	_, err := c.client.CoreV1().Namespaces().Create(ctx, namespaceNamed(name), metav1.CreateOptions{})
	if err := ignoreExists(err); err != nil {
		return fmt.Errorf("make namespace %s: %w", name, err)
	}
	_, err = c.client.CoreV1().ServiceAccounts(name).Create(ctx, accountNamed("default"), metav1.CreateOptions{})
	if err := ignoreExists(err); err != nil {
		return fmt.Errorf("make ServiceAccount %s/default: %w", name, err)
	}
	return nil
}
