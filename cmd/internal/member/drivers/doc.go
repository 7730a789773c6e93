// SPDX-License-Identifier: Apache-2.0

// Package drivers is the way from the record to the drivers of outside load balancers: what the leader's operator wants
// done becomes calls of their webhooks.
//
// It knows what of the record, and of Pods, Services and Nodes, each call carries, and what the end of a call says of the
// outside. It promises that a deregistration needs nothing but the record, and that what cannot be asked because an object
// is missing is not sent, and says so. It decides nothing about when to call. Sections (§) are those of LBCF's
// specification. Start reading at Drivers.Find and one.Call.
package drivers
