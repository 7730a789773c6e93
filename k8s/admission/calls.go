// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Call is a question to a driver: one of LoadBalancer and Backend. It changes nothing and is not repeated.
type Call struct {
	Driver  *v1beta1.LoadBalancerDriver
	Subject string // the object that is judged
	About   string // the load balancer in it
	DryRun  bool
	// Lenient says that no answer is no objection: the update changes no field that the driver is asked about.
	Lenient bool

	LoadBalancer *LoadBalancerQuestion
	Backend      *BackendQuestion
}

// Operations, as drivers are told them.
const (
	OperationCreate = "Create"
	OperationUpdate = "Update"
)

// LoadBalancerQuestion is what validateLoadBalancer asks.
type LoadBalancerQuestion struct {
	Operation                 string
	LBSpec                    map[string]string
	Attributes, OldAttributes map[string]string
}

// BackendQuestion is what validateBackend asks.
type BackendQuestion struct {
	Operation                 string
	BackendType               lbcf.BackendType
	LBInfo                    map[string]string
	Parameters, OldParameters map[string]string
}

// Webhook is the webhook that is called.
func (c Call) Webhook() string {
	if c.LoadBalancer != nil {
		return lbcf.ValidateLoadBalancer
	}
	return lbcf.ValidateBackend
}

// Answer is what a driver says, or the error for which it says nothing.
type Answer struct {
	Succ bool
	Msg  string
	Err  error
}

// Judge decides about a request that Validate allowed, given the answers to its calls, in order.
func Judge(d Decision, answers []Answer, by Rules) Decision {
	if d.Denied != "" {
		return Decision{Denied: d.Denied, Warnings: d.Warnings}
	}
	out := Decision{Warnings: d.Warnings, Patch: d.Patch}
	var wrong []string
	for i, c := range d.Calls {
		a := Answer{Err: errNotAsked}
		if i < len(answers) {
			a = answers[i]
		}
		who := fmt.Sprintf("driver %s, %s of %s", c.Driver.Name, c.Webhook(), c.About)
		switch {
		case a.Err == nil && a.Succ:
		case a.Err == nil:
			wrong = append(wrong, fmt.Sprintf("%s: refused: %s", who, a.Msg))
		case c.Lenient || by.DriverAway == Warn:
			out.Warnings = append(out.Warnings, fmt.Sprintf("%s: no answer, let through: %v", who, a.Err))
		default:
			wrong = append(wrong, fmt.Sprintf("%s: no answer: %v: see that the driver runs at %s, then try again", who, a.Err, fsm.WithoutUserinfo(c.Driver.Spec.URL)))
		}
	}
	if len(wrong) > 0 {
		out.Denied = d.Calls[0].Subject + ": " + strings.Join(wrong, "; ")
	} else {
		out.Denied = d.refusal
	}
	if out.Denied != "" {
		out.Patch = nil
	}
	return out
}

var errNotAsked = errors.New("it was not asked")
