// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// Hand writes to the record what no planner writes yet. What it is told is done in order, one command after the other,
// each until the record has answered: its commands may be repeated.
type Hand struct {
	g     *Group
	name  string
	turn  turn
	queue []order
	busy  bool
}

// order is a command, and who wants to know what became of it.
type order struct {
	command fsm.Command
	key     string
	then    func(fsm.Outcome)
}

// NewHand makes a hand, by the name that its calls have.
func (g *Group) NewHand(name string) *Hand { return &Hand{g: g, name: name, turn: turn{g: g}} }

// most bounds what a hand may still have to do. A run that gives it more is not one that a group could follow.
const most = 4096

// Do has a command committed. Key says for people what it is about; then, if not nil, is told what the record answered.
func (h *Hand) Do(key string, command fsm.Command, then func(fsm.Outcome)) {
	if len(h.queue) >= most {
		h.g.o.World.Fail(fmt.Errorf("%s: more than %d commands wait for the group", h.name, most))
		return
	}
	h.queue = append(h.queue, order{command, key, then})
	h.goOn()
}

// Waiting tells how many commands are not done yet.
func (h *Hand) Waiting() int { return len(h.queue) }

func (h *Hand) goOn() {
	if h.busy || len(h.queue) == 0 {
		return
	}
	h.busy = true
	to := h.turn.whom()
	if to == "" || !h.g.founded() {
		h.g.o.World.After(again, h.rested)
		return
	}
	o := h.queue[0]
	began := event.CallBegan{Client: h.name, Do: nameOf(o.command), Key: o.key, To: to}
	h.g.propose(began, o.command, func(outcome fsm.Outcome, err error) {
		if err != nil {
			h.turn.next()
			h.g.o.World.After(again, h.rested)
			return
		}
		h.queue = h.queue[1:]
		if o.then != nil {
			o.then(outcome)
		}
		h.rested()
	})
}

func (h *Hand) rested() {
	h.busy = false
	h.goOn()
}

// nameOf is what a command is called in events.
func nameOf(c fsm.Command) string {
	name := fmt.Sprintf("%T", c)
	return name[len("*fsm."):]
}
