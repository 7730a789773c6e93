// SPDX-License-Identifier: Apache-2.0

// Package message is what a member and the driver of outside load balancers say to each other in a simulated world: a
// POST of a Request to the path of its action, answered with an Answer, both as JSON.
//
// Both ends share it; it judges nothing: that is the driver's part. Start reading at Request.
package message

import (
	"encoding/json"
	"fmt"
	"time"

	"fairlead.io/fairlead/fsm"
)

// Request is one call. What it is about is said in full: a driver knows neither pods nor groups.
type Request struct {
	Balancer string `json:"balancer"` // what everybody outside calls it
	// Object is which object it is for, in calls before the record has an identity of it.
	Object     string   `json:"object,omitempty"`
	Info       []fsm.KV `json:"info,omitempty"`
	Attributes []fsm.KV `json:"attributes,omitempty"`
	Backend    *Backend `json:"backend,omitempty"` // absent in calls about the balancer itself
	// All are the addresses that shall be on the balancer, Backend's among them, and no others; in calls to SetPath.
	All []string `json:"all,omitempty"`
	// Attempt is newer than that of any call before about the same.
	Attempt fsm.Revision `json:"attempt"`
	// Within is how long the caller waits.
	Within time.Duration `json:"within"`
}

// Backend is what is to be put on a balancer, or taken off.
type Backend struct {
	Binding    string   `json:"binding"`
	Address    string   `json:"address,omitempty"` // empty when it is asked for
	Parameters []fsm.KV `json:"parameters,omitempty"`
	Pod        string   `json:"pod,omitempty"`      // where its pod listens, when the address is asked for
	Returned   []fsm.KV `json:"returned,omitempty"` // what an earlier answer said
}

// Results of calls.
const (
	Succeeded = "succeeded"
	Failed    = "failed"  // nothing was done, and nothing will be
	Running   = "running" // it is being done: ask again
)

// Answer is how a call ended.
type Answer struct {
	Result   string   `json:"result"`
	Message  string   `json:"message,omitempty"`
	Address  string   `json:"address,omitempty"` // of a backend, when it was asked for
	Returned []fsm.KV `json:"returned,omitempty"`
	// RetryAfter is when to ask again; 0: the caller decides.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
}

// Path is where an action is asked for.
func Path(a fsm.Action) string { return "/" + a.String() }

// SetPath is where a balancer is set as a whole, as the APIs of most can be. It spares neither what others put there nor
// what the caller has not heard of.
const SetPath = "/set"

// Encode writes a Request or an Answer.
func Encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // plain values only
	}
	return b
}
