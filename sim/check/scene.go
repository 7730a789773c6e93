// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// never is a time that has not come.
const never = time.Duration(-1)

// everybody is the name under which faults that name nobody are counted.
const everybody = ""

// scene is what is seen to be the case, outside of the code under test: who runs, whom a fault excuses, what switches
// forward and kernels steer.
type scene struct {
	now time.Duration
	// changes counts what happened: as long as it stays, only time has passed.
	changes  uint64
	topology Topology
	record   *Record
	// nodeAt finds nodes by the addresses that switches know them by.
	nodeAt map[netip.Addr]string

	runs   map[string]bool   // processes
	boots  map[string]string // of machines, as far as they were seen to boot
	dark   map[string]bool   // machines without power
	darkAt map[string]time.Duration
	faults map[int]event.FaultBegan
	named  map[string]int           // by how many faults at present
	stray  map[string]bool          // members whose copy of the record is another one than the group's, on purpose
	frozen map[string]int           // by how many that may stop a process: it neither acts nor says anything
	freed  map[string]time.Duration // when the last fault of somebody ended
	struck map[string]time.Duration // when somebody's present fault began, or the last one: the first of those at a time
	calm   time.Duration            // since when, or never

	contact map[string]contact // of members
	applied map[string]uint64  // by members in their present lives
	leader  string
	// sound is since when a majority of members runs undisturbed, or never; lead since when one and the same leads.
	sound, lead time.Duration
	// stuck is until when a leader may lead on whose disk hangs.
	stuck time.Duration
	// misled is when the API server last told a member something else than the truth, or never.
	misled time.Duration

	// names are the members as of a view; whole says that the record has named all there were at the beginning.
	names []string
	whole bool
	view  *fsm.View
	// servers are the server ids that the record has named for each member. A member whose disk is gone comes back as a
	// new server, which has no vote before a leader took it in and promoted it: waiting is since when.
	servers map[string][]fsm.ServerID
	waiting map[string]time.Duration
	recalls map[string]*recall // of members that were not seen to take part since their machines booted

	sessions map[link]session
	hostile  map[string]trouble // by switch, that ends speakers
	killed   trouble            // of speakers, by something else
	cut      map[link]bool      // what a switch is sent by a member is held back
	ways     ways
	steered  map[string]steered       // by node
	meddled  map[string]time.Duration // when somebody else last took away what the kernel of a node had
	segments segments
	sockets  map[string]*socketTables // by node
	tunnels  map[string]*tunnelEnd    // likewise
}

// contact is what a member says of its touch with the group.
type contact struct {
	quorum bool
	since  time.Duration
}

// link is a switch and a member, route a switch and a prefix.
type (
	link struct{ at, member string }

	route struct {
		at     string
		prefix netip.Prefix
	}
)

type session struct {
	up    bool
	since time.Duration
}

// forwarding is what a switch says of a prefix, and the event that said so.
type forwarding struct {
	event.Forwarding
	number uint64
}

// steered is what a kernel says, the event that said so, and since when what left is gone.
type steered struct {
	boot   string
	now    map[netip.Addr]bool
	left   map[netip.Addr]time.Duration
	number uint64
}

func newScene(t Topology, record *Record) *scene {
	s := &scene{
		topology: t, record: record, nodeAt: map[netip.Addr]string{},
		runs: map[string]bool{}, boots: map[string]string{}, dark: map[string]bool{}, darkAt: map[string]time.Duration{},
		faults: map[int]event.FaultBegan{}, named: map[string]int{}, frozen: map[string]int{}, freed: map[string]time.Duration{}, calm: never,
		struck: map[string]time.Duration{}, stray: map[string]bool{},
		contact: map[string]contact{}, applied: map[string]uint64{}, sound: never, lead: never, misled: never,
		servers: map[string][]fsm.ServerID{}, waiting: map[string]time.Duration{}, recalls: map[string]*recall{},
		sessions: map[link]session{}, hostile: map[string]trouble{}, cut: map[link]bool{}, ways: newWays(), steered: map[string]steered{}, meddled: map[string]time.Duration{},
		segments: newSegments(t.Links), sockets: map[string]*socketTables{}, tunnels: map[string]*tunnelEnd{},
	}
	for _, n := range t.Nodes {
		for _, a := range n.Addresses {
			s.nodeAt[a] = n.Name
		}
	}
	return s
}

// hear takes in an event.
func (s *scene) hear(e event.Stamped) {
	s.recalled(e.Event)
	switch x := e.Event.(type) {
	case event.Started:
		s.runs[x.Process] = true
		delete(s.applied, x.Process)
		delete(s.contact, x.Process)
		s.free(x.Process)
		s.booted(x.Process, x.Boot)
	case event.Ended:
		s.runs[x.Process] = false
		delete(s.contact, x.Process)
		if s.leader == x.Process {
			s.leader, s.lead = "", never
		}
	case event.Wiped:
		s.waiting[x.Machine] = s.now
		if !x.Old {
			delete(s.stray, x.Machine)
		}
	case event.MachineDown:
		s.dark[x.Machine], s.darkAt[x.Machine] = true, s.now
		if t := s.sockets[x.Machine]; t != nil {
			t.empty("")
		}
		if t := s.tunnels[x.Machine]; t != nil {
			t.empty("")
		}
	case event.MachineUp:
		delete(s.dark, x.Machine)
		s.booted(x.Machine, x.Boot)
		s.free(x.Machine)
	case event.Viewed:
		if slices.Contains(s.members(), x.Process) {
			s.misled = s.now
		}
	case event.Link:
		s.cut[link{x.To, x.From}] = !x.Up
	case event.FaultBegan, event.FaultEnded, event.Calm:
		s.fault(x)
	case event.Applied:
		s.applied[x.Process] = x.Index
	case event.Restored:
		s.applied[x.Process] = x.Index
	case event.Leading:
		s.leads(x)
	case event.Contact:
		if old, ok := s.contact[x.Process]; !ok || old.quorum != x.Quorum {
			s.contact[x.Process] = contact{x.Quorum, s.now}
		}
	case event.Session:
		s.sessions[link{x.Switch, x.Member}] = session{x.Up, s.now}
	case event.Forwarding:
		s.ways.hear(e.Number, x)
	case event.Steered:
		s.steers(e.Number, x)
	case event.Resolves:
		s.resolves(e.Number, x)
	case event.Programs:
		s.programs(x)
	case event.Tunnel:
		s.tunnelled(e.Number, x)
	case event.Proxies:
		s.proxies(e.Number, x)
	case event.Carrier:
		s.segments.carrier(s.now, x)
	case event.Answered: // recalled
	default:
		return
	}
	s.changes++
	s.sounds()
}

// free notes that somebody was given back to itself just now.
func (s *scene) free(name string) { s.freed[name] = s.now }

// freeze counts a fault that stops processes: in a world a process stands still while its disk syncs, too.
func (s *scene) freeze(f event.FaultBegan, by int) {
	if f.Fault != "freeze" && f.Fault != "disk-slow" {
		return
	}
	for _, name := range f.On {
		s.frozen[name] += by
	}
}

func (s *scene) fault(e event.Event) {
	each := func(on []string, do func(string)) {
		if len(on) == 0 {
			on = []string{everybody}
		}
		for _, name := range on {
			do(name)
		}
	}
	switch x := e.(type) {
	case event.FaultBegan:
		s.trouble(x, true)
		s.faults[x.ID] = x
		s.sticks(x)
		s.strays(x)
		each(x.On, func(name string) {
			if s.named[name]++; s.named[name] == 1 {
				s.struck[name] = s.now
			}
		})
		s.freeze(x, 1)
	case event.FaultEnded:
		began, ok := s.faults[x.ID]
		if !ok {
			return
		}
		s.trouble(began, false)
		delete(s.faults, x.ID)
		s.freeze(began, -1)
		each(began.On, func(name string) { s.named[name]--; s.free(name) })
	case event.Calm:
		s.calm = s.now
	}
}

// sticks takes in that the disk of a leader may hang, which leads on until it gives up.
func (s *scene) sticks(f event.FaultBegan) {
	if f.Fault == "disk-hang" && slices.Contains(f.On, s.leader) {
		s.stuck = s.now + givesUp
	}
}

// strays takes in whose copy of the record becomes another one. It stays so on their disks.
func (s *scene) strays(f event.FaultBegan) {
	if f.Fault != "stray-record" {
		return
	}
	for _, name := range f.On {
		s.stray[name] = true
	}
}

// booted takes in under which boot a machine runs: a kernel forgets everything with each.
func (s *scene) booted(machine, boot string) {
	old, known := s.boots[machine]
	if boot == "" || old == boot {
		return
	}
	s.boots[machine] = boot
	if known {
		if slices.Contains(s.members(), machine) {
			s.recalls[machine] = s.newRecall()
		}
		s.steers(s.steered[machine].number, event.Steered{Node: machine, Boot: boot})
	}
}

func (s *scene) leads(x event.Leading) {
	switch {
	case x.On && s.leader != x.Process:
		s.leader, s.lead = x.Process, s.now
		for _, f := range s.faults {
			s.sticks(f)
		}
	case !x.On && s.leader == x.Process:
		s.leader, s.lead = "", never
	}
}

func (s *scene) steers(number uint64, x event.Steered) {
	s.boots[x.Node] = x.Boot
	old := s.steered[x.Node]
	next := steered{boot: x.Boot, now: map[netip.Addr]bool{}, left: map[netip.Addr]time.Duration{}, number: number}
	if x.By == "hand" {
		s.meddled[x.Node] = s.now
	}
	for _, a := range x.Addresses {
		next.now[a] = true
	}
	for a, at := range old.left {
		if !next.now[a] {
			next.left[a] = at
		}
	}
	for a := range old.now {
		if !next.now[a] {
			next.left[a] = s.now
		}
	}
	s.steered[x.Node] = next
}

// inQuorum tells whether a member is in contact with a quorum: by its own word, or, as long as it gave none, if it runs
// undisturbed beside a majority.
func (s *scene) inQuorum(member string) bool {
	if c, said := s.contact[member]; said {
		return c.quorum
	}
	return s.runs[member] && s.unexcused(member) && s.sound != never
}

// unexcused tells whether no fault excuses somebody now.
func (s *scene) unexcused(name string) bool {
	return s.named[name] == 0 && s.named[everybody] == 0 && !s.dark[name]
}

// freeFor tells whether no fault excused somebody for a time.
func (s *scene) freeFor(name string, d time.Duration) bool {
	long := func(name string) bool {
		at, ever := s.freed[name]
		return !ever || s.now-at >= d
	}
	return s.unexcused(name) && long(name) && long(everybody)
}

// exchanges tells whether members are to tell a switch of addresses of a family.
func (s *scene) exchanges(at string, a netip.Addr) bool {
	return s.topology.Exchanges == nil || s.topology.Exchanges(at, a)
}

// worksFor tells whether a process has been running undisturbed for a time.
func (s *scene) worksFor(name string, d time.Duration) bool {
	return s.runs[name] && s.freeFor(name, d)
}

// soundFor tells whether a majority of members has been working undisturbed for a time since some moment.
func (s *scene) soundFor(since, d time.Duration) bool {
	return s.sound != never && s.now-max(s.sound, since) >= d
}

// steers tells whether the kernel of a node steers an address.
func (s *scene) steersNow(node string, a netip.Addr) bool { return s.steered[node].now[a] }

// routes lists what switches said anything of, in order.
func (s *scene) routes() []route {
	return slices.SortedFunc(maps.Keys(s.ways.all), func(a, b route) int {
		return cmp.Or(strings.Compare(a.at, b.at), a.prefix.Compare(b.prefix))
	})
}
