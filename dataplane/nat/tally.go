// SPDX-License-Identifier: Apache-2.0

package nat

// Chains where packets are turned away and counted, one for each reason, whatever the number of Services.
const (
	chainNoPort     = "refuse-port"     // no Service has the port
	chainNoEndpoint = "refuse-endpoint" // the Service has no endpoint
	chainLost       = "refuse-lost"     // the endpoint that it was to have left meanwhile
	chainNoLocal    = "drop-local"      // none of the endpoints is on this node, and the policy is Local
	chainSource     = "drop-source"     // the client is in none of the source ranges
)

// reasons are the names that metrics have for these chains.
var reasons = map[string]string{
	chainNoPort: "no-port", chainNoEndpoint: "no-endpoint", chainLost: "endpoint-left", chainNoLocal: "no-local-endpoint", chainSource: "source-range",
}

// away is how packets are turned away. Only those pay for being counted.
func away() []Chain {
	is := func(protocol byte, then Op) Rule {
		return Rule{Load{Protocol, 0}, Match{Register: 0, Value: string([]byte{protocol})}, Tally{}, then}
	}
	refuse := func(name string) Chain {
		return newChain(name, is(protocolTCP, Refuse{Reset: true}), is(protocolUDP, Refuse{}), is(protocolSCTP, Refuse{}))
	}
	drop := func(name string) Chain { return newChain(name, Rule{Tally{}, Verdict{VerdictDrop}}) }
	return []Chain{refuse(chainNoPort), refuse(chainNoEndpoint), refuse(chainLost), drop(chainNoLocal), drop(chainSource)}
}
