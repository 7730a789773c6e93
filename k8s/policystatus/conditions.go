// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
)

// Types of conditions.
const (
	// Accepted tells whether the policy captures what it asks for.
	Accepted = "Accepted"
	// Programmed tells whether every node that is to carry it out has acknowledged it as it is.
	Programmed = "Programmed"
	// BackendsAvailable tells whether connections can get a backend.
	BackendsAvailable = "BackendsAvailable"
	// Conflict tells whether another policy counts before it somewhere.
	Conflict = "Conflict"
)

// Reasons of conditions.
const (
	ReasonAccepted        = "Accepted"
	ReasonDisabled        = "Disabled"
	ReasonInvalid         = "Invalid"
	ReasonNotAsWritten    = "NotAsWritten"
	ReasonNoService       = "NoService"
	ReasonNoClusterIP     = "NoClusterIP"
	ReasonNoPort          = "NoPort"
	ReasonPortsMissing    = "PortsMissing"
	ReasonNotCarriedOut   = "NotCarriedOut"
	ReasonNoProxyAddress  = "NoProxyAddress"
	ReasonProxyPort       = "ProxyPort"
	ReasonNoneHealthy     = "NoneHealthy"
	ReasonFormat          = "RecordFormat"
	ReasonNoEvidence      = "NoEvidence"
	ReasonPending         = "Pending"
	ReasonProgrammed      = "Programmed"
	ReasonNodesBehind     = "NodesBehind"
	ReasonNoNodes         = "NoNodes"
	ReasonNothingCaptured = "NothingCaptured"
	ReasonAvailable       = "Available"
	ReasonNoneReady       = "NoneReady"
	ReasonNoBackend       = "NoBackend"
	ReasonOverruled       = "Overruled"
	ReasonNoConflict      = "NoConflict"
)

// The leader's codes (fsm.Policy.Pending, and explanations).
const (
	codeFormat    = "format"
	codeEvidence  = "evidence"
	codeSupport   = "not-carried-out"
	codeProxy     = "no-proxy-address"
	codeProxyPort = "proxy-port"
	codeService   = "no-service"
	codeClusterIP = "no-cluster-ip"
	codePort      = "no-port"
	codeConflict  = "conflict"
	codeBackend   = "no-backend"
)

// verdict is a condition without its time.
type verdict struct {
	kind    string
	status  metav1.ConditionStatus
	reason  string
	message string
}

// condition keeps the time of the last change of status.
func (v verdict) condition(before []metav1.Condition, generation int64, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: v.kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
	if old := find(before, v.kind); old != nil && old.Status == v.status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c
}

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

// pending is the code of why the record's policy is not carried out as it asks.
func (f *facts) pending() fsm.Pending {
	if f.row == nil {
		return fsm.Pending{}
	}
	return f.row.Pending
}

func (f *facts) accepted() verdict {
	say := func(status metav1.ConditionStatus, reason, message string) verdict {
		return verdict{Accepted, status, reason, message}
	}
	switch {
	case len(f.said.Invalid) > 0:
		after := ""
		if f.row != nil {
			after = "; its last good form stays in use"
		}
		return say(no, ReasonInvalid, strings.Join(f.said.Invalid, "; ")+after)
	case f.row == nil && f.said.Code == codeFormat:
		return say(no, ReasonFormat, f.said.Text)
	case f.row == nil && f.said.Code != "":
		return say(unknown, ReasonPending, f.said.Text)
	case f.row == nil:
		return say(unknown, ReasonPending, "the group has not taken it in yet")
	case f.said.Code == codeEvidence:
		return say(unknown, ReasonNoEvidence, f.said.Text)
	}
	switch p := f.pending(); p.Code {
	case codeService:
		return say(no, ReasonNoService, p.Text)
	case codeClusterIP:
		return say(no, ReasonNoClusterIP, p.Text)
	case codeSupport:
		return say(no, ReasonNotCarriedOut, p.Text)
	case codeProxy:
		return say(no, ReasonNoProxyAddress, p.Text)
	case codeProxyPort:
		return say(no, ReasonProxyPort, p.Text)
	case codePort:
		if len(f.row.Captures) == 0 {
			return say(no, ReasonNoPort, p.Text)
		}
		return say(yes, ReasonPortsMissing, p.Text+"; the others are captured")
	}
	if len(f.said.Unused) > 0 {
		return say(yes, ReasonNotAsWritten, strings.Join(f.said.Unused, "; "))
	}
	return say(yes, ReasonAccepted, fmt.Sprintf("captures %s, as number %d", places(len(f.row.Captures)), f.row.Number))
}

func places(n int) string {
	if n == 1 {
		return "1 place"
	}
	return fmt.Sprintf("%d places", n)
}

func (f *facts) programmedness() verdict {
	say := func(status metav1.ConditionStatus, reason, message string) verdict {
		return verdict{Programmed, status, reason, message}
	}
	switch {
	case f.row == nil:
		return say(no, ReasonPending, "the record does not hold it")
	case f.disabled():
		return say(no, ReasonDisabled, "it is withdrawn: enabled is false")
	case len(f.row.Captures) == 0:
		return say(no, ReasonNothingCaptured, "nothing is captured")
	case len(f.able) == 0:
		return say(no, ReasonNoNodes, "no node on which it is effective has an agent with `sock`")
	case len(f.programmed) < len(f.able):
		return say(no, ReasonNodesBehind, fmt.Sprintf("%d of %d nodes have acknowledged it; not yet %s", len(f.programmed), len(f.able), f.behind()))
	}
	return say(yes, ReasonProgrammed, fmt.Sprintf("all %d nodes have acknowledged it", len(f.able)))
}

// disabled tells whether it is withdrawn, also by the record, which may know of it a moment later than the object.
func (f *facts) disabled() bool { return f.seen.Disabled }

// fewNodes is how many nodes a message names.
const fewNodes = 5

func (f *facts) behind() string {
	var names []string
	for _, n := range f.able {
		if !slices.Contains(f.programmed, n) {
			names = append(names, string(n))
		}
	}
	if more := len(names) - fewNodes; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:fewNodes], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (f *facts) available() verdict {
	say := func(status metav1.ConditionStatus, reason, message string) verdict {
		return verdict{BackendsAvailable, status, reason, message}
	}
	local := f.row != nil && f.row.Mode == modeLocal
	switch {
	case f.row == nil:
		return say(unknown, ReasonPending, "the record does not hold it")
	case len(f.row.Captures) == 0 && f.pending().Code != codeBackend:
		return say(unknown, ReasonNothingCaptured, "nothing is captured")
	case f.backends == 0 || local && f.ready == 0:
		text := f.pending().Text
		if f.pending().Code != codeBackend {
			text = "nothing that it chooses can be used"
		}
		return say(no, ReasonNoBackend, text)
	case f.ready == 0:
		return say(yes, ReasonNoneReady, fmt.Sprintf("none of %d is ready; all of them are used", f.backends))
	case f.noneHealthy():
		return say(unknown, ReasonNoneHealthy, fmt.Sprintf("of a port none of %d listed addresses answers to those who probe; all of them are used", f.backends))
	case f.row.Mode == modeAddress:
		return say(yes, ReasonAvailable, fmt.Sprintf("%d listed", f.backends))
	}
	return say(yes, ReasonAvailable, fmt.Sprintf("%d of %d are ready", f.ready, f.backends))
}

// noneHealthy tells whether the record has of all listed addresses of a port that they do not answer (balancing §14).
func (f *facts) noneHealthy() bool {
	answers := map[fsm.Port]bool{}
	for _, v := range f.row.Verdicts {
		answers[v.Port] = answers[v.Port] || v.Healthy
	}
	bad := map[fsm.Port]int32{}
	for _, v := range f.row.Verdicts {
		if !answers[v.Port] {
			bad[v.Port]++
		}
	}
	for _, n := range bad {
		if n >= f.backends {
			return true
		}
	}
	return false
}

// Modes of policies, as package world names them.
const (
	modeLocal   = "local"
	modeAddress = "address"
)

func (f *facts) conflict() verdict {
	switch p := f.pending(); {
	case f.row == nil:
		return verdict{Conflict, unknown, ReasonPending, "the record does not hold it"}
	case p.Code == codeConflict:
		return verdict{Conflict, yes, ReasonOverruled, p.Text}
	}
	return verdict{Conflict, no, ReasonNoConflict, ""}
}
