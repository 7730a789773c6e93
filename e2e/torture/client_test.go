// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	server "fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/check"
)

const (
	clients = 4
	// registers are few, so that clients meet at them.
	registers = 3
	// between two calls of a client passes so much on average.
	between = 60 * time.Millisecond
	// answered is how long a client waits for an answer.
	answered = 3 * time.Second
)

// office is where clients ask: each member's API, by the certificate of that member, since nobody else may propose.
type office struct {
	members []*lab.Member
	apis    map[string]*admin.Client
	group   atomic.Pointer[lab.Status] // of which they say that they are
}

func newOffice(t *testing.T, l *lab.Lab) *office {
	t.Helper()
	o := &office{members: l.Members, apis: map[string]*admin.Client{}}
	o.group.Store(&lab.Status{})
	for _, m := range l.Members {
		source, err := pki.OpenSource(m.Files, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		api := admin.NewClient(admin.ClientOptions{Endpoint: &pki.Endpoint{Source: source, Self: o.self}, Servers: []string{m.Address + ":7443"}})
		o.apis[m.Name] = api
		t.Cleanup(api.Close)
	}
	return o
}

// self is what clients say of themselves in handshakes: the group of their members. They have no log that could be of another lineage.
func (o *office) self() pki.Membership { return pki.Membership{Group: o.group.Load().Group} }

// running are the members that may be asked.
func (o *office) running() []*lab.Member {
	var up []*lab.Member
	for _, m := range o.members {
		if m.Runs() {
			up = append(up, m)
		}
	}
	return up
}

// put writes a register by a member, and tells what is known of it.
func (o *office) put(ctx context.Context, by *lab.Member, key, value string) (told, error) {
	ctx, cancel := context.WithTimeout(ctx, answered)
	defer cancel()
	out, err := server.Forward(ctx, o.apis[by.Name].Record, fsm.Epoch(o.group.Load().Epoch), cluster.Bulk, []fsm.Proposal{{
		Actor: "torture", AtUnixMilli: time.Now().UnixMilli(), Command: check.Put(key, value),
	}})
	switch {
	case errors.Is(err, cluster.ErrNotLeader), errors.Is(err, cluster.ErrBusy), errors.Is(err, cluster.ErrStopped):
		return refused, err
	case err != nil:
		return unknown, err
	case out[0].Err() != nil:
		return refused, out[0].Err()
	}
	return done, nil
}

// get reads a register by a member.
func (o *office) get(ctx context.Context, by *lab.Member, key string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answered)
	defer cancel()
	answer, err := o.apis[by.Name].Record.Get(ctx, &fairleadv1.GetRequest{Kind: records.Registers, Name: key, Linearizable: true})
	if errors.Is(err, admin.Code("not-found")) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if n := len(answer.GetDocuments()); n != 1 {
		return "", fmt.Errorf("%d documents for one register", n)
	}
	var p records.Register
	err = json.Unmarshal([]byte(answer.GetDocuments()[0]), &p)
	return string(p.Spec), err
}

// client writes and reads registers, one call after the other.
type client struct {
	n       int
	at      *office
	history *history
	random  *rand.Rand
	puts    int
	last    int // of the members, who took a write last
}

// run makes calls until ctx ends.
func (c *client) run(ctx context.Context, keys []string) {
	for ctx.Err() == nil {
		key := keys[c.random.IntN(len(keys))]
		if c.random.IntN(2) == 0 {
			c.read(ctx, key)
		} else {
			c.write(ctx, key)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(c.random.ExpFloat64() * float64(between))):
		}
	}
}

func (c *client) read(ctx context.Context, key string) {
	up := c.at.running()
	if len(up) == 0 {
		return
	}
	by := up[c.random.IntN(len(up))]
	one := call{client: c.n, key: key, began: c.history.now(), by: by.Name, told: done}
	value, err := c.at.get(ctx, by, key)
	one.value, one.ended = value, c.history.now()
	if err != nil {
		one.told, one.why = unknown, err.Error()
	}
	c.history.add(one)
}

// write asks one member after the other until one takes the write, all were asked, or one was asked in vain. It gives what became of it.
func (c *client) write(ctx context.Context, key string) call {
	up := c.at.running()
	if len(up) == 0 {
		return call{told: refused, why: "no member runs"}
	}
	c.puts++
	one := call{client: c.n, key: key, put: true, value: fmt.Sprintf("%s-%d-%d", key, c.n, c.puts), began: c.history.now()}
	for i := range up {
		by := up[(c.last+i)%len(up)]
		how, err := c.at.put(ctx, by, key, one.value)
		one.by, one.told, one.why = by.Name, how, ""
		if err != nil {
			one.why = err.Error()
		}
		if how != refused {
			c.last += i
			break
		}
	}
	one.ended = c.history.now()
	c.history.add(one)
	return one
}

// crowd has clients at some registers until the returned function is called.
func (r *run) crowd(n int, keys []string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range clients {
		c := &client{n: i, at: r.office, history: r.history, random: r.random(n, uint64(100+i))}
		all.Go(func() { c.run(ctx, keys) })
	}
	return sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
}
