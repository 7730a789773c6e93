// SPDX-License-Identifier: Apache-2.0

// Package healthcheck answers outside load balancers that ask a node whether it has endpoints of a Service: HTTP at the
// Service's health-check node port (spec.healthCheckNodePort, K24).
//
// It knows what kube-proxy answers there, and answers alike. It promises that the ports that are open are those of the
// Services that it was told last, but for those that others hold, which it tries again; and that whoever connects costs a
// bounded number of connections, each of bounded time. Start reading at Plan, which decides, and Checks, which carries out.
package healthcheck
