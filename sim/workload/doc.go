// SPDX-License-Identifier: Apache-2.0

// Package workload is what happens in the cluster of a simulated world without anything being wrong: users change
// Services, nodes and configuration, controllers make pods for them, kubelets run the pods.
//
// It knows the steps that users take, as plain data, and how pods live: they take a while to start and to become ready,
// go on serving for a while once they are told to end, die with their node, and come back with another address. It
// promises to do through the API server what it does, that steps about what is not there do nothing, and that what one
// pod or application draws comes from a stream of its own, so that leaving a step out changes nothing in another. It
// also is the truth of who lives: see Cluster.Alive.
//
// Start reading at Cluster, then Step and All; application.go has the controllers, kubelet.go the lives of pods.
package workload
