// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
)

// ErrNotSent is in the errors of an http.RoundTripper that wrote nothing of a request and never will.
var ErrNotSent = errors.New("not sent")

// Cause says why a call has no usable answer. It is also the value of a metric's label.
type Cause string

// Of calls that were not sent.
const (
	CauseDryRun  Cause = "dry-run"  // the driver does not take part in dry runs
	CauseRequest Cause = "request"  // the request cannot be written as JSON
	CauseLate    Cause = "late"     // its deadline had passed
	CauseBusy    Cause = "busy"     // too many calls to the driver were in flight all along
	CauseOpen    Cause = "open"     // the driver has not answered lately and is left alone
	CauseConnect Cause = "connect"  // no connection
	CauseAddress Cause = "address"  // it is at an address where drivers are not called, or not with credentials
	CauseGone    Cause = "canceled" // whoever asked has stopped waiting; it may have been sent
)

// Of calls that may have been sent, or were.
const (
	CauseTimeout Cause = "timeout" // no answer, or not all of it, within the timeout
	CauseBroken  Cause = "broken"  // the connection ended before the answer did
	CauseStatus  Cause = "status"  // an HTTP status other than 200
	CauseTooLong Cause = "too-long"
	CauseBody    Cause = "body"    // an answer that is no JSON, or has values of wrong types
	CauseInvalid Cause = "invalid" // an answer that says nothing: an unknown status, an empty address
)

// Error is why a call has no usable answer.
type Error struct {
	Driver  string
	Webhook webhook.Name
	Cause   Cause
	// Sent tells that the call may take effect, or may have. Without it nothing was written and nothing will happen.
	Sent bool
	// Status is the HTTP status of CauseStatus.
	Status int
	// RetryAfter is when to ask again at the earliest, of CauseOpen.
	RetryAfter time.Duration
	Err        error
}

// Error says what went wrong, on what, and why.
func (e *Error) Error() string {
	how := ""
	if !e.Sent && !errors.Is(e.Err, ErrNotSent) {
		how = ErrNotSent.Error() + ": "
	}
	return strings.ToValidUTF8(fmt.Sprintf("%s of driver %s: %s%v", e.Webhook, e.Driver, how, e.Err), "?") // hosts and answers may be any bytes
}

// Unwrap gives the cause's own error.
func (e *Error) Unwrap() error { return e.Err }

// Result is what the error says of the outside.
func (e *Error) Result() fsm.Result {
	if e.Sent {
		return fsm.ResultUnknown
	}
	return fsm.ResultFailed
}

// answered tells whether somebody was there. A gateway that answers for a driver that is away is nobody.
func (e *Error) answered() bool {
	switch e.Cause {
	case CauseTooLong, CauseBody, CauseInvalid:
		return true
	case CauseStatus:
		return e.Status < 502 || e.Status > 504
	default:
		return false
	}
}

// silent tells whether the error speaks for a driver that is away.
func (e *Error) silent() bool {
	switch e.Cause {
	case CauseConnect, CauseTimeout, CauseBroken, CauseStatus:
		return !e.answered()
	default:
		return false
	}
}

// ResultOf is what the end of a call says of the outside: its answer, or the error in its place.
func ResultOf(s webhook.Status, err error) fsm.Result {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Result()
	case err != nil:
		return fsm.ResultUnknown
	case s == webhook.Succ:
		return fsm.ResultSucceeded
	case s == webhook.Fail:
		return fsm.ResultFailed
	case s == webhook.Running:
		return fsm.ResultRunning
	default:
		return fsm.ResultUnknown
	}
}

// RetryAfter is when the driver, or what is known of it, wants to be asked again at the earliest; zero if nobody says.
func RetryAfter(a webhook.Answer, err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return a.RetryAfter()
}
