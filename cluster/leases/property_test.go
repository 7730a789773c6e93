// SPDX-License-Identifier: Apache-2.0

package leases_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	"fairlead.io/fairlead/internal/testkit"
)

var vips = []netip.Addr{netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr("203.0.113.3")}

// record is a group whose addresses n1, n2 and n3 serve.
type record struct {
	t interface {
		Helper()
		Fatalf(string, ...any)
	}
	*fsm.State
}

func newRecord(t interface {
	Helper()
	Fatalf(string, ...any)
}, kept ...fsm.PoolName) *record {
	r := &record{t, fsm.New()}
	r.commit(&fsm.InitGroup{Group: "g1", Format: fsm.NewestFormat, Settings: fsm.Settings{Unsteered: true}})
	r.commit(&fsm.PutService{Service: fsm.Service{ID: "shop/a", UID: "u1"}},
		&fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{"p1"}, Kept: kept, EveryNode: true}})
	for i, n := range nodes {
		r.commit(&fsm.PutNode{ID: n, Addresses: []netip.Addr{hop(i).Address}, Eligible: true}, &fsm.RegisterBoot{Node: n, Boot: "b0"})
	}
	for _, vip := range vips {
		r.commit(&fsm.Allocate{Address: vip, Service: "shop/a", Pool: "p1"})
		r.route(vip, 0, 1, 2)
	}
	return r
}

var nodes = []fsm.NodeID{"n1", "n2", "n3"}

func hop(i int) fsm.HopSpec {
	return fsm.HopSpec{Node: nodes[i], Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})}
}

func (r *record) route(vip netip.Addr, via ...int) {
	c := &fsm.SetRoute{Prefix: fsm.HostPrefix(vip)}
	for _, i := range via {
		c.Hops = append(c.Hops, hop(i))
	}
	r.commit(c)
}

// commit applies commands in one entry; all must be accepted.
func (r *record) commit(commands ...fsm.Command) {
	r.t.Helper()
	for i, o := range r.propose(commands...) {
		if o.Err() != nil {
			r.t.Fatalf("%T %+v: %v", commands[i], commands[i], o.Err())
		}
	}
}

// propose applies commands in one entry, and gives their outcomes.
func (r *record) propose(commands ...fsm.Command) []fsm.Outcome {
	r.t.Helper()
	var proposals []fsm.Proposal
	for _, c := range commands {
		proposals = append(proposals, fsm.Proposal{Actor: "test", Command: c})
	}
	return fsmtest.Commit(r.t, r.State, proposals...)
}

// restore replaces the record by an earlier one, as the beginning of another life.
func (r *record) restore(backup []byte) {
	r.t.Helper()
	index, epoch := r.Applied(), r.Read().Group().Epoch
	next := fsm.New()
	if err := next.Restore(bytes.NewReader(backup)); err != nil {
		r.t.Fatalf("%v", err)
	}
	index, epoch = max(index, next.Applied()), max(epoch, next.Read().Group().Epoch) // the backup may be of a life that was undone
	data, err := fsm.EncodeEntry(next.Read().Group().Epoch, []fsm.Proposal{{Command: &fsm.NewEpoch{Group: "g1", Epoch: epoch + 1, Cause: "test"}}})
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	if o := next.ApplyEntries([]fsm.LogEntry{{Index: index + 1, Term: 1, Data: data}})[0][0]; o.Err() != nil {
		r.t.Fatalf("%v", o.Err())
	}
	r.State = next
}

func (r *record) backup() []byte {
	r.t.Helper()
	var b bytes.Buffer
	if err := r.Freeze().Write(&b); err != nil {
		r.t.Fatalf("%v", err)
	}
	return b.Bytes()
}

// machine is a node as the agreement with it reads, written without a look at package l2.
type machine struct {
	id      fsm.NodeID
	boot    int
	off     bool
	cut     bool    // out of touch with everybody in a run
	deaf    bool    // hears no answer in a run
	rate    float64 // of its clock, against true time
	started time.Duration
	newest  time.Duration
	rights  map[netip.Addr]right
	link    desired.Link
}

type right struct {
	fence fsm.Revision
	until time.Duration // by the machine's clock
	kept  bool
}

func (m *machine) clock(now time.Duration) time.Duration {
	return time.Duration(float64(now-m.started) * m.rate)
}

func (m *machine) uses(now time.Duration, vip netip.Addr) bool {
	r, ok := m.rights[vip]
	return ok && !m.off && (r.kept || m.clock(now) < r.until)
}

func (m *machine) renew(now time.Duration) leases.Renewal {
	m.newest = max(m.newest+1, m.clock(now))
	out := leases.Renewal{Node: m.id, Boot: fsm.BootID(fmt.Sprint("b", m.boot)), Sent: m.newest, Links: []desired.Link{m.link}}
	for _, vip := range slices.SortedFunc(maps.Keys(m.rights), netip.Addr.Compare) {
		r := m.rights[vip]
		if !r.kept && m.clock(now) >= r.until {
			delete(m.rights, vip)
			continue
		}
		out.Held = append(out.Held, leases.Held{VIP: vip, Fence: r.fence})
	}
	return out
}

// chief is a member that leads, or believes so.
type chief struct {
	*leases.Keeper
	rate  float64
	leads bool
	began time.Duration // by its clock
	view  *fsm.View     // the last that it saw, once it does not lead
}

// letter is a renewal on its way, and its answer.
type letter struct {
	leases.Renewal
	to                *chief
	came, sure, ready bool
	grants            []leases.Grant
}

// Clocks run wrong by up to 1.5 %, messages are late and get lost, leaders are deposed and do not know, machines boot and are
// cut off, the record is replaced by an earlier one, for good or until the leader is deposed: never may two machines use a lease
// of one address, whatever their pools' choice. (Where holders keep leases, a restored record may know less than it must.)
func TestPropertyLeasesNeverOverlap(t *testing.T) {
	t.Parallel()
	granted, moved, lost := 0, 0, 0
	missing := func() string {
		if granted < 50 || moved < 20 || lost < 2 {
			return fmt.Sprintf("only %d leases granted, %d ended and %d lost: nothing was tested", granted, moved, lost)
		}
		return ""
	}
	testkit.CheckUntil(t, missing, func(t *rapid.T) {
		var kept []fsm.PoolName
		if rapid.Bool().Draw(t, "kept") {
			kept = []fsm.PoolName{"p1"}
		}
		r := newRecord(t, kept...)
		now := time.Duration(0)
		rate := func(name string) float64 { return rapid.SampledFrom([]float64{0.985, 1, 1.015}).Draw(t, name) }
		var machines []*machine
		for i, id := range nodes {
			machines = append(machines, &machine{id: id, rate: rate(string(id)), rights: map[netip.Addr]right{},
				link: desired.Link{Name: fmt.Sprint("eth", i), Up: true}})
		}
		elect := func(former *chief) *chief {
			c, before := &chief{leads: true}, (*leases.Keeper)(nil)
			if former != nil { // the same one, in another life of the record
				c.rate, before = former.rate, former.Keeper
			} else {
				c.rate = rate("leader")
			}
			term := rapid.SampledFrom([]time.Duration{0, 3 * time.Second}).Draw(t, "term")
			c.began = time.Duration(float64(now) * c.rate)
			c.Keeper = leases.NewKeeper(leases.Timing{Term: term}, r.Read().Group().Epoch, c.began, before)
			return c
		}
		chiefs := []*chief{elect(nil)}
		var backups [][]byte
		var unsure *fsm.State // the record before the newest restore, while that may still be undone
		var post []*letter
		view := func(c *chief) *fsm.View {
			if c.leads {
				return r.Read()
			}
			return c.view
		}
		clock := func(c *chief) time.Duration { return time.Duration(float64(now) * c.rate) }
		some := func(name string, fits func(*letter) bool) *letter {
			fit := slices.DeleteFunc(slices.Clone(post), func(l *letter) bool { return !fits(l) })
			if len(fit) == 0 {
				t.Skip("none")
			}
			return rapid.SampledFrom(fit).Draw(t, name)
		}
		decide := func() {
			c := chiefs[len(chiefs)-1]
			for _, step := range c.Decide(clock(c), r.Read()) {
				if rapid.IntRange(0, 9).Draw(t, "commit fails") > 0 {
					for i, o := range r.propose(step.Commands...) {
						if o.Err() != nil {
							if r.Read().Group().Quarantine.IsZero() {
								t.Fatalf("%+v: %v", step.Commands[i], o.Err())
							}
							continue
						}
						switch step.Commands[i].(type) {
						case *fsm.GrantLease:
							granted++
						case *fsm.EndLease:
							moved++
						}
					}
				}
			}
		}
		register := func() { // machines learn that they are not known under their boot
			for _, m := range machines {
				boot := fsm.BootID(fmt.Sprint("b", m.boot))
				if n, _ := fsm.Get[*fsm.Node](r.Read(), fsm.TableNodes, string(m.id)); n.Boot != boot {
					r.commit(&fsm.RegisterBoot{Node: m.id, Boot: boot})
				}
			}
		}
		alone := func() {
			for _, vip := range vips {
				var users []fsm.NodeID
				for _, m := range machines {
					if m.uses(now, vip) {
						users = append(users, m.id)
					}
				}
				if len(users) > 1 {
					t.Fatalf("at %s %v use %s", now, users, vip)
				}
			}
		}
		deliver := func(l *letter) {
			for _, m := range machines {
				if m.id != l.Node || m.off || l.Leaving || fsm.BootID(fmt.Sprint("b", m.boot)) != l.Boot || m.newest != l.Sent {
					continue
				}
				m.rights = map[netip.Addr]right{}
				for _, g := range l.grants {
					m.rights[g.VIP] = right{g.Fence, l.Sent + g.Term, g.Keep}
				}
			}
			post = slices.DeleteFunc(post, func(o *letter) bool { return o == l })
			alone()
		}
		accept := func(l *letter) {
			n, _ := fsm.Get[*fsm.Node](view(l.to), fsm.TableNodes, string(l.Node))
			if n.Boot == l.Boot {
				l.to.Heard(clock(l.to), l.Renewal)
				l.came = true
			}
		}
		tick := func(by time.Duration) { // everything as it goes when nothing is wrong
			now += by
			c := chiefs[len(chiefs)-1]
			for _, m := range machines {
				if !m.off && !m.cut {
					l := &letter{Renewal: m.renew(now), to: c}
					accept(l)
					if grants, ok := c.Answer(clock(c), r.Read(), l.Node, l.Boot, l.Sent); ok && l.came && !m.deaf {
						l.grants = grants
						deliver(l)
					}
				}
			}
			decide()
		}
		run := func(left time.Duration) {
			by := rapid.SampledFrom([]time.Duration{20 * time.Millisecond, 200 * time.Millisecond}).Draw(t, "by")
			for ; left > 0; left -= by {
				tick(by)
			}
		}
		perhaps := func() { // what changed may show its effect before anything else comes
			if rapid.Bool().Draw(t, "goes on") {
				run(4 * time.Second)
			}
		}
		restore := func(backup []byte) { // the leader has it, and goes on as it was until it begins anew
			before := fsm.List[*fsm.Lease](r.Read(), fsm.TableLeases)
			unsure = r.State
			r.restore(backup)
			for _, l := range before {
				if now, ok := fsm.Get[*fsm.Lease](r.Read(), fsm.TableLeases, l.VIP.String()); ok && now.Holder != l.Holder {
					lost++
				}
			}
			register()
		}
		for range 25 { // all addresses have holders
			tick(200 * time.Millisecond)
		}
		backups = append(backups, r.backup())
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) { now += time.Duration(rapid.Int64Range(0, 4e9).Draw(t, "wait")) },
			"run": func(t *rapid.T) {
				run(time.Duration(rapid.Int64Range(0, 8e9).Draw(t, "run")))
			},
			"cut": func(t *rapid.T) {
				m := rapid.SampledFrom(machines).Draw(t, "machine")
				m.cut = !m.cut
			},
			"verdict": func(t *rapid.T) { // of the group, right or wrong
				n, _ := fsm.Get[*fsm.Node](r.Read(), fsm.TableNodes, string(rapid.SampledFrom(nodes).Draw(t, "node")))
				r.commit(&fsm.SetLiveness{Node: n.ID, Boot: n.Boot, Liveness: rapid.SampledFrom([]fsm.Liveness{fsm.NodeUp, fsm.AgentDown, fsm.NodeDown}).Draw(t, "liveness")})
			},
			"send": func(t *rapid.T) {
				m := rapid.SampledFrom(machines).Draw(t, "machine")
				if !m.off {
					post = append(post, &letter{Renewal: m.renew(now), to: rapid.SampledFrom(chiefs).Draw(t, "to")})
				}
			},
			"restart": func(t *rapid.T) { // of the agent: what it was granted is forgotten, with or without a word
				m := rapid.SampledFrom(machines).Draw(t, "machine")
				m.rights = map[netip.Addr]right{}
				if !m.off && rapid.Bool().Draw(t, "word") {
					l := &letter{Renewal: m.renew(now), to: rapid.SampledFrom(chiefs).Draw(t, "to")}
					l.Leaving = true
					post = append(post, l)
				}
			},
			"come": func(t *rapid.T) { accept(some("letter", func(l *letter) bool { return !l.came })) },
			"verify": func(t *rapid.T) {
				l := some("letter", func(l *letter) bool { return l.came && !l.sure })
				l.sure = l.to.leads
			},
			"answer": func(t *rapid.T) {
				l := some("letter", func(l *letter) bool { return l.sure && !l.ready })
				l.grants, l.ready = l.to.Answer(clock(l.to), view(l.to), l.Node, l.Boot, l.Sent)
			},
			"deliver": func(t *rapid.T) { deliver(some("letter", func(l *letter) bool { return l.ready })) },
			"decide":  func(t *rapid.T) { decide() },
			"depose": func(t *rapid.T) {
				old := chiefs[len(chiefs)-1]
				old.leads, old.view = false, r.Read()
				if unsure != nil && rapid.Bool().Draw(t, "undone") {
					r.State = unsure
					register()
				}
				unsure = nil
				chiefs = append(chiefs, elect(nil))
			},
			"backup": func(*rapid.T) { backups = append(backups, r.backup()) },
			"restore": func(t *rapid.T) {
				if len(kept) > 0 || unsure != nil {
					t.Skip("more would be lost than may be, or it is under way")
				}
				restore(backups[rapid.IntRange(0, len(backups)-1).Draw(t, "backup")])
			},
			"lose": func(t *rapid.T) { // a lease that moved since the backup
				if len(kept) > 0 || unsure != nil || !r.Read().Group().Quarantine.IsZero() {
					t.Skip("as above, or nothing moves")
				}
				backup, vip := rapid.SampledFrom([]int{0, len(backups)}).Draw(t, "backup"), rapid.SampledFrom(vips).Draw(t, "vip")
				backups = append(backups, r.backup())
				if l, ok := fsm.Get[*fsm.Lease](r.Read(), fsm.TableLeases, vip.String()); ok {
					i := slices.Index(nodes, l.Holder)
					r.route(vip, (i+1)%3, (i+2)%3)
					machines[i].deaf = rapid.Bool().Draw(t, "deaf")
				}
				for range rapid.IntRange(0, 10).Draw(t, "ticks") {
					tick(20 * time.Millisecond)
				}
				restore(backups[backup])
			},
			"heard": func(*rapid.T) {
				for _, m := range machines {
					m.deaf = false
				}
			},
			"begin": func(t *rapid.T) { // anew
				if unsure == nil {
					t.Skip("it has")
				}
				unsure = nil
				old := chiefs[len(chiefs)-1]
				old.leads, old.view = false, r.Read()
				chiefs = append(chiefs, elect(old))
			},
			"settle": func(t *rapid.T) {
				c, q := chiefs[len(chiefs)-1], r.Read().Group().Quarantine
				if q.IsZero() || unsure != nil {
					t.Skip("nothing to settle")
				}
				if left := leases.Lapse(r.Read(), clock(c)-c.began); left > 0 && rapid.Bool().Draw(t, "patient") {
					run(left + left/10) // by the slowest clock
				}
				if leases.Lapse(r.Read(), clock(c)-c.began) == 0 {
					r.commit(&fsm.EndQuarantine{Since: q})
				}
			},
			"link": func(t *rapid.T) {
				m := rapid.SampledFrom(machines).Draw(t, "machine")
				m.link.Up, m.link.Deaf = rapid.Bool().Draw(t, "up"), rapid.Bool().Draw(t, "deaf")
				perhaps()
			},
			"serve": func(t *rapid.T) {
				if !r.Read().Group().Quarantine.IsZero() {
					t.Skip("nothing is removed")
				}
				r.route(rapid.SampledFrom(vips).Draw(t, "vip"), rapid.SliceOfNDistinct(rapid.IntRange(0, 2), 0, 3, rapid.ID).Draw(t, "via")...)
				perhaps()
			},
			"move": func(*rapid.T) { // by an operator
				to := rapid.SampledFrom(append([]fsm.NodeID{""}, nodes...)).Draw(t, "to")
				if n, known := fsm.Get[*fsm.Node](r.Read(), fsm.TableNodes, string(to)); known && n.Liveness != fsm.NodeUp {
					t.Skip("it is refused")
				}
				if to != "" {
					r.commit(&fsm.BeginMove{Service: "shop/a", Node: to})
				} else {
					r.commit(&fsm.EndMove{Service: "shop/a"})
				}
				perhaps()
			},
			"power": func(t *rapid.T) {
				m := rapid.SampledFrom(machines).Draw(t, "machine")
				if m.off = !m.off; m.off {
					return
				}
				m.boot++
				m.started, m.newest, m.rights = now, 0, map[netip.Addr]right{}
				r.commit(&fsm.RegisterBoot{Node: m.id, Boot: fsm.BootID(fmt.Sprint("b", m.boot))})
			},
			"vouch": func(t *rapid.T) { // an operator says the truth
				for _, m := range machines {
					if h, ok := fsm.Get[*fsm.Hold](r.Read(), fsm.TableHolds, "l2-"+string(m.id)); ok && m.off {
						r.commit(&fsm.ReleaseHold{ID: h.ID})
					}
				}
			},
			"": func(*rapid.T) { alone() },
		})
	})
}
