// SPDX-License-Identifier: Apache-2.0

// Package webhook is the wire between Fairlead and the drivers of outside load balancers: LBCF's webhook protocol.
//
// It knows the names of the calls, what requests and answers look like as JSON, and how addresses and record ids are
// made. It promises the bytes that drivers written for LBCF expect, and to read what they answer as LBCF did, or more
// leniently where that helps. It sends nothing: package driver calls drivers, package kit serves as one. Sections (§)
// in comments are those of the protocol's specification. Start reading at Name, then request.go and answer.go.
package webhook

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Name is what a call is called: the last segment of its address.
type Name string

// The calls (lbcf §3.2).
const (
	Healthz              Name = "healthz"
	ValidateLoadBalancer Name = "validateLoadBalancer"
	CreateLoadBalancer   Name = "createLoadBalancer"
	EnsureLoadBalancer   Name = "ensureLoadBalancer"
	DeleteLoadBalancer   Name = "deleteLoadBalancer"
	ValidateBackend      Name = "validateBackend"
	GenerateBackendAddr  Name = "generateBackendAddr"
	EnsureBackend        Name = "ensureBackend"
	DeregisterBackend    Name = "deregisterBackend"
	JudgePodDeregister   Name = "judgePodDeregister"
)

// Configurable lists the calls that a LoadBalancerDriver names in spec.webhooks, in the order in which they are filled in.
func Configurable() []Name {
	return []Name{
		Healthz, ValidateLoadBalancer, CreateLoadBalancer, EnsureLoadBalancer, DeleteLoadBalancer, ValidateBackend,
		GenerateBackendAddr, EnsureBackend, DeregisterBackend,
	}
}

// Names lists all calls: those of Configurable, and JudgePodDeregister. LBCF refuses drivers that list that one, so that
// it is read where somebody wrote it and never filled in (lbcf §3.2).
func Names() []Name { return append(Configurable(), JudgePodDeregister) }

// Known tells whether there is such a call.
func (n Name) Known() bool { return slices.Contains(Names(), n) }

// Of call budgets, connecting included (lbcf §3.1).
const (
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = time.Minute
)

// AttemptHeader carries the fence of a call: "epoch.index", which never runs back for one subject. A driver that keeps
// the highest one that it has seen can refuse calls that come late. LBCF did not send it; drivers may ignore it.
const AttemptHeader = "Fairlead-Attempt"

// ParseURL reads a driver's address. Errors: it is not http or https, or names no host (lbcf §2.1); there is a user or a password
// in it, which no error repeats.
func ParseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("a driver's url: %w", withoutURL(err))
	case u.User != nil:
		u.User = nil
		return nil, fmt.Errorf("a driver's url %q: there is a user or a password before the host, where all read it who see the URL; leave it out, and give it as the driver's credentials", u)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("a driver's url %q: it begins with neither http:// nor https://", u)
	case u.Hostname() == "":
		return nil, fmt.Errorf("a driver's url %q: it names no host", u)
	}
	return u, nil
}

// SameOrigin tells whether two addresses have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// withoutURL drops the address from an error of net/url: a password may be in it.
func withoutURL(err error) error {
	if e, ok := err.(*url.Error); ok { //nolint:errorlint // it is made in url.Parse
		return e.Err
	}
	return err
}

// At is the address of a call to the driver at base: the name is joined to the path, a query stays (lbcf §3.1).
func (n Name) At(base *url.URL) *url.URL {
	u := base.JoinPath(string(n))
	u.RawQuery = u.Query().Encode()
	u.Fragment, u.RawFragment = "", ""
	return u
}

// RecordID names an operation on an object for a driver, equally at all attempts (lbcf §3.3).
func RecordID(n Name, uid string) string { return string(n) + "(" + uid + ")" }

// BindRecordID is the RecordID of calls about the load balancer of one entry of a Bind. LBCF let all entries share one
// in calls other than createLoadBalancer.
func BindRecordID(n Name, bindUID, entry string) string { return RecordID(n, bindUID+"-"+entry) }
