// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"fairlead.io/fairlead/fsm"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// While the API server is away the record goes on, and then everything is caught up by comparison.
func TestWhatHappenedWhileTheAPIServerWasAwayIsCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		b.edgeReady(t)
		defer lead(t, config(b, s))()
		for i := 1; i <= 4; i++ {
			b.do(t, pod(i))
			b.addressed(t, i)
			b.ensured(t, i, "")
		}
		pass(time.Minute)
		asked := 0
		s.fail = func(*Write) error { asked++; return errAway }
		for i := 1; i <= 4; i++ {
			b.do(t, &fsm.RemoveBinding{ID: name(i)})
			b.deregistered(t, i)
		}
		b.do(t, pod(1)) // wanted again
		b.addressed(t, 1)
		for i := 5; i <= 8; i++ {
			b.do(t, pod(i))
			b.addressed(t, i)
			b.ensured(t, i, "")
		}
		pass(time.Hour)
		if asked > 200 {
			t.Errorf("asked a server that is away %d times in an hour", asked)
		}
		s.mu.Lock()
		s.fail = nil
		s.mu.Unlock()
		pass(time.Minute)
		for i := 1; i <= 8; i++ {
			if there := s.record(i) != nil; there != (i == 1 || i > 4) {
				t.Errorf("record %d: %v", i, there)
			}
		}
		if _, uid := markOf(s.record(1)); uid == "" || s.record(1).Status.BackendAddr != "10.0.0.1:8080" {
			t.Errorf("the one that is wanted again: %+v", s.record(1))
		}
	})
}

// The address of the API server may come to lead to another cluster. Nothing is written there, and what somebody deleted here meanwhile is
// found as soon as it leads here again.
func TestNothingIsWrittenToAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		b.edgeReady(t)
		c := config(b, s)
		c.Ours = s.ours
		defer lead(t, c)()
		for i := 1; i <= 3; i++ {
			b.do(t, pod(i))
			b.addressed(t, i)
			b.ensured(t, i, "")
		}
		pass(time.Minute)
		s.elsewhere(true)
		writes, told := len(s.writes), len(s.events)+s.counts
		b.do(t, pod(4))
		b.addressed(t, 4)
		b.ensured(t, 4, "welcome")
		pass(time.Minute)
		if now := len(s.writes); now != writes {
			t.Errorf("%d writes to another cluster, the first is %s %s", now-writes, s.writes[writes].Verb, s.writes[writes].Key.ID())
		}
		if now := len(s.events) + s.counts; now != told {
			t.Errorf("%d events told to another cluster", now-told)
		}
		s.mu.Lock()
		delete(s.objects, recordKey(name(2)))
		s.mu.Unlock()
		s.elsewhere(false)
		pass(5 * time.Second)
		for i := 1; i <= 4; i++ {
			if s.record(i) == nil {
				t.Errorf("record %d is not there again", i)
			}
		}
	})
}

// A kind may be unknown and listed anew between two questions whether it is: what went meanwhile is found all the same.
func TestWhatWentBetweenTwoListsIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		b.edgeReady(t)
		defer lead(t, config(b, s))()
		b.do(t, pod(1))
		b.addressed(t, 1)
		pass(time.Minute)
		s.mu.Lock()
		delete(s.objects, recordKey(name(1)))
		s.mu.Unlock()
		s.elsewhere(false)
		pass(5 * time.Second)
		if s.record(1) == nil {
			t.Error("the record of a binding is not there again")
		}
	})
}

// A former leader made an object at the last moment, of a binding that ended since.
func TestWhatAFormerLeaderMadeAtTheLastMomentGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		b.edgeReady(t)
		b.do(t, pod(1))
		late := planRecord(b.Read(), recordKey(name(1)), nil, time.Now())
		b.do(t, &fsm.RemoveBinding{ID: name(1)})
		defer lead(t, config(b, s))()
		pass(time.Minute)
		if _, err := s.Do(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if o := s.record(1); o != nil {
			t.Errorf("still there: %+v", o)
		}
	})
}

// LBCF's flags bound what is asked of the API server; what users wait for goes first.
func TestWritesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		b.edgeReady(t)
		s.put(Key{LoadBalancer, "shop", "edge"}, &v1beta1.LoadBalancer{ObjectMeta: metav1.ObjectMeta{UID: "lb-uid"}})
		const pods = 600
		for i := range pods {
			b.do(t, pod(i+1))
			b.addressed(t, i+1)
			b.ensured(t, i+1, "")
		}
		c := config(b, s)
		c.Rate, c.Burst = 100, 50
		registry := prometheus.NewRegistry()
		c.Metrics = registry
		defer lead(t, c)()
		pass(time.Second)
		if n := len(s.writes); n > 151 || n < 140 {
			t.Errorf("%d writes in a second", n)
		}
		if got := s.verbs(LoadBalancer); got != "Patch UpdateStatus" {
			t.Errorf("what people wait for: %s", got)
		}
		pass(time.Minute)
		if n := len(s.writes); n != 2*pods+2 {
			t.Errorf("%d writes", n)
		}
		if n, err := testutil.GatherAndCount(registry, "k8s_operation_latency"); err != nil || n != 2 { // lbcf §8
			t.Errorf("%d series of k8s_operation_latency: %v", n, err)
		}
	})
}

// Own writes count before the watch shows them, but not for ever.
func TestAnswersCountUntilTheWatchIsPast(t *testing.T) {
	k := recordKey(name(1))
	object := func(uid, version string, finalizers ...string) *v1beta1.BackendRecord {
		o := &v1beta1.BackendRecord{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version, Finalizers: finalizers}}
		return o
	}
	for _, c := range []struct {
		what           string
		before         *v1beta1.BackendRecord // in the watch, when the write is answered
		verb           Verb
		got            *v1beta1.BackendRecord
		after          *v1beta1.BackendRecord // in the watch, later
		when           time.Duration
		uid, wantState string
	}{
		{"created, not shown", nil, Create, object("a", "5", "f"), nil, time.Second, "a", "5"},
		{"created, never shown", nil, Create, object("a", "5", "f"), nil, time.Minute, "", ""},
		{"created after another", object("z", "3"), Create, object("a", "5", "f"), object("z", "3"), time.Second, "a", "5"},
		{"changed, not shown", object("a", "5", "f"), UpdateStatus, object("a", "7", "f"), object("a", "6", "f"), time.Second, "a", "7"},
		{"changed, shown", object("a", "5", "f"), UpdateStatus, object("a", "7", "f"), object("a", "8", "f"), time.Second, "a", "8"},
		{"changed, gone", object("a", "5", "f"), UpdateStatus, object("a", "7", "f"), nil, time.Second, "", ""},
		{"changed, the server was set back", object("a", "5", "f"), UpdateStatus, object("a", "7", "f"), object("a", "4", "f"), time.Minute, "a", "4"},
		{"deleted, not shown", object("a", "5", "f"), Delete, object("a", "5", "f"), object("a", "5", "f"), time.Second, "a", "5 going"},
		{"deleted, nothing held it", object("a", "5"), Delete, object("a", "5"), object("a", "5"), time.Second, "", ""},
		{"gone and made anew", object("a", "5"), Delete, object("a", "5"), object("b", "9"), time.Second, "b", "9"},
	} {
		s := newServer()
		see := func(o *v1beta1.BackendRecord) {
			delete(s.watched, k)
			if o != nil {
				s.watched[k] = o
			}
		}
		see(c.before)
		x := sight{s, map[Key]answer{}}
		x.answered(&Write{Verb: c.verb, Key: k, Object: c.got}, c.got, noon)
		see(c.after)
		o := x.of(k, noon.Add(c.when))
		uid, state := "", ""
		if o != nil {
			uid, state = string(o.GetUID()), o.GetResourceVersion()
			if deleting(o) {
				state += " going"
			}
		}
		if uid != c.uid || state != c.wantState {
			t.Errorf("%s: %s %s, want %s %s", c.what, uid, state, c.uid, c.wantState)
		}
	}
}

// Nothing is made of what is not known yet.
func TestNothingIsWrittenBeforeTheObjectsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		b.edgeReady(t)
		b.do(t, pod(1), pod(2))
		s.put(recordKey(name(1)), &v1beta1.BackendRecord{})
		c, o := config(b, s), &incomplete{server: s}
		c.Objects = o
		defer lead(t, c)()
		pass(time.Minute)
		if n := len(s.writes); n != 0 {
			t.Fatalf("%d writes, the first %s", n, s.writes[0].Verb)
		}
		s.mu.Lock()
		o.complete = true
		s.mu.Unlock()
		pass(5 * time.Second)
		if s.record(2) == nil {
			t.Error("nothing is written afterwards")
		}
	})
}

// incomplete is a watch that has yet to list everything.
type incomplete struct {
	*server
	complete bool
}

func (o *incomplete) Complete(Kind) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.complete
}

func TestConfigSaysWhatIsMissing(t *testing.T) {
	if _, err := New(Config{}); err == nil || fmt.Sprint(err) != "mirror: config lacks Record" {
		t.Error(err)
	}
}

// lbcf §8: dashboards read LBCF's metrics by these names, labels and buckets; removing a finalizer is not measured as a write.
func TestMetricsAreThoseOfLBCF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		b.edgeReady(t)
		s.put(Key{LoadBalancer, "shop", "edge"}, &v1beta1.LoadBalancer{ObjectMeta: metav1.ObjectMeta{UID: "lb-uid"}})
		s.put(Key{Group, "shop", "web"}, &v1beta1.BackendGroup{ObjectMeta: metav1.ObjectMeta{UID: "g-uid"}})
		s.put(Key{Driver, "shop", "clb"}, &v1beta1.LoadBalancerDriver{})
		c, registry := config(b, s), prometheus.NewRegistry()
		c.Metrics = registry
		c.Expected = func(string) (int32, bool) { return 1, true }
		defer lead(t, c)()
		b.do(t, pod(1, "weight", "80"))
		b.addressed(t, 1)
		b.ensured(t, 1, "")
		pass(time.Second)
		b.do(t, pod(1, "weight", "50"))
		pass(time.Minute)
		b.do(t, &fsm.RemoveBinding{ID: name(1)})
		pass(time.Second)
		b.deregistered(t, 1)
		pass(time.Minute)
		want := map[string]string{
			"k8s_operation_latency": "HISTOGRAM BackendRecord/Create BackendRecord/Delete BackendRecord/Update BackendRecord/UpdateStatus",
			"key_process_latency":   "HISTOGRAM BackendGroup BackendRecord LoadBalancer LoadBalancerDriver",
			"working_key":           "GAUGE BackendGroup BackendRecord LoadBalancer LoadBalancerDriver",
			"pending_key":           "GAUGE BackendGroup BackendRecord Bind LoadBalancer LoadBalancerDriver",
		}
		labels := map[string]string{"k8s_operation_latency": "k8s_op_obj k8s_op_type", "key_process_latency": "crd", "working_key": "key_kind", "pending_key": "key_kind"}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if want[f.GetName()] == "" {
				continue
			}
			got := f.GetType().String()
			for _, m := range f.GetMetric() {
				var names, values []string
				for _, l := range m.GetLabel() {
					names, values = append(names, l.GetName()), append(values, l.GetValue())
				}
				if strings.Join(names, " ") != labels[f.GetName()] {
					t.Errorf("labels of %s are %v", f.GetName(), names)
				}
				got += " " + strings.Join(values, "/")
				if h := m.GetHistogram(); h != nil && (len(h.GetBucket()) != 24 || h.GetBucket()[0].GetUpperBound() != 0.02 || h.GetBucket()[23].GetUpperBound() != 60) {
					t.Errorf("buckets of %s: %v", f.GetName(), h.GetBucket())
				}
			}
			if got != want[f.GetName()] {
				t.Errorf("%s: %s, want %s", f.GetName(), got, want[f.GetName()])
			}
			delete(want, f.GetName())
		}
		if len(want) > 0 {
			t.Errorf("without %v", want)
		}
	})
}

// Load balancers of a Bind that went and came back before anybody looked are shown, whichever place the record has for them.
func TestABindShowsWhatWentAndCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		k := Key{Bind, "shop", "both"}
		s.put(k, &v1.Bind{ObjectMeta: metav1.ObjectMeta{UID: "b-uid"}})
		entry := func(name string) fsm.BalancerID { return balancer{Key: k, UID: "b-uid", Entry: name}.id() }
		put := func(vip string) {
			for _, name := range []string{"one", "two"} {
				b.do(t, &fsm.PutLoadBalancer{ID: entry(name), Driver: "shop/clb", Info: kv("vip", vip), UID: "b-uid/" + name})
			}
		}
		put("192.0.2.1")
		defer lead(t, config(b, s))()
		pass(time.Minute)
		b.do(t, &fsm.ForgetLoadBalancer{ID: entry("one")}, &fsm.ForgetLoadBalancer{ID: entry("two")})
		put("192.0.2.2")
		pass(time.Minute)
		got := s.get(k).(*v1.Bind).Status.LoadBalancerStatuses
		for _, status := range got {
			if status.LBInfo["vip"] != "192.0.2.2" {
				t.Errorf("%s is shown as it was: %+v", status.Name, status)
			}
		}
		if len(got) != 2 {
			t.Errorf("%d are shown, want 2", len(got))
		}
	})
}

// A BackendGroup that was deleted and made anew takes over the backends of the former one, and counts them.
func TestABackendGroupMadeAnewCountsWhatItTookOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		b.edgeReady(t)
		k := Key{Group, "shop", "web"}
		s.put(k, &v1beta1.BackendGroup{ObjectMeta: metav1.ObjectMeta{UID: "anew"}})
		defer lead(t, config(b, s))()
		b.do(t, pod(1))
		b.addressed(t, 1)
		b.ensured(t, 1, "")
		pass(time.Minute)
		taken := pod(1)
		taken.Owner = "BackendGroup/shop/web/anew"
		b.do(t, taken)
		pass(time.Minute)
		if got := s.get(k).(*v1beta1.BackendGroup).Status.RegisteredBackends; got != 1 {
			t.Errorf("%d backends are said to be registered, not the one that was taken over", got)
		}
	})
}
