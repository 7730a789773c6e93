// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Input is everything that Plan knows. Lists are in order of the objects' names and have each name once.
type Input struct {
	Drivers        []*world.Driver
	LoadBalancers  []*world.OutsideBalancer
	BackendGroups  []*world.BackendGroup
	Binds          []*world.Bind
	BackendRecords []*world.BackendRecord
	Pods           []*world.Pod
	Services       []*world.Service
	Nodes          []*world.Node

	Record *fsm.View
	// MayRemove tells whether the absence of an object may be acted on (design §5); nil means that none may. It is asked
	// only about what Known lists.
	MayRemove func(kind world.Kind, id world.ID) bool
	// Listed tells whether a kind was ever listed in full; nil means that none was.
	Listed func(kind world.Kind) bool
	// Away tells whether somebody cannot read a kind just now, so that what others made since is not known; nil means
	// that nobody is cut off.
	Away func(kind world.Kind) bool
	// Deleted are delete events. Only those of a live watch tell that somebody removed a finalizer by hand.
	Deleted []world.Deletion
	// Judged are the answers to Questions, by owner. One about other pods than those that are not ready now does not
	// count.
	Judged map[string]Judgement
	// Now is put on proposals for people to read. Nothing is decided by it.
	Now time.Time
}

// Result is what Plan proposes, in an order in which it may be applied, and what waits.
type Result struct {
	Proposals []fsm.Proposal
	// Waiting tells, in order of kind and name, what is not as its objects ask for, and why.
	Waiting []Explanation
	// Questions are the calls of judgePodDeregister whose answers count, in order of their owners. They stand, answered or
	// not, for as long as the same pods are not ready.
	Questions []Question
	// Counts are the numbers in the status of groups and Binds, by owner.
	Counts map[string]Counts
}

// Explanation says why something waits: a stable code for programs and a sentence for people.
type Explanation struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Code string `json:"code"`
	Text string `json:"text"`
}

// Codes of explanations.
const (
	WaitsForFormat       = "format"        // a member does not know outside load balancers yet
	WaitsForQuarantine   = "quarantine"    // the record was restored and the outside is not adopted yet
	WaitsForDriver       = "driver"        // its driver is not there
	WaitsForLoadBalancer = "load-balancer" // a load balancer is not there or not created yet
	WaitsForScope        = "scope"         // a load balancer is not for this namespace
	WaitsForUsable       = "unusable"      // a load balancer is there and cannot be had: it is being deleted, or not created in spite of attempts
	WaitsForAdoption     = "adoption"      // what another controller left is not taken over yet
	WaitsForEvidence     = "evidence"      // absent, but not surely gone
	WaitsForBackends     = "backends"      // it goes once its backends are off
	WaitsForDeregister   = "deregister"    // wanted again, once what has its place is off
	WaitsForHeir         = "heir"          // something else is about to be registered in its place
	WaitsForJudgement    = "judgement"     // a driver was asked which pods stay
	WaitsForJudge        = "judge"         // it gave no answer: the failure policy holds
	WaitsForMend         = "invalid"       // it cannot be carried out as it is
)

// Question asks a driver which of a group's pods stay registered though they are not ready (lbcf §3.12).
type Question struct {
	// Owner is the group or Bind as fsm.Binding.Owner names it.
	Owner  string
	Driver world.ID
	// Pods are those of the owner that are neither available nor deleting, in order of their names.
	Pods []PodRef
}

// PodRef names one life of a pod.
type PodRef struct {
	world.ID
	UID string
}

// Judgement is the answer to a Question.
type Judgement struct {
	// Pods are those that were asked about, in the order of the question.
	Pods []PodRef
	// Failed says that there is no answer: the driver was not reached, or said no. The failure policy holds then.
	Failed bool
	// Why says so in words.
	Why string
	// Keep are the UIDs of the pods that stay. Others than those asked about do not count.
	Keep []string
}

// Counts are the numbers in the status of a group.
type Counts struct {
	// Backends counts what is expected to be registered, Registered what is (lbcf §2.3).
	Backends   int32
	Registered int32
}
