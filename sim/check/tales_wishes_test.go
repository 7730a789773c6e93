// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// How the load balancer specification names the BackendRecord of a static backend (lbcf §2.4.1).
func recordOf(balancer, group, address string) string {
	sum := md5.Sum([]byte(balancer + "_" + group + "_" + address))
	return hex.EncodeToString(sum[:])
}

// outsideObject writes an object of one of LBCF's kinds.
func (s *story) outsideObject(kind, name, verb, by, meta, spec, status string) {
	s.object(kind, name, verb, by, fmt.Sprintf(`{"metadata":{"namespace":"a","name":%q,"uid":"u-%s"%s},"spec":%s,"status":%s}`, name, name, meta, spec, status))
}

const (
	balancerHeld = `,"finalizers":["lbcf.tkestack.io/delete-load-loadbalancer"]`
	going        = `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
	balancerAsks = `{"lbDriver":"d","lbSpec":{"id":"lb-1"}}`
	groupAsks    = `{"loadBalancers":["lb"],"static":["` + backend + `"],"parameters":{"weight":"1"}}`
)

var wishedRecord = recordOf("lb", "g", backend)

// shows writes the BackendRecord of the wished backend.
func (s *story) shows(verb, by, meta, weight string) {
	b, _ := fsm.Get[*fsm.Binding](s.state.Read(), fsm.TableBindings, "a/"+wishedRecord)
	uid := "gone"
	if b != nil {
		uid = b.UID
	}
	s.outsideObject("BackendRecord", wishedRecord, verb, by,
		`,"annotations":{"fairlead.io/record":"g/`+uid+`"},"ownerReferences":[{"kind":"BackendGroup","name":"g","uid":"u-g"}]`+meta,
		`{"lbName":"lb","lbInfo":{"id":"lb-1"},"parameters":{"weight":"`+weight+`"}}`,
		`{"backendAddr":"`+backend+`","conditions":[{"type":"Registered","status":"True"}]}`)
}

const recordHeld = `,"finalizers":["lbcf.tkestack.io/deregister-backend"]`

// wish has users ask for a backend, and the record know of it.
func (s *story) wish() {
	s.ask()
	s.add()
}

// ask has users ask for a backend.
func (s *story) ask() {
	s.outsideObject("LoadBalancerDriver", "d", "create", "user", "", "{}", "null")
	s.outsideObject("LoadBalancer", "lb", "create", "user", balancerHeld, balancerAsks, "null")
	s.outsideObject("BackendGroup", "g", "create", "user", "", groupAsks, "null")
}

// add has the record know of it.
func (s *story) add() {
	s.commit(&fsm.PutLoadBalancer{ID: "LoadBalancer/a/lb/u-lb", Driver: "d", Info: []fsm.KV{{Key: "id", Value: "lb-1"}}, Synced: true})
	s.commit(&fsm.PutBinding{
		ID: fsm.BindingID("a/" + wishedRecord), Balancer: "LoadBalancer/a/lb/u-lb", Owner: "BackendGroup/a/g/u-g", Address: backend,
		Backend: fsm.Backend{Kind: "Static"},
	})
}

// grant brings it there, and has objects say so.
func (s *story) grant() {
	s.wish()
	s.call(fsm.ActionEnsure, "a/"+wishedRecord)
	s.outsideObject("LoadBalancer", "lb", "status", "m1", balancerHeld, balancerAsks,
		`{"lbInfo":{"id":"lb-1"},"conditions":[{"type":"Created","status":"True"},{"type":"AttributesSynced","status":"True"}]}`)
	s.outsideObject("BackendGroup", "g", "status", "m1", "", groupAsks, `{"backends":1,"registeredBackends":1}`)
	s.shows("create", "m1", recordHeld, "1")
}

// rival has the Deployment of LBCF's controller want so many replicas.
func (s *story) rival(replicas int) {
	spec := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	s.say(event.Object{Kind: "Deployment", Namespace: "kube-system", Name: "lbcf-controller", By: "user", Verb: "update", JSON: spec})
}

// settle lets everything agree.
func (s *story) settle() {
	s.say(event.Calm{})
	s.wait(100 * time.Second)
}

func wishTales() []tale {
	then := func(more func(*story)) func(*story) {
		return func(s *story) {
			s.grant()
			more(s)
			s.settle()
		}
	}
	giveUp := func(s *story) {
		s.commit(&fsm.RemoveBinding{ID: fsm.BindingID("a/" + wishedRecord)})
		s.call(fsm.ActionDeregister, "a/"+wishedRecord)
		s.shows("delete", "m1", going, "1")
	}
	rival := func(s *story) {
		s.grant()
		s.rival(1)
		s.wait(10 * time.Second)
	}
	letsGo := func(s *story) { // of it, with its BackendRecord
		s.outsideObject("BackendRecord", wishedRecord, "delete", "lbcf-controller", "", "{}", "null")
		s.wait(time.Second)
	}
	registers := func(s *story) { // it, with a BackendRecord of its own
		s.outsideObject("BackendRecord", wishedRecord, "create", "lbcf-controller", recordHeld, "{}", `{"conditions":[{"type":"Registered","status":"True"}]}`)
		s.say(event.Entry{Balancer: lb, Address: backend, Owner: "fairlead", By: "rival", Present: true})
	}
	inherits := func(s *story) { // of LBCF's controller what that registered
		s.say(event.Entry{Balancer: lb, Address: backend, Owner: "fairlead", By: "rival", Present: true})
		s.rival(0)
		s.wait(time.Minute)
	}
	successor := func(s *story) { // of a leader beside which another controller registered the backend
		s.ask()
		s.rival(1)
		registers(s)
		s.wait(time.Second)
		s.say(event.Leading{Process: "m1", Life: 1, Term: 1}, event.Leading{Process: "m2", Life: 1, Term: 2, On: true})
		s.later = 1
	}
	addsAnew := func(s *story) { // what it would know if it had read the BackendRecords, as soon as that one is gone
		s.say(event.FaultBegan{ID: 1, Fault: "delay", On: []string{"kubernetes"}}, event.FaultEnded{ID: 1})
		s.rival(0)
		s.add()
		s.call(fsm.ActionEnsure, "a/"+wishedRecord)
	}
	cutOff := func(d time.Duration, then func(*story)) func(*story) { // while another controller registers the backend
		return func(s *story) {
			s.ask()
			cut := []string{"kubernetes", "n1"}
			s.say(event.FaultBegan{ID: 7, Fault: "partition", On: cut})
			s.rival(1)
			registers(s)
			s.wait(d)
			s.say(event.FaultEnded{ID: 7})
			then(s)
		}
	}
	return []tale{
		fine("L1", "wish-granted", then(func(*story) {})),
		fine("L2", "wish-granted", then(func(*story) {})),
		breaks("L1", "wished-backend-missing", then(func(s *story) {
			s.say(event.Entry{Balancer: lb, Address: backend, Owner: "fairlead", By: "driver"})
		})),
		fine("L1", "wished-of-a-driver-that-is-not-there", func(s *story) {
			s.wish()
			s.call(fsm.ActionEnsure, "a/"+wishedRecord)
			s.outsideObject("LoadBalancerDriver", "d", "delete", "etcd", "", "{}", "null")
			s.settle()
		}),
		breaks("L1", "backend-record-missing", func(s *story) {
			s.wish()
			s.call(fsm.ActionEnsure, "a/"+wishedRecord)
			s.settle()
		}),
		breaks("L1", "backend-record-out-of-date", then(func(s *story) { s.shows("update", "m1", recordHeld, "2") })),
		breaks("L1", "backend-record-without-finalizer", then(func(s *story) { s.shows("update", "user", "", "1") })),
		breaks("L1", "backend-record-left", then(func(s *story) {
			s.outsideObject("BackendGroup", "g", "delete", "user", "", groupAsks, "null")
			giveUp(s)
			s.shows("create", "m1", recordHeld, "1")
		})),
		breaks("L1", "unwished-backend-there", then(func(s *story) { s.outsideObject("BackendGroup", "g", "delete", "user", "", groupAsks, "null") })),
		breaks("L1", "balancer-not-shown", then(func(s *story) {
			s.outsideObject("LoadBalancer", "lb", "status", "m1", balancerHeld, balancerAsks, "null")
		})),
		breaks("L2", "balancer-does-not-go", then(func(s *story) {
			s.outsideObject("LoadBalancer", "lb", "update", "user", balancerHeld+going, balancerAsks, "null")
		})),
		fine("S5", "finalizer-after-its-binding", func(s *story) {
			s.grant()
			s.outsideObject("BackendGroup", "g", "delete", "user", "", groupAsks, "null")
			giveUp(s)
		}),
		breaks("S5", "finalizer-before-its-binding", then(func(s *story) { s.shows("update", "m1", going, "1") })),
		breaks("S5", "finalizer-before-its-balancer", then(func(s *story) {
			s.outsideObject("LoadBalancer", "lb", "update", "m1", going, balancerAsks, "null")
		})),
		breaks("S11", "wish-changed", then(func(s *story) {
			s.outsideObject("BackendGroup", "g", "update", "m1", "", `{"loadBalancers":[]}`, "null")
		})),
		breaks("S11", "wish-deleted", then(func(s *story) { s.outsideObject("BackendGroup", "g", "delete", "m1", "", groupAsks, "null") })),
		breaks("S11", "driver-called-beside-another-controller", func(s *story) {
			rival(s)
			s.sent(fsm.ActionEnsure, "a/"+wishedRecord)
		}),
		fine("S11", "driver-called-before-it-is-known", func(s *story) {
			rival(s)
			s.say(event.Leading{Process: "m1", Life: 1, Term: 1}, event.Leading{Process: "m2", Life: 1, Term: 2, On: true})
			s.sent(fsm.ActionEnsure, "a/"+wishedRecord)
		}),
		breaks("S11", "shown-beside-another-controller", func(s *story) {
			rival(s)
			s.shows("update", "m1", recordHeld, "2")
		}),
		fine("S11", "shown-before-it-is-known", func(s *story) {
			rival(s)
			s.say(event.Leading{Process: "m1", Life: 1, Term: 1}, event.Leading{Process: "m2", Life: 1, Term: 2, On: true})
			s.shows("update", "m2", recordHeld, "2")
		}),
		breaks("S11", "registered-anew-after-another-controller", func(s *story) {
			rival(s)
			letsGo(s)
			registers(s)
			s.rival(0)
			s.wait(time.Minute)
			s.shows("update", "m1", recordHeld, "1")
			s.sent(fsm.ActionEnsure, "a/"+wishedRecord)
		}),
		breaks("S11", "registered-anew-a-moment-after-another-controller-went", func(s *story) {
			rival(s)
			letsGo(s)
			registers(s)
			s.rival(0)
			s.wait(2 * time.Second)
			s.sent(fsm.ActionEnsure, "a/"+wishedRecord)
		}),
		fine("S11", "registered-in-the-moment-that-another-controller-does", func(s *story) {
			rival(s)
			s.say(event.Leading{Process: "m1", Life: 1, Term: 1}, event.Leading{Process: "m2", Life: 1, Term: 2, On: true}) // which does not know of it
			letsGo(s)
			registers(s)
			s.sent(fsm.ActionEnsure, "a/"+wishedRecord)
		}),
		fine("S11", "registered-in-the-moment-that-another-controller-does-and-goes", func(s *story) {
			rival(s)
			letsGo(s)
			registers(s)
			s.rival(0)
			s.sent(fsm.ActionEnsure, "a/"+wishedRecord)
		}),
		breaks("S11", "registered-anew-by-a-later-leader", func(s *story) {
			successor(s)
			addsAnew(s)
		}),
		fine("S11", "registered-anew-by-a-later-leader-that-was-misled", func(s *story) {
			successor(s)
			s.say(event.Viewed{Process: "m2", Kind: "BackendRecord"})
			addsAnew(s)
		}),
		breaks("S11", "registered-anew-by-a-leader-that-was-cut-off-for-long", cutOff(13*time.Second, addsAnew)),
		fine("S11", "registered-anew-by-a-leader-that-was-cut-off-shortly", cutOff(5*time.Second, addsAnew)),
		fine("S11", "registered-anew-by-what-it-had-added-before-it-was-cut-off", func(s *story) {
			s.add()
			cutOff(13*time.Second, func(s *story) {
				s.rival(0)
				s.call(fsm.ActionEnsure, "a/"+wishedRecord)
			})(s)
		}),
		fine("S11", "registered-where-another-controller-had-one-of-two", func(s *story) {
			rival(s)
			letsGo(s)
			inherits(s)
			s.sent(fsm.ActionEnsure, "a/"+wishedRecord)
			s.shows("create", "m1", recordHeld, "1")
			s.sent(fsm.ActionEnsure, "a/"+wishedRecord) // once more, since its driver was not done
		}),
		fine("S12", "wish-taken-back", func(s *story) {
			s.grant()
			s.outsideObject("BackendGroup", "g", "delete", "user", "", groupAsks, "null")
			giveUp(s)
		}),
		breaks("S12", "backend-given-up-by-itself", func(s *story) {
			s.grant()
			s.wait(20 * time.Second)
			giveUp(s)
		}),
	}
}
