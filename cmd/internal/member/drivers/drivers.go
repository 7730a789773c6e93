// SPDX-License-Identifier: Apache-2.0

package drivers

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/pool"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
)

// Objects is what this member knows of Kubernetes, as Kubernetes writes it, without kind and apiVersion. Its methods answer
// from memory, and may be called from any goroutine.
type Objects interface {
	// Pod gives the pod of that name if it is the one of that UID.
	Pod(namespace, name, uid string) (json.RawMessage, bool)
	// Unavailable tells why a pod that is there gets no address now; empty if it gets one.
	Unavailable(namespace, name string) string
	Service(namespace, name string) (json.RawMessage, bool)
	// NodeAddresses gives status.addresses of a Node.
	NodeAddresses(name string) (json.RawMessage, bool)
}

// Pool has the clients of drivers, as *pool.Pool has them.
type Pool interface {
	For(pool.Settings) (*driver.Client, error)
}

// Drivers finds drivers in the record. Its methods may be called from any goroutine.
type Drivers struct {
	record  fsm.Reader
	pool    Pool
	objects Objects
	// rehearsed takes the place of record where it is set.
	rehearsed atomic.Pointer[fsm.View]
}

// New makes a Drivers. Objects are nil where no API server is read: no driver can be told of pods and Services then. The clock of the pool's clients must be the one of the leader's deadlines.
func New(record fsm.Reader, p Pool, objects Objects) *Drivers {
	if objects == nil {
		objects = noObjects{}
	}
	return &Drivers{record: record, pool: p, objects: objects}
}

// noObjects is what a member knows of Kubernetes that reads no API server.
type noObjects struct{}

func (noObjects) Pod(string, string, string) (json.RawMessage, bool) { return nil, false }
func (noObjects) Unavailable(string, string) string                  { return "" }
func (noObjects) Service(string, string) (json.RawMessage, bool)     { return nil, false }
func (noObjects) NodeAddresses(string) (json.RawMessage, bool)       { return nil, false }

// Rehearse has drivers be those of another record from now on, that of a dry run.
func (d *Drivers) Rehearse(v *fsm.View) { d.rehearsed.Store(v) }

func (d *Drivers) row(name string) (*fsm.Driver, bool) {
	v := d.rehearsed.Load()
	if v == nil {
		v = d.record.Read()
	}
	return fsm.Get[*fsm.Driver](v, fsm.TableDrivers, name)
}

// Find gives the driver of a name, as the record has it now. It is a function of leader.Config.
func (d *Drivers) Find(name string) (leader.Driver, bool) {
	row, ok := d.row(name)
	if !ok {
		return nil, false
	}
	client, err := d.pool.For(Settings(row))
	if err != nil {
		return unusable{fmt.Errorf("settings of the driver, to be mended in its LoadBalancerDriver: %w", err)}, true
	}
	return &one{client: client, settle: row.Settle, objects: d.objects}, true
}

// Settings are what a row of the record says of its driver's calls. Whoever shares a pool makes them here, lest clients
// are made anew at every turn.
func Settings(row *fsm.Driver) pool.Settings {
	s := pool.Settings{
		Name: row.Name, URL: row.URL, AcceptsDryRun: row.AcceptsDryRun, Concurrent: int(row.Concurrent), Secret: row.Secret,
		Timeouts: make(map[webhook.Name]time.Duration, len(row.Timeouts)),
	}
	for _, t := range row.Timeouts {
		s.Timeouts[webhook.Name(t.Webhook)] = t.Timeout
	}
	return s
}

// unusable is a driver that nobody can call.
type unusable struct{ err error }

func (unusable) Terms(fsm.Action) leader.Terms { return leader.Terms{} }

func (u unusable) Call(context.Context, fsm.Action, leader.Request) leader.Answer {
	return notSent(u.err.Error())
}

// notSent is the answer of a call that did not go out.
func notSent(why string) leader.Answer {
	return leader.Answer{Result: fsm.ResultFailed, Message: "not sent: " + why}
}
