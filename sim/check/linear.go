// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"fairlead.io/fairlead/fsm"
)

// Put is the command by which clients write a register: a policy that nobody plans, whose spec is the value. They read
// it by RecordService.Get of kind "registers" with Linearizable set, where one that is not found has the value "".
// A put is done when its outcome is acceptance; a get when it was answered. Both go through a quorum.
func Put(key, value string) fsm.Command {
	return &fsm.PutRegister{ID: fsm.RegisterID(key), UID: registers, Spec: []byte(value)}
}

// registers is the UID of policies that are registers.
const registers = "register"

// holds tells whether an entry puts a value into a register.
func holds(data []byte, key, value string) bool {
	_, proposals, err := fsm.DecodeEntry(data)
	return err == nil && slices.ContainsFunc(proposals, func(p fsm.Proposal) bool {
		c, ok := p.Command.(*fsm.PutRegister)
		return ok && string(c.ID) == key && c.UID == registers && string(c.Spec) == value
	})
}

// patience bounds the search for an order in real time. What is not decided by then counts as linearizable: the search
// must not depend on how fast a machine is in any other way.
const patience = 20 * time.Second

// RegisterCall is what a client asked of a register: to put a value, or to get it.
type RegisterCall struct {
	Put   bool
	Value string // to put
}

// RegisterModel is how a register answers, whose input is a RegisterCall and whose output is the value that a get returned, a string.
func RegisterModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			if op := input.(RegisterCall); op.Put {
				return true, op.Value
			}
			return output.(string) == state.(string), state
		},
	}
}

func keysOf(history []*call) (keys []string) {
	for _, c := range history {
		keys = append(keys, c.key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

type unordered struct {
	text   string
	events []uint64
}

// linearizable tells why no order of the calls about a register explains what they returned; nil if one does. A put
// whose outcome is unknown may take effect at any time after it began, or never; one that was refused never does.
func linearizable(key string, history []*call) *unordered {
	var ops []porcupine.Operation
	clients := map[string]int{}
	bad := &unordered{text: "no order of reads and writes explains what clients were told"}
	for _, c := range history {
		done := c.answered && c.Outcome == "ok"
		if c.key != key || c.answered && c.Outcome == "refused" || c.do == "get" && !done {
			continue
		}
		op := porcupine.Operation{
			ClientId: clientOf(clients, c), Input: RegisterCall{c.do == "put", c.value}, Call: int64(c.began.Number),
			Output: c.Value, Return: math.MaxInt64,
		}
		if done {
			op.Return = int64(c.ended.Number)
			bad.events = append(bad.events, c.began.Number, c.ended.Number)
		}
		ops = append(ops, op)
	}
	if len(ops) == 0 || porcupine.CheckOperationsTimeout(RegisterModel(), ops, patience) != porcupine.Illegal {
		return nil
	}
	return bad
}

// clientOf numbers clients. A call that never ended is on its own from then on: its client goes on without it.
func clientOf(clients map[string]int, c *call) int {
	name := c.Client
	if !c.answered || c.Outcome != "ok" {
		name = fmt.Sprint("call ", c.began.Number)
	}
	if _, ok := clients[name]; !ok {
		clients[name] = len(clients)
	}
	return clients[name]
}
