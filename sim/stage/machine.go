// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/disk"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/fact"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/kernel"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/segment"
	"fairlead.io/fairlead/sim/vm"
)

// machine is one computer. Its disk and its clock outlive its processes; it runs one of them at a time.
type machine struct {
	name    string
	address netip.Addr
	disk    *disk.Disk
	clock   *vm.Clock
	begin   func(*machine) start.Process
	program *vm.Module
	release string
	back    bool // it starts as the older release for now, whatever its release
	rescues int  // so many of its next processes make a group of one of its folder, and end
	dark    bool // it has no power
	gains   int  // of its clock, in parts per million
	held    int  // by how many its process is kept from running
	boots   int
	life    int
	pause   pause
	process *vm.Process
	socket  *network.Socket
	kernel  *kernel.Kernel // nil but on nodes
	// certificate is what its next process shows; nil where none is revoked.
	certificate *start.Certificate
	// segments are its links, nil where there are none.
	segments *segment.Machine
}

func (s *Stage) add(name string, address netip.Addr, begin func(*machine) start.Process) {
	drift := 0
	if most := s.options.DriftPPM; most > 0 {
		drift = s.World.Random("drift").IntN(2*most+1) - most
	}
	offset := time.Duration(s.World.Random("offset").Int64N(int64(time.Second)))
	s.machines[name] = &machine{
		name: name, address: address, disk: disk.New(), clock: vm.NewClock(s.World, offset, drift), begin: begin, gains: drift,
		program: s.options.Program, release: cmp.Or(s.options.Release, start.Current), boots: 1,
	}
	s.Network.Alias(address.String(), name)
	if s.options.Certificates {
		s.Issue(name, 0)
	}
}

// Issue gives a machine another certificate, which its processes show from the next one on. It says that it was issued now, or at another
// time if that is later, by a clock that is right, and as whoever signs dates them back.
func (s *Stage) Issue(name string, after int64) {
	s.issued++
	now := vm.Epoch.Add(s.World.Now() - pki.Backdate).Unix()
	s.machine(name).certificate = &start.Certificate{Serial: fmt.Sprintf("%x", firstSerial+s.issued), Issued: max(now, after)}
}

// firstSerial is before all serial numbers, which have no zeros in front.
const firstSerial = 0xa0

// Certificate is the serial number of what a machine's next process shows; empty where there are none.
func (s *Stage) Certificate(name string) string {
	if c := s.machine(name).certificate; c != nil {
		return c.Serial
	}
	return ""
}

func (s *Stage) machine(name string) *machine {
	m := s.machines[name]
	if m == nil {
		panic(fmt.Sprintf("no machine %s in this world", name))
	}
	return m
}

// boot is the id of the machine's present boot.
func (m *machine) boot() string {
	if m.kernel != nil {
		return m.kernel.Boot()
	}
	return fmt.Sprintf("%s-boot-%d", m.name, m.boots)
}

// mutant is the planted bug of the machine's next process: former releases had others.
func (s *Stage) mutant(m *machine) string {
	if m.plays() == start.Older {
		return ""
	}
	return s.options.Mutant
}

// member is what a member is told when it starts.
func (s *Stage) member(m *machine) start.Process {
	role := "member"
	if m.rescues > 0 {
		role = "recover"
	}
	return start.Process{
		Role: role, Name: m.name, Release: m.plays(), Members: s.members, Token: "simulated", Nodes: s.named(), Mutant: s.mutant(m),
		Debug: s.options.Debug, Address: m.address, ASN: s.asn(), Kubernetes: true, Drivers: s.drivers(), Shown: s.options.Outside > 0, Tuning: Tuning(),
		Raft: s.options.Raft, Sockets: s.options.Sockets, Certificate: m.certificate,
	}
}

// drivers are all drivers, as members are told of them.
func (s *Stage) drivers() (all []start.Outside) {
	for _, d := range s.balancers {
		all = append(all, start.Outside{Name: d.Name(), Known: d.Known()})
	}
	return all
}

// agent is what an agent is told when it starts.
func (s *Stage) agent(m *machine) start.Process {
	p := start.Process{
		Role: "agent", Name: m.name, Release: m.plays(), Members: s.members, Mutant: s.mutant(m),
		Debug: s.options.Debug, Address: m.address, Sockets: s.options.Sockets, Certificate: m.certificate,
	}
	if m.segments != nil {
		p.Segments, p.Uptime = true, m.clock.Monotonic()
	}
	return p
}

// plays is the release of the machine's next process.
func (m *machine) plays() string {
	if m.back {
		return start.Older
	}
	return m.release
}

// Running tells whether the process of a machine is alive.
func (s *Stage) Running(name string) bool { return s.machine(name).process != nil }

// Start begins a life of a machine's process, unless it has one, is held, or the machine has no power.
func (s *Stage) Start(name string) {
	m := s.machine(name)
	if m.process != nil || m.dark || m.held > 0 {
		return
	}
	m.life++
	life := m.life
	s.World.Publish(event.Started{Process: name, Life: life, Release: m.plays(), Boot: m.boot()})
	if c := m.certificate; c != nil {
		s.World.Publish(event.Certified{Process: name, Serial: c.Serial, Issued: int(c.Issued)})
	}
	// Frames arrive only while the world goes on, when the process is there.
	m.socket = s.Network.Attach(name, func(frame []byte) { m.process.Deliver(frame) })
	m.process = vm.Start(vm.Spec{
		World: s.World, Name: name, Life: life, Module: m.program, Args: []string{"simguest", m.begin(m).Argument()},
		Disk: m.disk, Clock: m.clock, Wire: m.socket, Usage: s.options.Usage,
		Observe: func(kind uint32, data []byte) { s.observe(m, fact.Kind(kind), data) },
		Line:    func(_ int, line string) { s.line(name, line) },
		Ended:   func(err error) { s.ended(m, life, err) },
	})
}

// Kill ends a process as kill -9 does: the machine goes on and resets its connections.
func (s *Stage) Kill(name string) {
	if p := s.machine(name).process; p != nil {
		p.Kill()
	}
}

// KillSpeaker ends the process of a member's BGP speaker as kill -9 does, and nothing else. A member that stands still has lost it when it goes on.
func (s *Stage) KillSpeaker(member string) { s.Network.Dial(member, member, start.SpeakerPort, nil) }

// Fuse kills a process at the n-th call to its kernel from now, in the middle of what it is doing.
func (s *Stage) Fuse(name string, n int) {
	if p := s.machine(name).process; p != nil {
		p.Fuse(n)
	}
}

func (s *Stage) ended(m *machine, life int, err error) {
	m.socket.Detach()
	m.process = nil
	why, killed := "", errors.Is(err, vm.ErrKilled)
	if err != nil {
		why = err.Error()
	} else {
		m.rescues-- // nothing else ends without an error
	}
	s.World.Publish(event.Ended{Process: m.name, Life: life, Killed: killed, Why: why})
	if !killed {
		s.World.After(m.pause.next(), func() { s.Start(m.name) })
	}
}

// pause is how long a service manager waits before it starts again what ended by itself.
type pause time.Duration

// next doubles it, from a second to sixteen.
func (p *pause) next() time.Duration {
	*p = min(max(2**p, pause(time.Second)), pause(16*time.Second))
	return time.Duration(*p)
}

// PowerOff takes a machine's power: what was not synced may be lost, and nobody is told.
func (s *Stage) PowerOff(name string) {
	m := s.machine(name)
	if m.dark {
		return
	}
	m.dark = true
	s.Network.Power(name, false)
	s.Kill(name)
	if m.kernel != nil {
		m.kernel.Down()
	}
	if m.segments != nil {
		m.segments.Power(false)
	}
	m.disk.Crash(s.World.Random("crash/" + name))
	m.disk.Empty(start.RunDir)
	s.World.Publish(event.MachineDown{Machine: name})
}

// PowerOn gives it back: the machine boots, and its process starts.
func (s *Stage) PowerOn(name string) {
	m := s.machine(name)
	if !m.dark {
		return
	}
	m.dark = false
	m.boots++
	s.Network.Power(name, true)
	if m.kernel != nil {
		m.kernel.Up()
	}
	if m.segments != nil {
		m.segments.Power(true)
	}
	s.World.Publish(event.MachineUp{Machine: name, Boot: m.boot()})
	s.Start(name)
}

// Disk is the disk of a machine.
func (s *Stage) Disk(name string) *disk.Disk { return s.machine(name).disk }

// Kernel is the kernel of a node.
func (s *Stage) Kernel(node string) *kernel.Kernel { return s.machine(node).kernel }

// Clock is the clock of a machine.
func (s *Stage) Clock(name string) *vm.Clock { return s.machine(name).clock }

// observe turns what a process says of itself into an event.
func (s *Stage) observe(m *machine, kind fact.Kind, data []byte) {
	f, err := fact.Decode(kind, data)
	if err != nil {
		s.World.Fail(fmt.Errorf("%s: %w", m.name, err))
		return
	}
	switch f := f.(type) {
	case fact.Applied:
		s.World.Publish(event.Applied{Process: m.name, Life: m.life, Index: f.Index, Term: f.Term, Entry: f.Entry, Digest: f.Digest})
	case fact.Restored:
		s.World.Publish(event.Restored{Process: m.name, Life: m.life, Index: f.Index, Digest: f.Digest, Snapshot: f.Snapshot})
	case fact.Leading:
		s.World.Publish(event.Leading{Process: m.name, Life: m.life, Term: f.Term, On: f.On})
	case fact.Contact:
		s.World.Publish(event.Contact{Process: m.name, Life: m.life, Quorum: f.Quorum, Commit: f.Commit, Applied: f.Applied})
	case fact.Acted:
		s.World.Publish(event.Acted{Process: m.name, Life: m.life, Revision: fsm.Revision{Epoch: fsm.Epoch(f.Epoch), Index: fsm.Index(f.Index)}})
	case fact.Speaking:
		s.World.Publish(event.Speaking{Process: m.name, Life: m.life, On: f.On, Why: f.Why})
	case fact.Barred:
		s.World.Publish(event.Barred{Process: m.name, Life: m.life, Peer: f.Peer, Serial: f.Serial})
	case fact.Sends:
		s.World.Publish(event.Sends{Process: m.name, Life: m.life, To: f.To, Index: f.Index})
	case fact.Holds:
		s.World.Publish(event.Holds{Process: m.name, Life: m.life, Last: f.Last})
	case fact.Answered:
		now := s.World.Now()
		s.World.Publish(event.Answered{Process: m.name, Life: m.life, From: f.From, Does: f.Does, Asked: max(0, now-f.Took)})
	case fact.Drive:
		s.World.Publish(event.Drive{
			Driver: f.Driver, Process: m.name, Phase: f.Phase, Action: f.Action, Balancer: f.Balancer, Address: f.Address,
			Binding: f.Binding, Attempt: fsm.Revision{Epoch: fsm.Epoch(f.Epoch), Index: fsm.Index(f.Index)}, Result: f.Result,
		})
	}
}

// RawLine is the level of lines that are no log: the last words of a process.
const RawLine = "RAW"

// line turns what a process writes into an event: a JSON line of slog, or anything else, which is a panic's.
func (s *Stage) line(name, line string) {
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		s.World.Publish(event.Log{Process: name, Level: RawLine, Text: line})
		return
	}
	level, _ := fields["level"].(string)
	text, _ := fields["msg"].(string)
	for _, known := range []string{"time", "level", "msg", "member", "node"} {
		delete(fields, known)
	}
	var rest []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		rest = append(rest, fmt.Sprintf("%s=%v", key, fields[key]))
	}
	s.World.Publish(event.Log{Process: name, Level: level, Text: text, Fields: strings.Join(rest, " ")})
}
