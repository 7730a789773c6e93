// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"

	"fairlead.io/fairlead/sim/event"
)

// Kinds of events by number, as digests and traces hold them. New ones come last.
const (
	kindStarted uint8 = iota + 1
	kindEnded
	kindMachineDown
	kindMachineUp
	kindWiped
	kindLog
	kindMessage
	kindFaultBegan
	kindFaultEnded
	kindCalm
	kindApplied
	kindRestored
	kindLeading
	kindContact
	kindCallBegan
	kindCallEnded
	kindSession
	kindForwarding
	kindRefused
	kindSteered
	kindForeign
	kindActed
	kindDrive
	kindEntry
	kindObject
	kindViewed
	kindFlow
	kindLink
	kindClaim
	kindCarrier
	kindAsks
	kindResolves
	kindPrograms
	kindTunnel
	kindProxies
	kindAnswers
	kindSpares
	kindSpeaking
	kindCertified
	kindBarred
	kindSends
	kindJudged
	kindHolds
	kindAnswered
)

// kind is what is known about a kind of event beside its fields.
type kind struct {
	name string // for people and filters
	// lane is the field that event.Event.Lane answers; "" where it has none, "=kubernetes" where it is fixed.
	lane string
	// many says that most of a run is made of these: they are left out first where a trace is too large.
	many bool
	read func(*coder) event.Event
	// words is the event in a sentence (sentence.go).
	words string
}

// kinds has the number of a kind as its index.
var kinds = [...]kind{
	kindStarted: {"started", "process", false, reading((*coder).started),
		`{process} starts life {life}[, release {release}][, boot {boot}]`},
	kindEnded: {"ended", "process", false, reading((*coder).ended),
		`{process} {killed?is killed in|ends} life {life}[: {why}]`},
	kindMachineDown: {"machine-down", "machine", false, reading((*coder).machineDown),
		`{machine} loses power`},
	kindMachineUp: {"machine-up", "machine", false, reading((*coder).machineUp),
		`{machine} has power[, boot {boot}]`},
	kindWiped: {"wiped", "machine", false, reading((*coder).wiped),
		`the disk of {machine} is wiped`},
	kindLog: {"log", "process", true, reading((*coder).log),
		`{process} {level}: {text}[ {fields}]`},
	kindMessage: {"message", "to", true, reading((*coder).message),
		`{from} -> {to} {port} {what}[ {size} B]{arrived?|, lost}`},
	kindFaultBegan: {"fault-began", "", false, reading((*coder).faultBegan),
		`fault {id} begins: {fault}[ on {on}][, {text}]`},
	kindFaultEnded: {"fault-ended", "", false, reading((*coder).faultEnded),
		`fault {id} ends: {fault}[ on {on}]`},
	kindCalm: {"calm", "", false, reading((*coder).calm),
		`calm: all faults have ended`},
	kindApplied: {"applied", "process", true, reading((*coder).applied),
		`{process} applies {index}[ of term {term}]`},
	kindRestored: {"restored", "process", false, reading((*coder).restored),
		`{process} takes a snapshot at {index}`},
	kindLeading: {"leading", "process", false, reading((*coder).leading),
		`{process} {on?leads|stops leading} term {term}`},
	kindContact: {"contact", "process", false, reading((*coder).contact),
		`{process} {quorum?is in touch with|has lost} the quorum, commit {commit}, applied {applied}`},
	kindCallBegan: {"call-began", "client", true, reading((*coder).callBegan),
		`{client} asks {to}: {do} {key}[ = {value}] (call {id})`},
	kindCallEnded: {"call-ended", "client", true, reading((*coder).callEnded),
		`{client} is told {outcome}[: {value}][ at {index}][, {why}] (call {id})`},
	kindSession: {"session", "switch", false, reading((*coder).session),
		`session {switch} - {member} {up?is up|is down}[: {why}]`},
	kindForwarding: {"forwarding", "switch", false, reading((*coder).forwarding),
		`{switch} forwards {prefix} to {next hops?|nobody}{next hops}`},
	kindRefused: {"refused", "model", false, reading((*coder).refused),
		`{model} refuses {what} of {by}: {why}`},
	kindSteered: {"steered", "node", false, reading((*coder).steered),
		`{node} steers {addresses?|nothing}{addresses}[, by {by}]`},
	kindForeign: {"foreign", "where", false, reading((*coder).foreign),
		`{by} changes what is not ours in {where}: {what}`},
	kindActed: {"acted", "process", true, reading((*coder).acted),
		`{process} carries out {revision}`},
	kindDrive: {"drive", "driver", false, reading((*coder).drive),
		`{driver} call {call} {phase}: {action}[ {address}][ on {balancer}][ for {process}][: {result}]`},
	kindEntry: {"entry", "balancer", false, reading((*coder).entry),
		`{balancer} {present?has|loses} {address} ({owner}, by {by})`},
	kindObject: {"object", "=kubernetes", true, reading((*coder).object),
		`{by}: {verb} {kind} [{namespace}/]{name} at {version}[: {fields}]`},
	kindViewed: {"viewed", "=kubernetes", true, reading((*coder).viewed),
		`{process} sees {kind}: {how}`},
	kindFlow: {"flow", "client", true, reading((*coder).flow),
		`{client} to {address}:{port} via {switch}[ and {node}]: {served?served|not served}[ by {pod}][, {why}]{wanted?|, not wanted}`},
	kindLink: {"link", "from", false, reading((*coder).link),
		`{from} {up?reaches|is cut off from} {to}`},
	kindClaim: {"claim", "node", true, reading((*coder).claim),
		`{node} {asked?answers for|announces} {address} on {segment}`},
	kindAsks: {"asks", "segment", true, reading((*coder).asks),
		`{segment} asks for {address}`},
	kindResolves: {"resolves", "node", true, reading((*coder).resolves),
		`{node} gives calls to {address}:{port}/{protocol} {there?|nothing of its own}{verdict}[ {backends}][ by {rule}][, beyond the limit {beyond}]`},
	kindPrograms: {"programs", "node", false, reading((*coder).programs),
		`{node} {attached?has programs at its sockets|has no programs at its sockets}[, nodes are at {nodes}]`},
	kindTunnel: {"tunnel", "node", true, reading((*coder).tunnel),
		`the tunnel of {node}[ takes packets for {addresses}][ from {peers}][, sends {ways}][, by {by}]`},
	kindProxies: {"proxies", "node", true, reading((*coder).proxies),
		`{node} {there?leads|leads no more} {address}:{port}/{protocol}[ to {to}][ by {by}]`},
	kindAnswers: {"answers", "node", true, reading((*coder).answers),
		`{pod} at {address} takes connections at {ports?|no port}{ports}`},
	kindSpares: {"spares", "node", true, reading((*coder).spares),
		`{node} has pods {pods?|none}{pods}[, and leaves alone {own}]`},
	kindSpeaking: {"speaking", "process", false, reading((*coder).speaking),
		`{process} {on?has a speaker|has no speaker any more}[: {why}]`},
	kindCertified: {"certified", "process", false, reading((*coder).certified),
		`{process} has the certificate {serial}`},
	kindBarred: {"barred", "process", false, reading((*coder).barred),
		`{process} refuses {peer}, whose certificate {serial} was revoked`},
	kindSends: {"sends", "process", false, reading((*coder).sends),
		`{process} sends {to} a snapshot up to {index}`},
	kindJudged: {"judged", "member", true, reading((*coder).judged),
		`{leader} says that {member} {healthy?is healthy|is not healthy}[: {why}]`},
	kindHolds: {"holds", "process", false, reading((*coder).holds),
		`{process} has a folder that goes up to {last}`},
	kindAnswered: {"answered", "from", false, reading((*coder).answered),
		`{from} {does} {process}`},
	kindCarrier: {"carrier", "node", false, reading((*coder).carrier),
		`{node} {up?has a carrier on|has no carrier on} {segment}{passes?|, and nothing arrives}`},
}

// reading makes a reader of one kind of event from the list of its fields.
func reading[E event.Event](fields func(*coder, *E)) func(*coder) event.Event {
	return func(c *coder) event.Event {
		var e E
		fields(c, &e)
		return e
	}
}

// show has the coder see the kind of an event and then its fields. An event that is no part of the vocabulary is a
// mistake in the program. There is one case for each kind, spelled out so that no event escapes to the heap.
func (c *coder) show(e event.Event) {
	switch e := e.(type) {
	case event.Started:
		c.begin(kindStarted)
		c.started(&e)
	case event.Ended:
		c.begin(kindEnded)
		c.ended(&e)
	case event.MachineDown:
		c.begin(kindMachineDown)
		c.machineDown(&e)
	case event.MachineUp:
		c.begin(kindMachineUp)
		c.machineUp(&e)
	case event.Link:
		c.begin(kindLink)
		c.link(&e)
	case event.Claim:
		c.begin(kindClaim)
		c.claim(&e)
	case event.Spares:
		c.begin(kindSpares)
		c.spares(&e)
	case event.Answers:
		c.begin(kindAnswers)
		c.answers(&e)
	case event.Asks:
		c.begin(kindAsks)
		c.asks(&e)
	case event.Carrier:
		c.begin(kindCarrier)
		c.carrier(&e)
	case event.Wiped:
		c.begin(kindWiped)
		c.wiped(&e)
	case event.Log:
		c.begin(kindLog)
		c.log(&e)
	case event.Message:
		c.begin(kindMessage)
		c.message(&e)
	case event.FaultBegan:
		c.begin(kindFaultBegan)
		c.faultBegan(&e)
	case event.FaultEnded:
		c.begin(kindFaultEnded)
		c.faultEnded(&e)
	case event.Calm:
		c.begin(kindCalm)
		c.calm(&e)
	case event.Applied:
		c.begin(kindApplied)
		c.applied(&e)
	case event.Restored:
		c.begin(kindRestored)
		c.restored(&e)
	case event.Leading:
		c.begin(kindLeading)
		c.leading(&e)
	case event.Contact:
		c.begin(kindContact)
		c.contact(&e)
	case event.Sends:
		c.begin(kindSends)
		c.sends(&e)
	case event.Holds:
		c.begin(kindHolds)
		c.holds(&e)
	case event.Answered:
		c.begin(kindAnswered)
		c.answered(&e)
	case event.Judged:
		c.begin(kindJudged)
		c.judged(&e)
	case event.CallBegan:
		c.begin(kindCallBegan)
		c.callBegan(&e)
	case event.CallEnded:
		c.begin(kindCallEnded)
		c.callEnded(&e)
	case event.Session:
		c.begin(kindSession)
		c.session(&e)
	case event.Forwarding:
		c.begin(kindForwarding)
		c.forwarding(&e)
	case event.Refused:
		c.begin(kindRefused)
		c.refused(&e)
	case event.Steered:
		c.begin(kindSteered)
		c.steered(&e)
	case event.Foreign:
		c.begin(kindForeign)
		c.foreign(&e)
	case event.Acted:
		c.begin(kindActed)
		c.acted(&e)
	case event.Resolves:
		c.begin(kindResolves)
		c.resolves(&e)
	case event.Programs:
		c.begin(kindPrograms)
		c.programs(&e)
	case event.Tunnel:
		c.begin(kindTunnel)
		c.tunnel(&e)
	case event.Proxies:
		c.begin(kindProxies)
		c.proxies(&e)
	case event.Drive:
		c.begin(kindDrive)
		c.drive(&e)
	case event.Entry:
		c.begin(kindEntry)
		c.entry(&e)
	case event.Speaking:
		c.begin(kindSpeaking)
		c.speaking(&e)
	case event.Certified:
		c.begin(kindCertified)
		c.certified(&e)
	case event.Barred:
		c.begin(kindBarred)
		c.barred(&e)
	case event.Object:
		c.begin(kindObject)
		c.object(&e)
	case event.Viewed:
		c.begin(kindViewed)
		c.viewed(&e)
	case event.Flow:
		c.begin(kindFlow)
		c.flow(&e)
	default:
		panic(fmt.Sprintf("trace: event of unknown kind %T: kinds.go has to know it", e))
	}
}

// begin writes the kind of the event whose fields follow.
func (c *coder) begin(kind uint8) {
	if c.mode == describe {
		c.kind = kind
		return
	}
	c.out = append(c.out, kind)
}

// Describe lists the fields of an event, and how its kind is called.
func Describe(e event.Stamped) (kind string, fields []Field) {
	c := coder{mode: describe, at: e.At}
	c.show(e.Event)
	return kinds[c.kind].name, c.described
}

// Kinds lists the names of all kinds of events, as filters take them.
func Kinds() []string {
	var names []string
	for _, k := range kinds[1:] {
		names = append(names, k.name)
	}
	return names
}
