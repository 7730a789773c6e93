// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"fmt"

	"fairlead.io/fairlead/fsm/wire"
)

// Kind numbers are log format: append, never reuse.
type Kind uint32

// The kinds of commands. What each one does stands at its struct.
const (
	KindInitGroup             Kind = 1
	KindNewEpoch              Kind = 2
	KindEndQuarantine         Kind = 3
	KindRaiseFormat           Kind = 4
	KindPutSettings           Kind = 5
	KindCheckpoint            Kind = 6
	KindReportMember          Kind = 7
	KindReportAnnounced       Kind = 8
	KindRemoveMember          Kind = 9
	KindPutPool               Kind = 10
	KindDeletePool            Kind = 11
	KindAllocate              Kind = 12
	KindReleaseAllocation     Kind = 13
	KindFreeAllocation        Kind = 14
	KindPutService            Kind = 15
	KindDeleteService         Kind = 16
	KindSetRoute              Kind = 17
	KindFinishWithdrawal      Kind = 18
	KindPutPeer               Kind = 19
	KindDeletePeer            Kind = 20
	KindPutAdvertisement      Kind = 21
	KindDeleteAdvertisement   Kind = 22
	KindPutNode               Kind = 23
	KindDeleteNode            Kind = 24
	KindRegisterBoot          Kind = 25
	KindAcknowledge           Kind = 26
	KindSetLiveness           Kind = 27
	KindPutNodeConfig         Kind = 28
	KindDeleteNodeConfig      Kind = 29
	KindPutLoadBalancer       Kind = 30
	KindDeleteLoadBalancer    Kind = 31
	KindPutBinding            Kind = 32
	KindSetBindingAddress     Kind = 33
	KindRemoveBinding         Kind = 34
	KindDrained               Kind = 35
	KindForget                Kind = 36
	KindBeginOperation        Kind = 37
	KindFinishOperation       Kind = 38
	KindGrantLease            Kind = 39
	KindEndLease              Kind = 40
	KindPutRegister           Kind = 41
	KindDeleteRegister        Kind = 42
	KindPutHold               Kind = 43
	KindReleaseHold           Kind = 44
	KindDeleteHold            Kind = 45
	KindObserveView           Kind = 46
	KindAcceptRewind          Kind = 47
	KindPutEnrolment          Kind = 48
	KindUseEnrolment          Kind = 49
	KindDeleteEnrolment       Kind = 50
	KindPutDriver             Kind = 51
	KindDeleteDriver          Kind = 52
	KindForgetLoadBalancer    Kind = 53
	KindAdoptBinding          Kind = 54
	KindAdoptAllocation       Kind = 55
	KindPutL2Advertisement    Kind = 56
	KindDeleteL2Advertisement Kind = 57
	KindBeginDrain            Kind = 58
	KindEndDrain              Kind = 59
	KindReportSpeakers        Kind = 65
	KindStepAside             Kind = 70
	KindBeginMove             Kind = 71
	KindEndMove               Kind = 72
	KindPutPolicy             Kind = 73
	KindDeletePolicy          Kind = 74
	KindSetPolicyHealth       Kind = 75
	KindSetTunnels            Kind = 78
	KindPutTunnel             Kind = 79
	KindReleaseTunnel         Kind = 80
	KindFreeTunnel            Kind = 81
	KindReportTunnels         Kind = 82
	KindRegisterHost          Kind = 84
	KindReportHosts           Kind = 85
	KindRemoveHost            Kind = 86
	KindNumberNode            Kind = 87
	KindReportPolicySupport   Kind = 88
	KindJudgeService          Kind = 95
	KindRevoke                Kind = 100
	KindEndRevocation         Kind = 101
	KindReportSessions        Kind = 105
	KindReportAbsences        Kind = 106
)

// Command is a domain verb with every input spelled out; the proposer fills in all of it, Apply adds nothing.
type Command interface {
	Kind() Kind
	apply(tx *txn) Outcome
}

// Kinds lists an empty command of every kind, in order of its number.
func Kinds() []Command {
	return []Command{
		&InitGroup{}, &NewEpoch{}, &EndQuarantine{}, &RaiseFormat{}, &PutSettings{}, &Checkpoint{},
		&ReportMember{}, &ReportAnnounced{}, &RemoveMember{},
		&PutPool{}, &DeletePool{}, &Allocate{}, &ReleaseAllocation{}, &FreeAllocation{},
		&PutService{}, &DeleteService{}, &SetRoute{}, &FinishWithdrawal{},
		&PutPeer{}, &DeletePeer{}, &PutAdvertisement{}, &DeleteAdvertisement{},
		&PutNode{}, &DeleteNode{}, &RegisterBoot{}, &Acknowledge{}, &SetLiveness{},
		&PutNodeConfig{}, &DeleteNodeConfig{},
		&PutLoadBalancer{}, &DeleteLoadBalancer{},
		&PutBinding{}, &SetBindingAddress{}, &RemoveBinding{}, &Drained{}, &Forget{},
		&BeginOperation{}, &FinishOperation{}, &GrantLease{}, &EndLease{},
		&PutRegister{}, &DeleteRegister{}, &PutHold{}, &ReleaseHold{}, &DeleteHold{},
		&ObserveView{}, &AcceptRewind{}, &PutEnrolment{}, &UseEnrolment{}, &DeleteEnrolment{},
		&PutDriver{}, &DeleteDriver{}, &ForgetLoadBalancer{}, &AdoptBinding{},
		&AdoptAllocation{}, &PutL2Advertisement{}, &DeleteL2Advertisement{}, &BeginDrain{}, &EndDrain{},
		&ReportSpeakers{}, &StepAside{}, &BeginMove{}, &EndMove{},
		&PutPolicy{}, &DeletePolicy{}, &SetPolicyHealth{},
		&SetTunnels{}, &PutTunnel{}, &ReleaseTunnel{}, &FreeTunnel{}, &ReportTunnels{},
		&RegisterHost{}, &ReportHosts{}, &RemoveHost{},
		&NumberNode{}, &ReportPolicySupport{}, &JudgeService{},
		&Revoke{}, &EndRevocation{},
		&ReportSessions{}, &ReportAbsences{},
	}
}

// Proposal is one command with who asks and why, both kept in histories. AtUnixMilli is for people to read.
type Proposal struct {
	Actor       string
	Reason      string
	AtUnixMilli int64
	Command     Command
}

// Entry is what one Raft log entry carries: commands decided together and applied in order. Epoch is the
// proposer's: a proposal from an earlier life of the group is refused, whatever way it took.
type Entry struct {
	Epoch Epoch  `pb:"1"`
	Items []Item `pb:"2"`
}

// Item is one command of an Entry.
type Item struct {
	Kind        Kind   `pb:"1"`
	Actor       string `pb:"2"`
	Reason      string `pb:"3"`
	AtUnixMilli int64  `pb:"4"`
	Body        []byte `pb:"5"`
}

// MaxItems bounds the commands of one entry, and with them the longest pause that one entry can cause.
const MaxItems = 1024

// EncodeEntry gives the bytes of a log entry. It fails on more than MaxItems proposals, on a command that is not Fit, and with ErrTooLarge
// on more than MaxEntry bytes.
func EncodeEntry(epoch Epoch, proposals []Proposal) ([]byte, error) {
	return encodeEntry(epoch, proposals, func(Command) func(string) bool { return nil })
}

// encodeEntry is EncodeEntry, but texts of a command that are known may be of any length.
func encodeEntry(epoch Epoch, proposals []Proposal, known func(Command) func(text string) bool) ([]byte, error) {
	if len(proposals) > MaxItems {
		return nil, fmt.Errorf("encode entry: %d commands, at most %d fit", len(proposals), MaxItems)
	}
	e := Entry{Epoch: epoch}
	for i := range proposals {
		item, err := proposals[i].item(known(proposals[i].Command))
		if err != nil {
			return nil, err
		}
		e.Items = append(e.Items, item)
	}
	data, err := wire.Append(nil, &e)
	if err == nil && len(data) > MaxEntry {
		err = fmt.Errorf("encode entry: %d commands of %d bytes, at most %d fit: %w", len(proposals), len(data), MaxEntry, ErrTooLarge)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// DecodeEntry is the inverse of EncodeEntry. It refuses kinds and fields that this release does not know.
func DecodeEntry(data []byte) (Epoch, []Proposal, error) {
	var e Entry
	if err := wire.Decode(data, &e); err != nil {
		return 0, nil, fmt.Errorf("decode entry: %w", err)
	}
	out := make([]Proposal, 0, len(e.Items))
	for i := range e.Items {
		c, err := e.Items[i].command()
		if err != nil {
			return 0, nil, err
		}
		it := e.Items[i]
		out = append(out, Proposal{Actor: it.Actor, Reason: it.Reason, AtUnixMilli: it.AtUnixMilli, Command: c})
	}
	return e.Epoch, out, nil
}

func (it *Item) command() (Command, error) {
	c := newCommand(it.Kind)
	if c == nil {
		return nil, fmt.Errorf("decode command: kind %d is unknown to this release; upgrade this member", it.Kind)
	}
	if err := wire.Decode(it.Body, c); err != nil {
		return nil, fmt.Errorf("decode %T: %w", c, err)
	}
	return c, nil
}
