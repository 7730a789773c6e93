// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/workload"
)

// Options say what is not to be drawn, and which faults may be. Zero fields have a default.
type Options struct {
	Duration time.Duration // default 60 s
	Members  int           // default 3
	Nodes    int           // default 5
	Switches int           // default 2
	Services int           // default: drawn, up to 20
	// Balancers, Clients, Outside, Segments, Aggregate and ShortLogs are as in a Scenario; by default there are none.
	Balancers int
	Clients   int
	Outside   int
	Segments  int
	Aggregate int
	ShortLogs bool
	Sockets   start.Sockets // where no older release is about, which knows none of it
	Weights   bool          // give endpoints weights, where no older release is about, which knows none
	Foul      bool          // have Services that the record cannot take, where no older release is about, which they stop
	Kinds     []string      // of faults; default all that are drawn. Those with a share are there in any case then
	Rough     bool          // disturb a majority of members at a time in any seed, where it comes to that
	NoFaults  bool
	NoWork    bool
}

func (o Options) orDefault() Options {
	o.Duration = cmp.Or(o.Duration, 60*time.Second)
	o.Members, o.Nodes, o.Switches = cmp.Or(o.Members, 3), cmp.Or(o.Nodes, 5), cmp.Or(o.Switches, 2)
	return o
}

// Draw draws a scenario from a seed. Equal seeds and options give equal scenarios.
func Draw(seed uint64, o Options) Scenario {
	s := compose(o.orDefault(), func(name string, draw func(dice.Dice)) {
		key := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), name...))
		rapid.Custom(func(t *rapid.T) bool {
			draw(dice.Of(t))
			return true
		}).Example(int(binary.BigEndian.Uint64(key[:])))
	})
	s.Seed, s.Name = seed, fmt.Sprint("seed-", seed)
	return s
}

// Generate draws scenarios for properties of rapid.
func Generate(o Options) *rapid.Generator[Scenario] {
	return rapid.Custom(func(t *rapid.T) Scenario {
		s := compose(o.orDefault(), func(_ string, draw func(dice.Dice)) { draw(dice.Of(t)) })
		s.Seed, s.Name = rapid.Uint64().Draw(t, "seed"), "drawn"
		return s
	})
}

// from draws something from the stream of a name.
type from func(name string, draw func(dice.Dice))

// levels are how many faults are to be expected in a scenario, from calm to storm, each as often as it stands here.
var levels = []int{0, 2, 2, 2, 2, 5, 5, 5, 5, 5, 10, 10, 10, 20, 20}

// shape is what the parts of a scenario have in common.
type shape struct {
	level int
	rough bool // a majority of members may be disturbed at a time
	begin time.Duration
	end   time.Duration // of faults and work
}

func compose(o Options, from from) Scenario {
	s := Scenario{
		Duration: o.Duration, Members: o.Members, Nodes: o.Nodes, Switches: o.Switches, Services: o.Services,
		Balancers: o.Balancers, Clients: o.Clients, Outside: o.Outside,
		Segments: o.Segments, Aggregate: o.Aggregate, ShortLogs: o.ShortLogs,
	}
	sh := shape{begin: min(5*time.Second, o.Duration/4), end: o.Duration * 3 / 4}
	from("shape", func(d dice.Dice) {
		sh.level, sh.rough = dice.Pick(d, "level", levels), d.Chance("rough", 25) || o.Rough
		s.Drift = dice.Pick(d, "drift", []int{0, 50, 200, 1000})
		if s.Services == 0 {
			s.Services = d.From("services", 2, 20)
		}
	})
	if s.Segments > 0 {
		from("segments", func(d dice.Dice) { s.Drift = dice.Pick(d, "drift", []int{0, 1000, 9000}) }) // with what faults add, 1.4 %
	}
	s.Sockets = o.Sockets
	if !o.NoFaults {
		s.Faults = drawFaults(s.Cast(), sh, o, from)
	}
	if s.older() {
		s.Sockets = start.Sockets{}
		s.Faults = slices.DeleteFunc(s.Faults, func(f fault.Fault) bool {
			k, _ := fault.Find(f.Kind)
			return k.Sockets || k.Newest || fault.Revokes(f.Kind)
		})
	}
	if !o.NoWork {
		from("work", func(d dice.Dice) {
			steps := d.Below("steps", int(min(40, (sh.end-sh.begin)/time.Second))+1)
			s.Work = s.Plan().Draw(d, steps, sh.begin, sh.end)
		})
	}
	if s.Sockets.Any() && !o.NoWork {
		from("sockets", func(d dice.Dice) { s.Work = append(s.Work, s.Plan().DrawSockets(d, Raised, sh.begin, sh.end)...) })
	}
	if o.Weights && !o.NoWork && !s.older() {
		from("weights", func(d dice.Dice) {
			for range d.From("steps", 2, 8) {
				s.Work = append(s.Work, s.Plan().DrawOne(d, "weigh", sh.begin, sh.end))
			}
		})
	}
	if o.Foul && !o.NoWork && !s.older() {
		from("foul", func(d dice.Dice) { s.Work = append(s.Work, s.Plan().DrawFoul(d, sh.begin, sh.end)...) })
	}
	slices.SortStableFunc(s.Work, func(a, b workload.Step) int { return cmp.Compare(a.At, b.At) })
	return s
}

// drawFaults draws the faults of each kind by itself.
func drawFaults(c fault.Cast, sh shape, o Options, from from) (out []fault.Fault) {
	all := 0
	for _, k := range fault.All() {
		all += k.Weight
	}
	for _, k := range fault.All() {
		if len(o.Kinds) > 0 && !slices.Contains(o.Kinds, k.Name) || !k.Able(c) {
			continue
		}
		from("fault/"+k.Name, func(d dice.Dice) {
			for range 3 {
				if d.Below("whether", 3*all) >= 3*all-sh.level*k.Weight {
					out = append(out, drawFault(d, k, c, sh))
				}
			}
			if k.Share > 0 && (d.Chance("one", k.Share) || len(o.Kinds) > 0) {
				out = append(out, drawFault(d, k, c, sh))
			}
		})
	}
	slices.SortStableFunc(out, func(a, b fault.Fault) int { return cmp.Compare(a.At, b.At) })
	if out = survivable(c, out); !sh.rough {
		out = spared(c, out)
	}
	return out
}

// catchUp is how long a member that was away may still lack what the others have.
const catchUp = 5 * time.Second

// survivable leaves out what would take more members their disks than a group can lose for good, and what has one forget while
// so many others are behind that nobody may be left who knows.
func survivable(c fault.Cast, all []fault.Fault) (out []fault.Fault) {
	lost := 0
	for _, f := range all {
		if k, ok := fault.Find(f.Kind); ok && k.Forgets && behind(c, all, f)+1 > (len(c.Members)-1)/2 {
			continue
		} else if ok && k.Loses {
			most := (len(c.Members) - 1) / 2
			n := len(slices.DeleteFunc(slices.Clone(f.On), func(name string) bool { return !slices.Contains(c.Members, name) }))
			if k.Rescued && most > 0 {
				n = most
			}
			if lost+n > most {
				continue
			}
			lost += n
		}
		out = append(out, f)
	}
	return out
}

// behind counts the members other than those that a fault befalls which may lack something while it lasts. Nobody is if it befalls
// no member.
func behind(c fault.Cast, all []fault.Fault, f fault.Fault) int {
	if !slices.ContainsFunc(f.On, func(name string) bool { return slices.Contains(c.Members, name) }) {
		return -1
	}
	away, n := map[string]bool{}, 0
	for _, other := range all {
		if k, ok := fault.Find(other.Kind); ok && other.At <= f.End() && other.End()+catchUp >= f.At {
			n += other.Strikes()
			for _, name := range k.Excuses(c, other) {
				away[name] = away[name] || slices.Contains(c.Members, name) && !slices.Contains(f.On, name)
			}
		}
	}
	for _, is := range away {
		if is {
			n++
		}
	}
	return n
}

func drawFault(d dice.Dice, k fault.Kind, c fault.Cast, sh shape) fault.Fault {
	most := min(k.Most, sh.end-sh.begin)
	f := fault.Fault{Kind: k.Name, For: d.Time("for", min(k.Least, most), most)}
	f.At = d.Time("at", sh.begin, sh.end-f.For)
	k.Draw(d, c, &f)
	return f
}

// spared leaves out what would disturb a majority of members at a time.
func spared(c fault.Cast, all []fault.Fault) (out []fault.Fault) {
	for _, f := range all {
		disturbed, n := map[string]bool{}, 0
		for _, other := range append(out, f) {
			if k, ok := fault.Find(other.Kind); ok && other.End() >= f.At {
				n += other.Strikes()
				for _, name := range k.Excuses(c, other) {
					disturbed[name] = disturbed[name] || slices.Contains(c.Members, name)
				}
			}
		}
		for _, member := range c.Members {
			if disturbed[member] {
				n++
			}
		}
		if 2*n < len(c.Members) {
			out = append(out, f)
		}
	}
	return out
}
