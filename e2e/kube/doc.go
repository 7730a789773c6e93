// SPDX-License-Identifier: Apache-2.0

// Package kube is empty. Its module (go.mod) says from which releases package kubetest of the main module builds
// kube-apiserver, kube-controller-manager, kube-proxy and etcd. To move to another release of Kubernetes, change k8s.io/kubernetes
// and every replacement in go.mod to it, take etcd's from Kubernetes' own go.mod, and run `go mod tidy` here.
package kube
