// SPDX-License-Identifier: Apache-2.0

package fsm

import "fmt"

// Reject says why a command was refused. Numbers are API: append, never reuse.
type Reject uint8

// Accepted is the zero Reject; all others leave the record as it was.
const (
	Accepted Reject = iota
	RejectNotFound
	RejectExists
	RejectInvalid
	RejectStaleRevision
	RejectStaleAttempt
	RejectStaleFence
	RejectOperationOpen
	RejectNoOperation
	RejectAddressTaken
	RejectNoAllocation
	RejectInUse
	RejectLeaseHeld
	RejectLiveHolder
	RejectWrongState
	RejectNotWithdrawn
	RejectQuarantine
	RejectFormat
	RejectEpoch
	RejectOverlap
	RejectStaleBoot
	RejectUnfit
)

var rejectNames = [...]string{
	"accepted", "not-found", "exists", "invalid", "stale-revision", "stale-attempt", "stale-fence",
	"operation-open", "no-operation", "address-taken", "no-allocation", "in-use", "lease-held", "live-holder",
	"wrong-state", "not-withdrawn", "quarantine", "format", "epoch", "overlap", "stale-boot", "unfit",
}

// String is the stable, lower-case name that scripts and JSON use.
func (r Reject) String() string {
	if int(r) < len(rejectNames) {
		return rejectNames[r]
	}
	return fmt.Sprintf("reject-%d", uint8(r))
}

// Outcome is what became of one command: plain data, equal on every replica. The zero Outcome is acceptance
// of a command that had nothing to tell.
type Outcome struct {
	Reject   Reject   `pb:"1" json:"reject"`
	Subject  string   `pb:"2" json:"subject,omitempty"`  // what the command was about
	Have     string   `pb:"3" json:"have,omitempty"`     // what the record holds
	Want     string   `pb:"4" json:"want,omitempty"`     // what the command asked for
	Revision Revision `pb:"5" json:"revision,omitempty"` // of the change; the attempt or fence where one was made
}

// Err is nil for an accepted command, else an *OutcomeError.
func (o Outcome) Err() error {
	if o.Reject == Accepted {
		return nil
	}
	return &OutcomeError{Outcome: o}
}

// OutcomeError is a refusal as an error, for callers outside Apply.
type OutcomeError struct{ Outcome Outcome }

func (e *OutcomeError) Error() string {
	o := e.Outcome
	s := o.Subject + ": " + o.Reject.String()
	if o.Have != "" || o.Want != "" {
		s += fmt.Sprintf(" (have %s, want %s)", orNone(o.Have), orNone(o.Want))
	}
	return s
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func refuse(r Reject, subject, have, want string) Outcome {
	return Outcome{Reject: r, Subject: subject, Have: have, Want: want}
}
