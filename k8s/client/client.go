// SPDX-License-Identifier: Apache-2.0

// Package client opens the way to a Kubernetes API server, for everybody in one process who needs it: the source,
// the projection of status, the check of tokens.
//
// It promises that a wrong configuration is told at once and in one line, and that a server which cannot be reached
// is no error: that is for those who ask it something. It knows the groups and kinds that are used and no others, since
// every binary and every simulated member pays for them at its start. Start reading at Open.
package client

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// userAgent is how the API server knows us in its audit log and its priority levels.
const userAgent = "fairlead"

// API is the way to one API server.
type API struct {
	// Config is what the clients were made of. It belongs to API: take a copy to change it.
	Config *rest.Config
	// Client is for the kinds that every cluster has, Dynamic for others.
	Client  *Groups
	Dynamic dynamic.Interface

	// All groups share one of each. Types of Kubernetes' own travel as protobuf.
	typed *rest.Config
	http  *http.Client
}

// Options say where the API server is and who we are to it.
type Options struct {
	// Kubeconfig is a file. Empty, with InCluster, takes the pod's ServiceAccount.
	Kubeconfig string
	InCluster  bool
}

// Open reads the configuration and makes clients. It does not ask the server anything.
func Open(o Options) (*API, error) {
	c, err := load(o)
	if err != nil {
		return nil, err
	}
	return New(c)
}

// New makes clients of a configuration, which it copies. A transport in it is used as it is.
func New(given *rest.Config) (*API, error) {
	c := rest.CopyConfig(given)
	if c.UserAgent == "" {
		c.UserAgent = userAgent
	}
	// Whoever asks has a bound of their own. The client's limiter would delay the first lists of a start, and lives by
	// the wall clock.
	c.QPS = -1
	a := &API{Config: c, typed: rest.CopyConfig(c)}
	a.typed.ContentType = "application/vnd.kubernetes.protobuf"
	a.typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	var err error
	if a.http, err = rest.HTTPClientFor(a.typed); err != nil {
		return nil, fmt.Errorf("connect to the API server at %s: %w", c.Host, err)
	}
	if a.Client, err = a.groups(); err != nil {
		return nil, err
	}
	if a.Dynamic, err = dynamic.NewForConfig(c); err != nil {
		return nil, fmt.Errorf("connect to the API server at %s: %w", c.Host, err)
	}
	return a, nil
}

func load(o Options) (*rest.Config, error) {
	if o.Kubeconfig == "" {
		if !o.InCluster {
			return nil, errors.New("no API server is configured; name a kubeconfig, or set inCluster in a pod")
		}
		c, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("read the pod's ServiceAccount: %w; outside of a cluster name a kubeconfig instead", err)
		}
		return c, nil
	}
	switch info, err := os.Stat(o.Kubeconfig); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("kubeconfig %s: does not exist; name the file of an account that may read the cluster", o.Kubeconfig)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig %s: cannot be read: %w", o.Kubeconfig, err)
	case info.IsDir():
		return nil, fmt.Errorf("kubeconfig %s: is a folder; name the file in it", o.Kubeconfig)
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig}
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %s; check it with `kubectl --kubeconfig %s get nodes`", o.Kubeconfig, oneLine(err), o.Kubeconfig)
	}
	return c, nil
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "invalid configuration: ")), " ")
}
