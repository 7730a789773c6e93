// SPDX-License-Identifier: Apache-2.0

package trace

import "fairlead.io/fairlead/sim/event"

// Every field of every kind of event, once. The order is the one in which they are written: a change of it is a new
// version of the format (file.go).

func (c *coder) started(e *event.Started) {
	c.text("process", &e.Process)
	c.integer("life", &e.Life)
	c.text("release", &e.Release)
	c.text("boot", &e.Boot)
}

func (c *coder) ended(e *event.Ended) {
	c.text("process", &e.Process)
	c.integer("life", &e.Life)
	c.flag("killed", &e.Killed)
	c.text("why", &e.Why)
}

func (c *coder) machineDown(e *event.MachineDown) { c.text("machine", &e.Machine) }

func (c *coder) link(e *event.Link) {
	c.text("from", &e.From)
	c.text("to", &e.To)
	c.flag("up", &e.Up)
}

func (c *coder) claim(e *event.Claim) {
	c.text("node", &e.Node)
	c.text("segment", &e.Segment)
	c.address("address", &e.Address)
	c.flag("asked", &e.Asked)
}

func (c *coder) answers(e *event.Answers) {
	c.text("pod", &e.Pod)
	c.text("node", &e.Node)
	c.address("address", &e.Address)
	c.names("ports", &e.Ports)
}

func (c *coder) asks(e *event.Asks) {
	c.text("segment", &e.Segment)
	c.address("address", &e.Address)
}

func (c *coder) carrier(e *event.Carrier) {
	c.text("node", &e.Node)
	c.text("segment", &e.Segment)
	c.flag("up", &e.Up)
	c.flag("passes", &e.Passes)
}

func (c *coder) machineUp(e *event.MachineUp) {
	c.text("machine", &e.Machine)
	c.text("boot", &e.Boot)
}

func (c *coder) wiped(e *event.Wiped) {
	c.text("machine", &e.Machine)
	c.flag("old", &e.Old)
}

func (c *coder) log(e *event.Log) {
	c.text("process", &e.Process)
	c.text("level", &e.Level)
	c.text("text", &e.Text)
	c.text("fields", &e.Fields)
}

func (c *coder) message(e *event.Message) {
	c.text("from", &e.From)
	c.text("to", &e.To)
	c.text("port", &e.Port)
	c.text("what", &e.What)
	c.integer("size", &e.Size)
	c.moment("sent", &e.Sent)
	c.moment("arrived", &e.Arrived)
}

func (c *coder) faultBegan(e *event.FaultBegan) {
	c.integer("id", &e.ID)
	c.text("fault", &e.Fault)
	c.names("on", &e.On)
	c.text("text", &e.Text)
}

func (c *coder) faultEnded(e *event.FaultEnded) {
	c.integer("id", &e.ID)
	c.text("fault", &e.Fault)
	c.names("on", &e.On)
}

func (c *coder) calm(*event.Calm) {}

func (c *coder) applied(e *event.Applied) {
	c.text("process", &e.Process)
	c.integer("life", &e.Life)
	c.number("index", &e.Index)
	c.number("term", &e.Term)
	c.blob("entry", &e.Entry)
	c.text("digest", &e.Digest)
}

func (c *coder) restored(e *event.Restored) {
	c.text("process", &e.Process)
	c.integer("life", &e.Life)
	c.number("index", &e.Index)
	c.text("digest", &e.Digest)
	c.blob("snapshot", &e.Snapshot)
}

func (c *coder) leading(e *event.Leading) {
	c.text("process", &e.Process)
	c.integer("life", &e.Life)
	c.number("term", &e.Term)
	c.flag("on", &e.On)
}

func (c *coder) contact(e *event.Contact) {
	c.text("process", &e.Process)
	c.integer("life", &e.Life)
	c.flag("quorum", &e.Quorum)
	c.number("commit", &e.Commit)
	c.number("applied", &e.Applied)
}

func (c *coder) sends(e *event.Sends) {
	c.text("process", &e.Process)
	c.integer("life", &e.Life)
	c.text("to", &e.To)
	c.number("index", &e.Index)
}

func (c *coder) holds(e *event.Holds) {
	c.text("process", &e.Process)
	c.integer("life", &e.Life)
	c.number("last", &e.Last)
}

func (c *coder) answered(e *event.Answered) {
	c.text("process", &e.Process)
	c.integer("life", &e.Life)
	c.text("from", &e.From)
	c.text("does", &e.Does)
	c.moment("asked", &e.Asked)
}

func (c *coder) judged(e *event.Judged) {
	c.text("member", &e.Member)
	c.text("leader", &e.Leader)
	c.flag("healthy", &e.Healthy)
	c.text("why", &e.Why)
	c.moment("asked", &e.Asked)
}

func (c *coder) callBegan(e *event.CallBegan) {
	c.text("client", &e.Client)
	c.integer("id", &e.ID)
	c.text("do", &e.Do)
	c.text("key", &e.Key)
	c.text("value", &e.Value)
	c.text("to", &e.To)
}

func (c *coder) callEnded(e *event.CallEnded) {
	c.text("client", &e.Client)
	c.integer("id", &e.ID)
	c.text("outcome", &e.Outcome)
	c.text("value", &e.Value)
	c.number("epoch", &e.Epoch)
	c.number("index", &e.Index)
	c.text("why", &e.Why)
}

func (c *coder) session(e *event.Session) {
	c.text("switch", &e.Switch)
	c.text("member", &e.Member)
	c.flag("up", &e.Up)
	c.text("why", &e.Why)
}

func (c *coder) forwarding(e *event.Forwarding) {
	c.text("switch", &e.Switch)
	c.prefix("prefix", &e.Prefix)
	c.addresses("next hops", &e.NextHops)
	c.paths("paths", &e.Paths)
}

func (c *coder) refused(e *event.Refused) {
	c.text("model", &e.Model)
	c.text("by", &e.By)
	c.text("what", &e.What)
	c.text("why", &e.Why)
}

func (c *coder) steered(e *event.Steered) {
	c.text("node", &e.Node)
	c.text("boot", &e.Boot)
	c.addresses("addresses", &e.Addresses)
	c.text("by", &e.By)
}

func (c *coder) foreign(e *event.Foreign) {
	c.text("where", &e.Where)
	c.text("by", &e.By)
	c.text("what", &e.What)
}

func (c *coder) acted(e *event.Acted) {
	c.text("process", &e.Process)
	c.integer("life", &e.Life)
	c.revision("revision", &e.Revision)
}

func (c *coder) speaking(e *event.Speaking) {
	c.text("process", &e.Process)
	c.integer("life", &e.Life)
	c.flag("on", &e.On)
	c.text("why", &e.Why)
}

func (c *coder) certified(e *event.Certified) {
	c.text("process", &e.Process)
	c.text("serial", &e.Serial)
	c.integer("issued", &e.Issued)
}

func (c *coder) barred(e *event.Barred) {
	c.text("process", &e.Process)
	c.integer("life", &e.Life)
	c.text("peer", &e.Peer)
	c.text("serial", &e.Serial)
}

func (c *coder) resolves(e *event.Resolves) {
	c.text("node", &e.Node)
	c.text("boot", &e.Boot)
	c.address("address", &e.Address)
	c.number16("port", &e.Port)
	c.text("protocol", &e.Protocol)
	c.flag("there", &e.There)
	c.text("verdict", &e.Way.Verdict)
	c.number32("rule", &e.Way.Rule)
	c.names("backends", &e.Way.Backends)
	c.flag("spares", &e.Way.Spares)
	c.flag("limited", &e.Limited)
	c.text("beyond", &e.Beyond.Verdict)
	c.number32("beyond by", &e.Beyond.Rule)
	c.names("beyond to", &e.Beyond.Backends)
	c.flag("beyond spares", &e.Beyond.Spares)
}

func (c *coder) spares(e *event.Spares) {
	c.text("node", &e.Node)
	c.text("boot", &e.Boot)
	c.names("pods", &e.Pods)
	c.names("own", &e.Own)
}

func (c *coder) programs(e *event.Programs) {
	c.text("node", &e.Node)
	c.text("boot", &e.Boot)
	c.flag("attached", &e.Attached)
	c.addresses("nodes", &e.Nodes)
}

func (c *coder) tunnel(e *event.Tunnel) {
	c.text("node", &e.Node)
	c.text("boot", &e.Boot)
	c.text("mac", &e.MAC)
	c.addresses("addresses", &e.Addresses)
	c.ways("ways", &e.Ways)
	c.addresses("peers", &e.Peers)
	c.text("by", &e.By)
}

func (c *coder) proxies(e *event.Proxies) {
	c.text("node", &e.Node)
	c.text("boot", &e.Boot)
	c.address("address", &e.Address)
	c.number16("port", &e.Port)
	c.text("protocol", &e.Protocol)
	c.flag("there", &e.There)
	c.names("to", &e.To)
	c.text("by", &e.By)
}

func (c *coder) drive(e *event.Drive) {
	c.text("driver", &e.Driver)
	c.integer("call", &e.Call)
	c.text("process", &e.Process)
	c.text("phase", &e.Phase)
	c.text("action", &e.Action)
	c.text("balancer", &e.Balancer)
	c.text("address", &e.Address)
	c.text("binding", &e.Binding)
	c.revision("attempt", &e.Attempt)
	c.text("result", &e.Result)
}

func (c *coder) entry(e *event.Entry) {
	c.text("balancer", &e.Balancer)
	c.text("address", &e.Address)
	c.text("owner", &e.Owner)
	c.flag("present", &e.Present)
	c.text("by", &e.By)
}

func (c *coder) object(e *event.Object) {
	c.text("kind", &e.Kind)
	c.text("namespace", &e.Namespace)
	c.text("name", &e.Name)
	c.text("uid", &e.UID)
	c.number("version", &e.Version)
	c.text("by", &e.By)
	c.text("verb", &e.Verb)
	c.text("fields", &e.Fields)
	c.blob("json", &e.JSON)
}

func (c *coder) viewed(e *event.Viewed) {
	c.text("process", &e.Process)
	c.text("kind", &e.Kind)
	c.text("how", &e.How)
}

func (c *coder) flow(e *event.Flow) {
	c.text("client", &e.Client)
	c.address("address", &e.Address)
	c.number16("port", &e.Port)
	c.text("switch", &e.Switch)
	c.address("next hop", &e.NextHop)
	c.text("node", &e.Node)
	c.text("behind", &e.Behind)
	c.text("pod", &e.Pod)
	c.flag("served", &e.Served)
	c.flag("wanted", &e.Wanted)
	c.text("why", &e.Why)
}
