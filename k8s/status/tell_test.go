// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"

	"fairlead.io/fairlead/fsm"
)

// listener tells one Service's story step by step.
type listener struct {
	b    *book
	told story
}

// hears gives what is told since the last time, a line each.
func (l *listener) hears(why ...Explanation) string {
	next := storyOf(factsOf(l.b.Read(), "default/web", "uid-default/web"), Explain(why), &l.told)
	said := tell("default/web", &l.told, &next)
	l.told = next
	var out []string
	for _, s := range said {
		kind := "Normal "
		if s.warning {
			kind = "Warning "
		}
		out = append(out, kind+s.reason+": "+s.note)
	}
	return strings.Join(out, "\n")
}

func TestEventsTellTheStoryOfAService(t *testing.T) {
	b := newBook(t)
	l := &listener{b: b, told: story{uid: "uid-default/web"}}
	expect := func(want string, why ...Explanation) {
		t.Helper()
		if got := l.hears(why...); got != want {
			t.Fatalf("told\n%s\nwant\n%s", got, want)
		}
		if again := l.hears(why...); again != "" {
			t.Fatalf("told twice: %s", again)
		}
	}
	expect("")
	b.service(t, "default/web", pending("pool-exhausted", "every pool has run out"))
	expect("Warning AddressPending: every pool has run out")
	b.service(t, "default/web", requested("203.0.113.9"), pending("address-taken", "203.0.113.9 belongs to Service a/b"))
	expect("Warning AddressRefused: 203.0.113.9 belongs to Service a/b")
	b.service(t, "default/web")
	b.allocate(t, "default/web", "203.0.113.10")
	expect("Normal AddressAllocated: 203.0.113.10 (pool public)\nWarning NotAnnounced: 203.0.113.10: no endpoint is ready",
		Explanation{"routes", "203.0.113.10/32", "no-next-hop", "no endpoint is ready"})
	b.route(t, "203.0.113.10", "n1", "n2")
	expect("Normal NotAnnounced: 203.0.113.10: waits until its rules are acknowledged by n1 (192.0.2.1), n2 (192.0.2.2)")
	b.acknowledge(t, "n1", "n2")
	b.announce(t)
	expect("Normal Announced: 203.0.113.10 via n1 (192.0.2.1), n2 (192.0.2.2)")
	b.route(t, "203.0.113.10", "n2", "n3")
	b.acknowledge(t, "n3")
	expect("Normal NextHopsChanged: 203.0.113.10 via n2 (192.0.2.2), n3 (192.0.2.3): new n3; without n1")
	b.restart(t)
	expect("") // a restart of the members withdraws nothing
	b.route(t, "203.0.113.10")
	expect("Warning Withdrawn: 203.0.113.10: no endpoint is ready", Explanation{"routes", "203.0.113.10/32", "no-next-hop", "no endpoint is ready"})
	b.serve(t, "default/web", "203.0.113.10", "n1")
	expect("Normal Announced: 203.0.113.10 via n1 (192.0.2.1)")
	b.route(t, "203.0.113.10")
	expect("Warning Withdrawn: 203.0.113.10: default/web is being drained", Explanation{"routes", "203.0.113.10/32", "service-drained", "default/web is being drained"})
	b.serve(t, "default/web", "203.0.113.11", "n1")
	b.do(t, &fsm.ReleaseAllocation{Address: netip.MustParseAddr("203.0.113.10"), Service: "default/web"})
	expect("Normal AddressAllocated: 203.0.113.11 (pool public)\nNormal Announced: 203.0.113.11 via n1 (192.0.2.1)\nNormal AddressReleased: 203.0.113.10 (pool public)")
	b.service(t, "default/web", func(s *fsm.Service) { s.Deleting = true })
	expect("Normal Withdrawn: 203.0.113.11: the Service gave it up")
}

func TestANewLeaderRepeatsNothingThatConditionsSay(t *testing.T) {
	for name, prepare := range map[string]func(b *book){
		"announced": func(b *book) { b.serve(t, "default/web", "203.0.113.10", "n1") },
		"pending":   func(b *book) { b.service(t, "default/web", pending("no-pool", "add a pool")) },
		"half": func(b *book) {
			b.service(t, "default/web", pending("no-pool", "add a pool"))
			b.serve(t, "default/web", "203.0.113.10", "n1")
		},
		"waiting": func(b *book) {
			b.allocate(t, "default/web", "203.0.113.10")
			b.route(t, "203.0.113.10", "n1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := newBook(t), newServed("web", corev1.ServiceTypeLoadBalancer, "")
			b.service(t, "default/web")
			prepare(b)
			f := factsOf(b.Read(), "default/web", "uid-default/web")
			now := storyOf(f, nil, &story{})
			if said := tell("default/web", recall(&now, s.seen()), &now); len(said) == 0 {
				t.Error("nothing is told of what nobody has told yet")
			}
			one(b, s, nil, ours, noon) // as the leader before did
			if said := tell("default/web", recall(&now, s.seen()), &now); len(said) > 0 {
				t.Errorf("repeated: %+v", said)
			}
		})
	}
}

func TestTwoLeadersThatTellTheSameMakeOneEvent(t *testing.T) {
	b := newBook(t)
	b.service(t, "default/web")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	names := func() (out []string) {
		next := storyOf(factsOf(b.Read(), "default/web", "uid-default/web"), nil, &story{})
		for _, said := range tell("default/web", &story{}, &next) {
			out = append(out, said.event("m1", noon).Name)
		}
		return out
	}
	first := names()
	if len(first) != 2 || first[0] == first[1] {
		t.Fatalf("names %q", first)
	}
	b.acknowledge(t, "n2") // the record goes on
	if second := names(); !slices.Equal(first, second) {
		t.Errorf("another leader tells it as %q, not %q", second, first)
	}
	b.route(t, "203.0.113.10")
	b.serve(t, "default/web", "203.0.113.10", "n1")
	if later := names(); later[1] == first[1] {
		t.Error("an announcement after a withdrawal is taken for the first one")
	}
}

func TestEventsAreWhatTheAPIServerTakes(t *testing.T) {
	long := telling{id: fsm.ServiceID("default/" + strings.Repeat("a", 253)), uid: "u", warning: true, reason: EventWithdrawn, note: strings.Repeat("x", 5000)}
	e := long.event("m1", noon)
	if len(e.Name) > 253 || len(apivalidation.IsDNS1123Subdomain(e.Name)) > 0 {
		t.Errorf("name %q", e.Name)
	}
	if len(e.Note) > 1024 || e.Type != corev1.EventTypeWarning || e.Action == "" || e.ReportingController == "" || e.ReportingInstance != "m1" || e.EventTime.IsZero() {
		t.Errorf("event %+v", e)
	}
	if e.Regarding.Kind != "Service" || e.Regarding.Namespace != "default" || e.Namespace != "default" || e.Regarding.UID != "u" {
		t.Errorf("regarding %+v", e.Regarding)
	}
}

func TestMessagesNameAFewNodesOnly(t *testing.T) {
	var ways []way
	for i := range 100 {
		ways = append(ways, way{"n", netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})})
	}
	if text := listWays(ways); !strings.HasSuffix(text, " and 95 more") || strings.Count(text, "(") != 5 {
		t.Error(text)
	}
}
