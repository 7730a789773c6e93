// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"cmp"
	"io"
	"net/netip"
	"time"
)

// Options say what kind of cluster is wanted. The zero value is one on loopback with the usual controllers.
type Options struct {
	// Bind is the address at which the API server listens and is called; 127.0.0.1.
	Bind netip.Addr
	// Port of the API server; a free one of Bind.
	Port uint16
	// ServiceCIDR are the ranges of cluster addresses; 10.96.0.0/16,fd00:10:96::/112.
	ServiceCIDR string
	// Plugins are admission plugins that run besides the usual ones.
	Plugins []string
	// NoControllers leaves kube-controller-manager out: there will be no EndpointSlices but those that the test writes.
	NoControllers bool
	// Controllers are run besides the usual ones, such as daemonset-controller or node-lifecycle-controller.
	Controllers []string
	// NodeGrace is how long a Node may be silent before the node-lifecycle controller calls it not ready; 40 s.
	NodeGrace time.Duration
	// Dir is for data, certificates and logs; one of its own that Close removes.
	Dir string
	// Log is told of a build of the binaries; discarded if nil.
	Log io.Writer
}

// usual are the controllers that a cluster always has. Others act on what kubelets would have to do.
var usual = []string{
	"endpointslice-controller", "serviceaccount-controller", "namespace-controller", "garbage-collector-controller",
	"root-ca-certificate-publisher-controller",
}

func (o Options) withDefaults() Options {
	o.Bind = cmp.Or(o.Bind, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	o.ServiceCIDR = cmp.Or(o.ServiceCIDR, "10.96.0.0/16,fd00:10:96::/112")
	o.NodeGrace = cmp.Or(o.NodeGrace, 40*time.Second)
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}
