// SPDX-License-Identifier: Apache-2.0

// Package driver calls the drivers of outside load balancers: LBCF's webhooks (package webhook), over HTTP.
//
// It knows how a call goes out, how long it may take, and what its end says of the outside. It promises that nothing of
// a request is written after the call's deadline, that a call never takes longer than its timeout, that whatever a driver
// answers is either understood or an Error, and that a failure is told for certain (nothing was written) only where it is;
// everything else may have taken effect, or still may (Error.Sent). A driver that does not answer is left alone but for one
// call now and then, so that it costs others nothing. Neither bodies nor secrets are in logs and errors.
//
// Client is the calls, and decides; Transport is the edge: connections, TLS, and what left through them. A Client works
// with any http.RoundTripper whose errors wrap ErrNotSent where nothing was written. Start reading at Client.
package driver
