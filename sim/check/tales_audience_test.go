// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

func audienceTales() []tale {
	left := func(s *story) {
		s.object("BGPAdvertisement", "all", "create", "user", `{"spec":{"peers":["another"]}}`)
	}
	// of MetalLB's, with nobody but nodes to tell of it
	foreign := func(s *story) {
		s.commit(&fsm.Allocate{Address: addr(vip1), Service: "a/web", Pool: "p", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 80}}})
		s.object("IPAddressPool", "p", "update", "user", `{"apiVersion":"metallb.io/v1beta1"}`)
		s.object("L2Advertisement", "lan", "create", "user", `{"spec":{}}`)
	}
	tell := func(ads func(*story), gone bool) func(*story) {
		return func(s *story) {
			s.publish("web", vip1, "n1")
			ads(s)
			if gone {
				s.forward(vip1)
			}
			s.say(event.Calm{})
			s.wait(70 * time.Second)
		}
	}
	return []tale{
		breaks("L1", "sent-to-a-switch-that-advertisements-leave-out", tell(left, false)),
		fine("L1", "not-sent-to-a-switch-that-advertisements-leave-out", tell(left, true)),
		breaks("L1", "sent-of-a-pool-that-nothing-advertises", tell(foreign, false)),
		fine("L1", "not-sent-of-a-pool-that-nothing-advertises", tell(foreign, true)),
		breaks("L1", "not-sent-of-a-pool-of-ours-that-nothing-advertises", tell(func(s *story) {
			s.object("L2Advertisement", "lan", "create", "user", `{"spec":{}}`)
		}, true)),
		breaks("L1", "not-sent-of-a-pool-that-is-advertised", tell(func(s *story) {
			foreign(s)
			s.object("BGPAdvertisement", "p", "create", "user", `{"spec":{"ipAddressPools":["p"],"peers":["sw"]}}`)
		}, true)),
	}
}
