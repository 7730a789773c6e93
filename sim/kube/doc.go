// SPDX-License-Identifier: Apache-2.0

// Package kube models a Kubernetes API server and the etcd behind it, for a simulated world.
//
// It knows the resources that Fairlead reads and writes, and serves them as a real server does: lists, watches,
// resourceVersions, conflicts, finalizers, server-side apply with the API machinery's own field managers, JSON and
// protobuf. It promises that what no real server would accept is refused and published as event.Refused; that without
// a fault every answer is the plain truth; and that every answer that is not is published as event.Viewed. What users,
// kubelets and controllers do is done by calling methods of Server; the controller of EndpointSlices is built in.
//
// Start reading at Server, then store for the objects and their versions, Server.Handle for requests, watcher for
// watches and Fault for what can go wrong.
package kube
