// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// Fault is one thing that goes wrong: plain data.
type Fault struct {
	Kind string
	At   time.Duration // since the beginning of the world
	For  time.Duration
	On   []string         // whom it befalls; what none means depends on the kind
	With parameter.Values // of the kind
}

// End is when it is over.
func (f Fault) End() time.Duration { return f.At + f.For }

// String is one line for people.
func (f Fault) String() string {
	s := f.Kind
	if len(f.On) > 0 {
		s += " on " + strings.Join(f.On, ", ")
	}
	if len(f.With) > 0 {
		s += " " + f.With.String()
	}
	return s
}

// Cast is who plays.
type Cast struct {
	Members  []string
	Nodes    []string
	Switches []string
	Drivers  []string // of outside load balancers
	Outside  bool     // the cluster knows LBCF's kinds
	Segments []string // that nodes are in
	Sockets  bool     // agents have programs at sockets
	Policies bool     // the cluster knows policies of client-side balancing
	Probes   bool     // there is something at the addresses that these list
}

// Machines are those with a process of ours.
func (c Cast) Machines() []string { return slices.Concat(c.Members, c.Nodes) }

// All are all machines that faults know.
func (c Cast) All() []string {
	return slices.Concat(c.Members, c.Nodes, c.Switches, c.Drivers, []string{start.Kubernetes})
}

// role lists who has a part.
func (c Cast) role(r Role) []string {
	switch r {
	case Member:
		return c.Members
	case Node:
		return c.Nodes
	case Switch:
		return c.Switches
	case Driver:
		return c.Drivers
	}
	return []string{start.Kubernetes}
}

// Role is a part that somebody plays.
type Role string

// Roles.
const (
	Member     Role = "member"
	Node       Role = "node"
	Switch     Role = "switch"
	Driver     Role = "driver"
	Kubernetes Role = "kubernetes"
)

// Who says whom faults of a kind may befall.
type Who struct {
	Roles []Role
	Least int
}

// Kind is a sort of fault.
type Kind struct {
	Name string
	Text string // what it does, for people
	// Weight says how often it is drawn, beside other kinds; 0: never.
	Weight int
	// Share is in how many scenarios of a hundred there is one, whatever else is drawn; for kinds without Weight.
	Share int
	// Least and Most bound how long a drawn one lasts.
	Least, Most time.Duration
	On          Who
	// Loses says that disks are lost for good: a group does not survive it if it befalls a majority.
	Loses bool
	// Rescued says that a majority of the members loses its disks, and an operator goes on with one that did not: nobody else may lose one.
	Rescued bool
	// Forgets says that a member comes back under its name with less than it promised to keep: a group survives that as long as
	// a majority of the others has everything.
	Forgets    bool
	Parameters []parameter.Parameter
	// Segments says that there is none where nodes are in no segments.
	Segments bool
	// Sockets says that there is none where agents have no programs at sockets.
	Sockets bool
	// Probes says that there is none where nothing is at the addresses that policies list.
	Probes bool
	// Newest says that there is none where the older release is about, which cannot do it, or refuses it.
	Newest bool
	// Driverless says that there is none where there are outside load balancers: what was registered there since a backup is not taken over.
	Driverless bool
	// Older says that it runs the older release, which knows no segments: there is none where nodes are in some.
	Older bool
	// Draw fills in whom it befalls, and its parameters.
	Draw func(d dice.Dice, c Cast, f *Fault)
	// Excuses lists who cannot be expected to do their work meanwhile, as event.FaultBegan has it. It is never empty.
	Excuses func(c Cast, f Fault) []string
	// Begin begins it. What it gives ends it, and is called once.
	Begin func(b *Backstage, f Fault) (end func())
}

// All lists all kinds.
func All() []Kind { return kinds() }

// kinds makes them anew: acts among them find others, for what befalls members inside.
func kinds() []Kind {
	return slices.Concat(
		processKinds(), powerKinds(), diskKinds(), lossKinds(), cutKinds(), linkKinds(), clockKinds(), switchKinds(), speakerKinds(),
		kernelKinds(), segmentKinds(), driverKinds(), groupKinds(), upgradeKinds(), rescueKinds(), kubernetesKinds(), revokeKinds(), strangerKinds(), strayKinds(),
	)
}

// Find finds a kind by its name.
func Find(name string) (Kind, bool) {
	all := kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// Able tells whether there is anybody whom a fault of this kind can befall.
func (k Kind) Able(c Cast) bool {
	if k.Driverless && len(c.Drivers) > 0 || k.Probes && !c.Probes || k.Sockets && !c.Sockets || k.Segments && len(c.Segments) == 0 || k.Older && len(c.Segments) > 0 {
		return false
	}
	return k.On.Least == 0 || slices.ContainsFunc(k.On.Roles, func(r Role) bool { return len(c.role(r)) > 0 })
}

// onThem excuses those whom a fault befalls, and nobody else.
func onThem(_ Cast, f Fault) []string { return f.On }
