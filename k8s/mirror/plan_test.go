// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/api/lbcf"
	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// adopted is what LBCF left of a pod, and what the record made of it.
func adopted(t *testing.T, b *book, leaving bool) (Key, *v1beta1.BackendRecord) {
	t.Helper()
	put := pod(1, "weight", "80")
	b.do(t, &fsm.AdoptBinding{Binding: fsm.PutBinding{
		ID: put.ID, Balancer: put.Balancer, Owner: put.Owner, Address: "10.0.0.1:8080", Parameters: put.Parameters, Backend: put.Backend,
		Attributes: put.Attributes, Ensure: fsm.EnsurePolicy{Policy: "Always", Period: 30 * time.Second},
	}, UID: "lbcf-uid", Origin: fsm.Origin{UID: "lbcf-uid", Made: 1_600_000_000}, Returned: kv("memberID", "m-1"), Registered: true, Leaving: leaving})
	o := &v1beta1.BackendRecord{}
	text := `{"metadata":{"namespace":"shop","uid":"lbcf-uid","resourceVersion":"7","finalizers":["lbcf.tkestack.io/deregister-backend"],"labels":{"lbcf.tkestack.io/lb-driver":"clb","lbcf.tkestack.io/lb-name":"edge","lbcf.tkestack.io/backend-group":"web","lbcf.tkestack.io/backend-pod":"web-1"}},
		"spec":{"lbName":"edge","lbDriver":"clb","lbInfo":{"vip":"192.0.2.1"},"lbAttributes":{"algo":"rr"},"parameters":{"weight":"80"},
			"podBackend":{"name":"web-1","port":{"portNumber":8080,"port":0}},"ensurePolicy":{"policy":"Always","minPeriod":"30s"}},
		"status":{"backendAddr":"10.0.0.1:8080","injectedInfo":{"memberID":"m-1"},"conditions":[{"type":"Registered","status":"True","lastTransitionTime":"2021-01-01T00:00:00Z","message":"old words"}]}}`
	if err := json.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	k := recordKey(put.ID)
	o.Name = k.Name
	return k, o
}

func verbOf(w *Write) Verb {
	if w == nil {
		return ""
	}
	return w.Verb
}

func gone(o *v1beta1.BackendRecord) *v1beta1.BackendRecord {
	out := o.DeepCopy()
	at := metav1.NewTime(noon)
	out.DeletionTimestamp = &at
	return out
}

// lbcf §13, INV-6
func TestATakenOverRecordIsLeftAsItIsUntilItGoes(t *testing.T) {
	b := newBook(t)
	b.edgeReady(t)
	k, o := adopted(t, b, false)
	if w := planRecord(b.Read(), k, o, noon); w != nil {
		t.Fatalf("%s of what is unchanged: %+v", w.Verb, w.Object)
	}
	next := o.DeepCopy()
	next.Spec.Parameters = nil
	if w := planRecord(b.Read(), k, next, noon); verbOf(w) != Update {
		t.Errorf("%s of what is wrong", verbOf(w))
	}
	b.do(t, &fsm.RemoveBinding{ID: name(1)})
	w := planRecord(b.Read(), k, o, noon)
	if verbOf(w) != Patch || !strings.HasPrefix(w.Object.GetAnnotations()[lbcf.AnnotationRecord], "g/") {
		t.Fatalf("before it goes it has to say what it shows: %s", verbOf(w))
	}
	marked := w.Object.(*v1beta1.BackendRecord)
	if w := planRecord(b.Read(), k, marked, noon); verbOf(w) != Delete {
		t.Errorf("then %s", verbOf(w))
	}
	if w := planRecord(b.Read(), k, gone(marked), noon); w != nil {
		t.Errorf("before the driver confirmed: %s", w.Verb)
	}
	b.deregistered(t, 1)
	stranger := gone(o)
	stranger.UID = "another"
	if w := planRecord(b.Read(), k, stranger, noon); w != nil {
		t.Errorf("%s of a stranger's", w.Verb)
	}
	late := takenDown(t, b, k, o)
	if w := planRecord(b.Read(), k, gone(late), noon); verbOf(w) != Patch || len(w.Object.GetFinalizers()) != 0 {
		t.Errorf("in the end of one that could not be marked in time %s", verbOf(w))
	}
	if w := planRecord(b.Read(), k, gone(o), noon); verbOf(w) != Patch || len(w.Object.GetFinalizers()) != 1 {
		t.Errorf("%s of one that goes and could not be marked in time", verbOf(w))
	}
	if w := planRecord(b.Read(), k, gone(marked), noon); verbOf(w) != Patch || len(w.Object.GetFinalizers()) != 0 {
		t.Errorf("in the end %s", verbOf(w))
	}
}

// takenDown checks that what could not be marked in time is marked and then deleted, and gives it as it is in between.
func takenDown(t *testing.T, b *book, k Key, o *v1beta1.BackendRecord) *v1beta1.BackendRecord {
	t.Helper()
	w := planRecord(b.Read(), k, o, noon)
	if verbOf(w) != Patch || w.Object.GetAnnotations()[lbcf.AnnotationRecord] != "g/"+string(o.UID) {
		t.Fatalf("%s: it has to say what it shows before it goes", verbOf(w))
	}
	marked := w.Object.(*v1beta1.BackendRecord)
	if w := planRecord(b.Read(), k, marked, noon); verbOf(w) != Delete {
		t.Errorf("then %s", verbOf(w))
	}
	return marked
}

// lbcf §13: what is left of a binding that was taken over goes, also when another one of its name was there in between that nobody
// could show. What LBCF made anew since is not ours to take down.
func TestWhatWasTakenOverGoesWhateverHadItsNameSince(t *testing.T) {
	b := newBook(t)
	b.edgeReady(t)
	k, o := adopted(t, b, false)
	b.do(t, &fsm.RemoveBinding{ID: name(1)})
	b.deregistered(t, 1)
	another := o.DeepCopy()
	another.UID = "lbcf-uid-2"
	b.do(t, pod(1, "weight", "80"))
	takenDown(t, b, k, o)
	if w := planRecord(b.Read(), k, another, noon); w != nil {
		t.Errorf("%s of LBCF's, which is to be taken over", w.Verb)
	}
	b.do(t, &fsm.RemoveBinding{ID: name(1)})
	if _, there := fsm.Get[*fsm.Binding](b.Read(), fsm.TableBindings, string(name(1))); there {
		t.Fatal("it was asked for")
	}
	takenDown(t, b, k, o)
	if w := planRecord(b.Read(), k, another, noon); w != nil {
		t.Errorf("%s of LBCF's, which is to be taken over", w.Verb)
	}
}

// A BackendRecord loses its finalizer only where the record proves that its binding is over.
func TestAMarkProvesOnlyWhatTheGroupCanKnow(t *testing.T) {
	b := newBook(t)
	b.edgeReady(t)
	b.do(t, pod(1))
	made := planRecord(b.Read(), recordKey(name(1)), nil, noon).Object.(*v1beta1.BackendRecord)
	made.UID = "u"
	stale := b.Read()
	b.do(t, &fsm.RemoveBinding{ID: name(1)})
	at := b.Read().Revision()
	mark := func(group string, r fsm.Revision) *v1beta1.BackendRecord {
		o := made.DeepCopy()
		_, uid := markOf(o)
		o.Annotations = map[string]string{lbcf.AnnotationRecord: group + uid + "-other", lbcf.AnnotationRevision: r.String()}
		return o
	}
	later := fsm.Revision{Epoch: at.Epoch, Index: at.Index + 1}
	younger := fsm.Revision{Epoch: at.Epoch + 1, Index: 1}
	for _, c := range []struct {
		what string
		o    *v1beta1.BackendRecord
		want Verb
	}{
		{"made here", mark("g/", at), Delete}, {"made here, going", gone(mark("g/", at)), Patch},
		{"made by one who knew more", mark("g/", later), ""}, {"made in a later life", mark("g/", younger), ""},
		{"another group's", mark("h/", at), ""}, {"marked without a group", mark("", at), Delete}, {"marked without a revision", func() *v1beta1.BackendRecord {
			o := mark("g/", at)
			delete(o.Annotations, lbcf.AnnotationRevision)
			return o
		}(), Delete},
	} {
		if w := planRecord(b.Read(), recordKey(name(1)), c.o, noon); verbOf(w) != c.want {
			t.Errorf("%s: %q, want %q", c.what, verbOf(w), c.want)
		}
	}
	// A view from before is no proof, and one that still has the binding wants it shown.
	if w := planRecord(stale, recordKey(name(1)), gone(made), noon); w != nil {
		t.Errorf("while it is bound: %s", w.Verb)
	}
	b.do(t, &fsm.NewEpoch{Group: "g", Epoch: at.Epoch + 1, Cause: "restore"})
	if w := planRecord(b.Read(), recordKey(name(1)), mark("g/", at), noon); w != nil {
		t.Errorf("%s of what may have to be taken over after a restore", w.Verb)
	}
	b.do(t, &fsm.EndQuarantine{Since: b.Read().Group().Quarantine})
	if w := planRecord(b.Read(), recordKey(name(1)), mark("g/", at), noon); verbOf(w) != Delete {
		t.Errorf("after the quarantine: %q", verbOf(w))
	}
}

// lbcf §2.4: a pod that is wanted again has a new binding; its object goes on if its owner is the same.
func TestAnObjectOfAFormerLifeIsGivenToTheNewOne(t *testing.T) {
	b := newBook(t)
	b.edgeReady(t)
	b.do(t, pod(1))
	k := recordKey(name(1))
	o := planRecord(b.Read(), k, nil, noon).Object.(*v1beta1.BackendRecord)
	b.do(t, &fsm.RemoveBinding{ID: name(1)}, pod(1))
	row, _ := fsm.Get[*fsm.Binding](b.Read(), fsm.TableBindings, string(name(1)))
	w := planRecord(b.Read(), k, o, noon)
	if verbOf(w) != Update || w.Object.GetAnnotations()[lbcf.AnnotationRecord] != "g/"+row.UID {
		t.Errorf("%s", verbOf(w))
	}
	o.Status = v1beta1.BackendRecordStatus{BackendAddr: "10.0.0.1:8080", Conditions: []v1beta1.Condition{
		{Type: v1beta1.ConditionRegistered, Status: metav1.ConditionTrue},
	}}
	w = planRecord(b.Read(), k, o, noon)
	if verbOf(w) != UpdateStatus || len(w.Object.(*v1beta1.BackendRecord).Status.Conditions) > 0 || isOf(row, w.Object.(*v1beta1.BackendRecord)) {
		t.Errorf("of one that was registered: %s %+v", verbOf(w), w.Object)
	}
	b.addressed(t, 1)
	b.ensured(t, 1, "")
	if w = planRecord(b.Read(), k, o, noon); verbOf(w) != UpdateStatus {
		t.Errorf("of one that is registered with other news: %s", verbOf(w))
	}
	o.Status = w.Object.(*v1beta1.BackendRecord).Status
	if w = planRecord(b.Read(), k, o, noon); verbOf(w) != Update {
		t.Errorf("of one that is registered as it says: %s", verbOf(w))
	}
	if w := planRecord(b.Read(), k, gone(o), noon); verbOf(w) != Patch || len(w.Object.GetFinalizers()) != 0 {
		t.Errorf("of one that is going: %s", verbOf(w))
	}
	o.OwnerReferences[0].UID = "another"
	if w := planRecord(b.Read(), k, o, noon); verbOf(w) != Delete {
		t.Errorf("of another owner's, which goes with that: %s", verbOf(w))
	}
}

// lbcf §2.4: what drivers and people find in a BackendRecord of a Service, of a static address and of a Bind.
func TestRecordsOfEveryKindOfBackend(t *testing.T) {
	b := newBook(t)
	b.edgeReady(t)
	entry := fsm.BalancerID("Bind/shop/both/b-uid/inner")
	b.do(t, &fsm.PutLoadBalancer{ID: entry, Driver: "kube-system/lbcf-clb", Info: kv("vip", "192.0.2.2"), Synced: true})
	long := strings.Repeat("p", 80)
	for i, c := range []struct {
		put                 fsm.PutBinding
		spec, labels, owner string
	}{
		{fsm.PutBinding{Balancer: edge, Owner: "BackendGroup/shop/nodes/g2", Backend: fsm.Backend{Kind: "Service", Name: "web", Port: 80, Protocol: "TCP", NodePort: 31080, Node: "n1"}},
			`{"lbName":"edge","lbDriver":"clb","lbInfo":{"vip":"192.0.2.1"},"lbAttributes":null,"parameters":null,"serviceBackend":{"name":"web","port":{"port":80,"protocol":"TCP"},"nodePort":31080,"nodeName":"n1"}}`,
			"lbcf.tkestack.io/backend-group=nodes lbcf.tkestack.io/backend-service=web lbcf.tkestack.io/lb-driver=clb lbcf.tkestack.io/lb-name=edge", "lbcf.tkestack.io/v1beta1 BackendGroup nodes g2"},
		{fsm.PutBinding{Balancer: edge, Owner: "BackendGroup/shop/fixed/g3", Address: "192.0.2.7:443", Backend: fsm.Backend{Kind: "Static"}, Ensure: fsm.EnsurePolicy{Policy: "IfNotSucc"}},
			`{"lbName":"edge","lbDriver":"clb","lbInfo":{"vip":"192.0.2.1"},"lbAttributes":null,"parameters":null,"staticAddr":"192.0.2.7:443","ensurePolicy":{"policy":"IfNotSucc"}}`,
			"lbcf.tkestack.io/backend-group=fixed lbcf.tkestack.io/lb-driver=clb lbcf.tkestack.io/lb-name=edge", "lbcf.tkestack.io/v1beta1 BackendGroup fixed g3"},
		{fsm.PutBinding{Balancer: entry, Owner: "Bind/shop/both/b-uid", Backend: fsm.Backend{Kind: "Pod", Name: long, Port: 53, Protocol: "udp"}, Ensure: fsm.EnsurePolicy{Policy: "Always", Period: 90 * time.Second}},
			`{"lbName":"inner","lbDriver":"lbcf-clb","lbInfo":{"vip":"192.0.2.2"},"lbAttributes":null,"parameters":null,"podBackend":{"name":"` + long + `","port":{"port":53,"protocol":"udp"}},"ensurePolicy":{"policy":"Always","minPeriod":"1m30s"}}`,
			"lbcf.tkestack.io/bind=both lbcf.tkestack.io/driver=lbcf-clb lbcf.tkestack.io/lb=inner lbcf.tkestack.io/pod=" + lbcf.LabelValue(long), "lbcf.tkestack.io/v1 Bind both b-uid"},
	} {
		c.put.ID = name(i + 1)
		b.do(t, &c.put)
		o := planRecord(b.Read(), recordKey(c.put.ID), nil, noon).Object.(*v1beta1.BackendRecord)
		spec, err := json.Marshal(o.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if string(spec) != c.spec {
			t.Errorf("spec\n%s, want\n%s", spec, c.spec)
		}
		labels := strings.ReplaceAll(metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: o.Labels}), ",", " ")
		if labels != c.labels {
			t.Errorf("labels %s, want %s", labels, c.labels)
		}
		ref := metav1.GetControllerOf(o)
		if got := fmt.Sprint(ref.APIVersion, " ", ref.Kind, " ", ref.Name, " ", ref.UID); got != c.owner {
			t.Errorf("owner %s, want %s", got, c.owner)
		}
		o.UID = "u"
		if w := planRecord(b.Read(), recordKey(c.put.ID), o, noon); w != nil && w.Verb == Update {
			t.Errorf("update of what was just made: %+v", w.Object)
		}
	}
}

// lbcf §2.2, INV-14: a LoadBalancer keeps its finalizer until the record is done with it.
func TestTheFinalizerOfALoadBalancerGoesLast(t *testing.T) {
	k := Key{LoadBalancer, "shop", "edge"}
	at := metav1.NewTime(noon)
	plain := v1beta1.LoadBalancer{ObjectMeta: metav1.ObjectMeta{UID: "lb-uid", Finalizers: []string{lbcf.FinalizerLoadBalancer, "example.com/theirs"}, DeletionTimestamp: &at}}
	plain.Spec.LBDriver = "clb"
	known := plain
	known.Status = v1beta1.LoadBalancerStatus{LBInfo: map[string]string{"vip": "192.0.2.1"}, Conditions: []v1beta1.Condition{{Type: "Created", Status: "True"}}}
	b := newBook(t)
	if w := planBalancer(b.Read(), k, &plain, noon); verbOf(w) != Patch || len(w.Object.GetFinalizers()) != 1 {
		t.Errorf("one that nobody created: %s", verbOf(w))
	}
	if w := planBalancer(b.Read(), k, &known, noon); w != nil {
		t.Errorf("one that is to be taken over: %s", w.Verb)
	}
	b.edgeReady(t)
	for _, o := range []v1beta1.LoadBalancer{plain, known} {
		if w := planBalancer(b.Read(), k, &o, noon); w != nil {
			t.Errorf("one that is there: %s", w.Verb)
		}
	}
	b.do(t, &fsm.DeleteLoadBalancer{ID: edge})
	b.must(t, fsm.BeginOperation{Action: fsm.ActionDeleteBalancer, Balancer: edge}, succeeded(""))
	if w := planBalancer(b.Read(), k, &known, noon); verbOf(w) != Patch {
		t.Errorf("one that its driver deleted: %s", verbOf(w))
	}
	known.UID = types.UID("another")
	if w := planBalancer(b.Read(), k, &known, noon); w != nil {
		t.Errorf("another one of the name: %s", w.Verb)
	}
}

// lbcf §2.5, §5.8
func TestABindShowsTheLifeOfEachLoadBalancer(t *testing.T) {
	b, k := newBook(t), Key{Bind, "shop", "both"}
	id := func(entry string) fsm.BalancerID { return balancer{Key: k, UID: "b-uid", Entry: entry}.id() }
	o := &v1.Bind{ObjectMeta: metav1.ObjectMeta{UID: "b-uid"}}
	o.Spec.LoadBalancers = []v1.TargetLoadBalancer{{Name: "z"}, {Name: "a"}}
	entries := func() map[string]*fsm.LoadBalancer {
		out := map[string]*fsm.LoadBalancer{}
		for _, l := range fsm.List[*fsm.LoadBalancer](b.Read(), fsm.TableBalancers) {
			of, _ := balancerOf(l.ID)
			out[of.Entry] = l
		}
		return out
	}
	step := func(want Verb, status string) {
		t.Helper()
		w := planBind(b.Read(), k, entries(), o, noon)
		if verbOf(w) != want {
			t.Fatalf("%q, want %q", verbOf(w), want)
		}
		if w != nil {
			o = w.Object.(*v1.Bind)
		}
		var got []string
		for _, s := range o.Status.LoadBalancerStatuses {
			text := s.Name + "@" + s.Driver
			if len(s.LBInfo) > 0 {
				text += fmt.Sprint(s.LBInfo, s.LastSyncedAttributes)
			}
			if s.DeletionTimestamp != nil {
				text += " going"
			}
			for _, c := range s.Conditions {
				text += fmt.Sprintf(" %s=%s(%s)", c.Type, c.Status, c.Reason)
			}
			got = append(got, text)
		}
		if strings.Join(got, "; ") != status {
			t.Errorf("status\n%s, want\n%s", strings.Join(got, "; "), status)
		}
	}
	step(Patch, "") // its finalizer
	for _, entry := range []string{"a", "z"} {
		b.do(t, &fsm.PutLoadBalancer{ID: id(entry), Driver: "shop/clb", Spec: kv("name", entry), Attributes: kv("algo", "rr"), UID: "b-uid-" + entry})
	}
	create := func(entry string) fsm.BeginOperation {
		return fsm.BeginOperation{Action: fsm.ActionCreateBalancer, Balancer: id(entry)}
	}
	ensure := fsm.BeginOperation{Action: fsm.ActionEnsureBalancer, Balancer: id("z")}
	step(UpdateStatus, "z@clb; a@clb")
	b.must(t, create("z"), running("soon"))
	b.must(t, create("a"), refusedWith("no"))
	step(UpdateStatus, "z@clb Created=False(Creating); a@clb Created=False(CreateFailed)")
	b.must(t, create("a"), fsm.FinishOperation{Result: fsm.ResultUnknown, Message: "no answer in 10s"})
	step(UpdateStatus, "z@clb Created=False(Creating); a@clb Created=False(WebhookError)")
	b.must(t, create("z"), succeeded("made", kv("vip", "192.0.2.1")...))
	step(UpdateStatus, "z@clbmap[vip:192.0.2.1] map[algo:rr] Created=True() Ready=True(); a@clb Created=False(WebhookError)")
	step("", "z@clbmap[vip:192.0.2.1] map[algo:rr] Created=True() Ready=True(); a@clb Created=False(WebhookError)")
	b.do(t, &fsm.PutLoadBalancer{ID: id("z"), Driver: "shop/clb", Spec: kv("name", "z"), Attributes: kv("algo", "hash"), UID: "b-uid-z"})
	b.must(t, ensure, running("at it"))
	step("", "z@clbmap[vip:192.0.2.1] map[algo:rr] Created=True() Ready=True(); a@clb Created=False(WebhookError)")
	b.must(t, ensure, refusedWith("what is hash?"))
	step(UpdateStatus, "z@clbmap[vip:192.0.2.1] map[algo:rr] Created=True() Ready=False(EnsureFailed); a@clb Created=False(WebhookError)")
	b.must(t, ensure, running("at it again"))
	b.must(t, ensure, succeeded("set"))
	step(UpdateStatus, "z@clbmap[vip:192.0.2.1] map[algo:hash] Created=True() Ready=True(); a@clb Created=False(WebhookError)")
	b.do(t, &fsm.DeleteLoadBalancer{ID: id("z")})
	o.Spec.LoadBalancers = o.Spec.LoadBalancers[1:]
	step(UpdateStatus, "a@clb Created=False(WebhookError); z@clbmap[vip:192.0.2.1] map[algo:hash] going Created=True() Ready=True()")
	b.must(t, fsm.BeginOperation{Action: fsm.ActionDeleteBalancer, Balancer: id("z")}, succeeded(""))
	step(UpdateStatus, "a@clb Created=False(WebhookError)")
	at := metav1.NewTime(noon)
	o.DeletionTimestamp = &at
	step("", "a@clb Created=False(WebhookError)")
	b.do(t, &fsm.ForgetLoadBalancer{ID: id("a")})
	w := planBind(b.Read(), k, entries(), o, noon)
	if verbOf(w) != Patch || len(w.Object.GetFinalizers()) != 0 {
		t.Errorf("in the end: %s", verbOf(w))
	}
}

// lbcf §13: what LBCF created, and the record has yet to take over, stays as it is.
func TestABindKeepsWhatIsYetToBeTakenOver(t *testing.T) {
	b, k := newBook(t), Key{Bind, "shop", "both"}
	at := metav1.NewTime(noon)
	o := &v1.Bind{ObjectMeta: metav1.ObjectMeta{UID: "b-uid", Finalizers: []string{lbcf.FinalizerLoadBalancer}, DeletionTimestamp: &at}}
	o.Status.LoadBalancerStatuses = []v1.TargetLoadBalancerStatus{{
		Name: "a", Driver: "clb", LBInfo: map[string]string{"vip": "192.0.2.1"}, Conditions: []v1beta1.Condition{{Type: "Created", Status: "True"}},
	}}
	if w := planBind(b.Read(), k, nil, o, noon); w != nil {
		t.Errorf("%s %+v", w.Verb, w.Object)
	}
	o.Status.LoadBalancerStatuses[0].LBInfo = nil // LBCF could never delete such a Bind (lbcf §11 no. 23)
	if w := planBind(b.Read(), k, nil, o, noon); verbOf(w) != Patch {
		t.Errorf("one that was never created: %s", verbOf(w))
	}
}

// lbcf §2.3
func TestABackendGroupShowsItsNumbers(t *testing.T) {
	k := Key{Group, "shop", "web"}
	o := &v1beta1.BackendGroup{Status: v1beta1.BackendGroupStatus{Backends: 3, RegisteredBackends: 1}}
	if w := planGroup(k, o, 0, false, 1); w != nil {
		t.Errorf("%s without news", w.Verb)
	}
	if w := planGroup(k, o, 4, true, 2); verbOf(w) != UpdateStatus || w.Object.(*v1beta1.BackendGroup).Status != (v1beta1.BackendGroupStatus{Backends: 4, RegisteredBackends: 2}) {
		t.Errorf("%+v", w)
	}
}

// lbcf §2.1
func TestADriverIsAcceptedOnceTheRecordHasIt(t *testing.T) {
	b := newBook(t)
	k := Key{Driver, "shop", "clb"}
	o := &v1beta1.LoadBalancerDriver{}
	if w := planDriver(b.Read(), Key{Driver, "shop", "other"}, o, Reach{}, noon); w != nil {
		t.Errorf("%s of one that the record does not have", w.Verb)
	}
	w := planDriver(b.Read(), k, o, Reach{}, noon)
	if verbOf(w) != UpdateStatus || !is(w.Object.(*v1beta1.LoadBalancerDriver).Status.Conditions, "Accepted", metav1.ConditionTrue) {
		t.Fatalf("%+v", w)
	}
	o = w.Object.(*v1beta1.LoadBalancerDriver)
	if w := planDriver(b.Read(), k, o, Reach{}, noon.Add(time.Hour)); w != nil {
		t.Errorf("%s again", w.Verb)
	}
	away := Reach{Known: true, Message: "connection refused"}
	w = planDriver(b.Read(), k, o, away, noon)
	if verbOf(w) != UpdateStatus || !w.Patient || !is(w.Object.(*v1beta1.LoadBalancerDriver).Status.Conditions, "Reachable", metav1.ConditionFalse) {
		t.Errorf("%+v", w)
	}
}

// lbcf §11 no. 39
func TestWhenAConditionChangedMovesOnlyWithItsStatus(t *testing.T) {
	c := conditionsOf(nil, noon)
	c.set("Registered", metav1.ConditionFalse, "OperationFailed", "full")
	c = conditionsOf(c.list, noon.Add(time.Minute))
	c.set("Registered", metav1.ConditionFalse, "OperationFailed", "still full")
	if at := c.list[0].LastTransitionTime; !at.Time.Equal(noon) || c.list[0].Message != "still full" {
		t.Errorf("%+v", c.list)
	}
	c.set("Registered", metav1.ConditionTrue, "", "")
	if at := c.list[0].LastTransitionTime; !at.Time.Equal(noon.Add(time.Minute)) || c.list[0].Message != "" || len(c.list) != 1 {
		t.Errorf("%+v", c.list)
	}
}
