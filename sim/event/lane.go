// SPDX-License-Identifier: Apache-2.0

package event

// Lane implements Event.
func (e Started) Lane() string     { return e.Process }
func (e Ended) Lane() string       { return e.Process }
func (e MachineDown) Lane() string { return e.Machine }
func (e MachineUp) Lane() string   { return e.Machine }
func (e Wiped) Lane() string       { return e.Machine }
func (e Link) Lane() string        { return e.From }
func (e Log) Lane() string         { return e.Process }
func (e Message) Lane() string     { return e.To }
func (e FaultBegan) Lane() string  { return "" }
func (e FaultEnded) Lane() string  { return "" }
func (e Calm) Lane() string        { return "" }
func (e Applied) Lane() string     { return e.Process }
func (e Restored) Lane() string    { return e.Process }
func (e Leading) Lane() string     { return e.Process }
func (e Sends) Lane() string       { return e.Process }
func (e Holds) Lane() string       { return e.Process }
func (e Answered) Lane() string    { return e.From }
func (e Judged) Lane() string      { return e.Member }
func (e Contact) Lane() string     { return e.Process }
func (e CallBegan) Lane() string   { return e.Client }
func (e CallEnded) Lane() string   { return e.Client }
func (e Session) Lane() string     { return e.Switch }
func (e Forwarding) Lane() string  { return e.Switch }
func (e Refused) Lane() string     { return e.Model }
func (e Steered) Lane() string     { return e.Node }
func (e Foreign) Lane() string     { return e.Where }
func (e Acted) Lane() string       { return e.Process }
func (e Speaking) Lane() string    { return e.Process }
func (e Certified) Lane() string   { return e.Process }
func (e Barred) Lane() string      { return e.Process }
func (e Resolves) Lane() string    { return e.Node }
func (e Programs) Lane() string    { return e.Node }
func (e Tunnel) Lane() string      { return e.Node }
func (e Proxies) Lane() string     { return e.Node }
func (e Spares) Lane() string      { return e.Node }
func (e Answers) Lane() string     { return e.Node }
func (e Asks) Lane() string        { return e.Segment }
func (e Claim) Lane() string       { return e.Node }
func (e Carrier) Lane() string     { return e.Node }
func (e Drive) Lane() string       { return e.Driver }
func (e Entry) Lane() string       { return e.Balancer }
func (e Object) Lane() string      { return "kubernetes" }
func (e Viewed) Lane() string      { return "kubernetes" }
func (e Flow) Lane() string        { return e.Client }
