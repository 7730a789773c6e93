// SPDX-License-Identifier: Apache-2.0

// Package kubetest runs a real Kubernetes control plane for tests, the demo and benchmarks: etcd, kube-apiserver with
// RBAC and TokenReview, and, unless told otherwise, kube-controller-manager. There are no kubelets; nodes and pods are
// objects whose status the test writes (see Node and Pod), and the real endpointslice controller makes the rest of them.
//
//	etcd ── kube-apiserver ── kube-controller-manager        processes, in a folder of their own
//	               │
//	      Node: ready, lease renewed     Pod: has an address, ready, terminating
//
// The binaries are those of KUBEBUILDER_ASSETS if that is set, or are built once from the module e2e/kube and kept in
// the user's cache folder (see Binaries). What is started ends with the process that started it, however that ends.
// Start reading at Start (for tests) or New.
package kubetest
