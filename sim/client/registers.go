// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/event"
)

// register is a client that writes and reads registers, each of which is a policy; see check.Put.
type register struct {
	g      *Group
	name   string
	keys   []string
	every  time.Duration
	random *rand.Rand
	turn   turn
	reads  turn
	puts   int
}

// Register begins a client that writes and reads some registers from now on, at random, one call after the other with
// some time between them on average. After an error it asks another member soon; a write whose outcome is unknown is
// left alone, another value follows. Each read is of the next member: whoever it is answers by what was agreed on.
func (g *Group) Register(name string, keys []string, every time.Duration) {
	c := &register{g: g, name: name, keys: keys, every: every, random: g.random(name), turn: turn{g: g}, reads: turn{g: g}}
	c.rest()
}

// rest waits until the next call.
func (c *register) rest() {
	c.g.o.World.After(time.Duration(c.random.ExpFloat64()*float64(c.every)), c.begin)
}

func (c *register) begin() {
	key := c.keys[c.random.IntN(len(c.keys))]
	if c.random.IntN(2) == 0 {
		c.read(key)
		return
	}
	c.puts++
	c.write(key, fmt.Sprintf("%s-%d", c.name, c.puts))
}

// absent waits while there is nobody to ask.
func (c *register) absent() bool {
	if c.turn.whom() != "" && c.g.founded() {
		return false
	}
	c.rest()
	return true
}

func (c *register) write(key, value string) {
	if c.absent() {
		return
	}
	began := event.CallBegan{Client: c.name, Do: "put", Key: key, Value: value, To: c.turn.whom()}
	c.g.propose(began, check.Put(key, value), func(_ fsm.Outcome, err error) {
		switch {
		case err == nil:
			c.rest()
		case Sure(err):
			c.retry(func() { c.write(key, value) })
		default:
			c.retry(c.begin)
		}
	})
}

// retry asks somebody else.
func (c *register) retry(do func()) {
	c.turn.next()
	c.g.o.World.After(again, do)
}

func (c *register) read(key string) {
	if c.absent() {
		return
	}
	to := c.reads.whom()
	c.reads.next()
	ended := c.g.began(event.CallBegan{Client: c.name, Do: "get", Key: key, To: to})
	request := &fairleadv1.GetRequest{Kind: records.Registers, Name: key, Linearizable: true}
	answer := &fairleadv1.GetResponse{}
	c.g.call(Machine, to, fairleadv1connect.RecordServiceGetProcedure, request, answer, patience, func(err error) {
		value := ""
		if err == nil {
			value, err = valueOf(answer)
		} else if errors.Is(err, admin.Code("not-found")) {
			err = nil
		}
		if err != nil {
			ended(unknown, event.CallEnded{Why: err.Error()})
			c.retry(func() { c.read(key) })
			return
		}
		ended(done, event.CallEnded{Value: value, Epoch: answer.GetRevision().GetEpoch(), Index: answer.GetRevision().GetIndex()})
		c.rest()
	})
}

// valueOf is what a register holds.
func valueOf(answer *fairleadv1.GetResponse) (string, error) {
	if n := len(answer.GetDocuments()); n != 1 {
		return "", fmt.Errorf("%d documents for one register", n)
	}
	var p records.Register
	err := json.Unmarshal([]byte(answer.GetDocuments()[0]), &p)
	return string(p.Spec), err
}
