// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/informers"
	"fairlead.io/fairlead/k8s/writes"
)

// real is a real API server, and a projector that reads a record of the test's own.
type real struct {
	t   *testing.T      // the subtest
	ctx context.Context // of the whole test
	*kubetest.Cluster
	b     *book
	store *Store
	next  int
	stop  func()
	log   testkit.Log
}

// open connects as a member does.
func (r *real) open(config *rest.Config) *client.API {
	r.t.Helper()
	api, err := client.New(config)
	if err != nil {
		r.t.Fatal(err)
	}
	return api
}

// api is what a projector writes to with an account.
func (r *real) api(account *rest.Config) Kubernetes {
	r.t.Helper()
	api := r.open(account)
	return Kubernetes{Services: api.Client.CoreV1(), Events: api.Client.EventsV1()}
}

// watch fills the store by the watch that a member has.
func (r *real) watch() {
	source, err := informers.New(informers.Options{API: r.open(r.Config()), Services: r.store, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.t.Fatal(err)
	}
	go func() { _ = source.Run(r.ctx) }() // it ends with the test, without an error
}

// lead runs a projector until the test or stop ends it.
func (r *real) lead(account *rest.Config, o Options) {
	r.t.Helper()
	p, err := New(Config{
		Record: r.b, Store: r.store, API: r.api(account), Clock: machineClock{},
		Log: slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Options: o, Instance: "m1", Waiting: func() []Explanation { return nil },
		Timing: Timing{Settle: 200 * time.Millisecond, Recheck: time.Second},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	r.stop = func() {
		cancel()
		<-done
	}
}

// service makes a Service in Kubernetes and in the record, and gives its name.
func (r *real) service(change ...func(*corev1.Service)) string {
	r.t.Helper()
	r.next++
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web%d", r.next)}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	for _, c := range change {
		c(o)
	}
	got, err := r.Client().CoreV1().Services("default").Create(r.t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	b := r.b
	b.service(r.t, "default/"+o.Name, external(o.Spec.ExternalIPs...), uid(got.UID))
	return o.Name
}

// announce gives the Service an address that is announced at once, and returns it.
func (r *real) announce(name string) string {
	r.t.Helper()
	address := fmt.Sprintf("203.0.113.%d", r.next)
	r.b.serve(r.t, "default/"+name, address, "n1")
	return address
}

func (r *real) get(name string) *corev1.Service {
	r.t.Helper()
	o, err := r.Client().CoreV1().Services("default").Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

// eventually waits until a Service is as it shall be.
func (r *real) eventually(what, name string, good func(*corev1.Service) bool) *corev1.Service {
	r.t.Helper()
	var o *corev1.Service
	testkit.Eventually(r.t, name+": "+what, func() error {
		if o = r.get(name); !good(o) {
			return fmt.Errorf("%+v\n%s", o.Status, r.log.String())
		}
		return nil
	})
	return o
}

// eventuallyAll waits until all Services are as they shall be.
func (r *real) eventuallyAll(what string, good func(*corev1.Service) bool) {
	r.t.Helper()
	list, err := r.Client().CoreV1().Services("default").List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range list.Items {
		r.eventually(what, list.Items[i].Name, good)
	}
}

// steadily looks at a Service for a while and fails if it changes.
func (r *real) steadily(name string) {
	r.t.Helper()
	was := r.get(name).ResourceVersion
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if now := r.get(name).ResourceVersion; now != was {
			r.t.Fatalf("%s: resourceVersion went from %s to %s though nothing changed", name, was, now)
		}
	}
}

// patch is another manager's write of the status.
func (r *real) patch(name, manager, merge string) {
	r.t.Helper()
	_, err := r.Client().CoreV1().Services("default").Patch(r.t.Context(), name, types.MergePatchType, []byte(merge),
		metav1.PatchOptions{FieldManager: manager}, "status")
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *real) turn(name, spec string) {
	r.t.Helper()
	_, err := r.Client().CoreV1().Services("default").Patch(r.t.Context(), name, types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
}

func showing(o *corev1.Service) string {
	var out []string
	for _, in := range o.Status.LoadBalancer.Ingress {
		text := in.IP
		if in.IPMode != nil {
			text += "/" + string(*in.IPMode)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func shown(address string) func(*corev1.Service) bool {
	return func(o *corev1.Service) bool { return showing(o) == address+"/VIP" }
}

// fieldsOf lists the fields that a manager owns in the status: the leaves of its set.
func fieldsOf(t *testing.T, o *corev1.Service, manager string) []string {
	t.Helper()
	var out []string
	for _, m := range o.ManagedFields {
		if m.Manager != manager {
			continue
		}
		var tree map[string]any
		if err := json.Unmarshal(m.FieldsV1.GetRawBytes(), &tree); err != nil {
			t.Fatal(err)
		}
		var walk func(path string, tree map[string]any)
		walk = func(path string, tree map[string]any) {
			if len(tree) == 0 {
				out = append(out, string(m.Operation)+" "+m.Subresource+" "+path)
			}
			for _, key := range slices.Sorted(maps.Keys(tree)) {
				if key != "." {
					walk(path+"/"+key, tree[key].(map[string]any))
				}
			}
		}
		walk("", tree)
	}
	return out
}

func TestRealAPIServer(t *testing.T) {
	r := &real{t: t, ctx: t.Context(), Cluster: kubetest.Start(t, kubetest.Options{NoControllers: true}), b: newBook(t), store: NewStore()}
	r.watch()
	r.lead(r.Config(), ours)
	for _, test := range []struct {
		name string
		f    func(*testing.T, *real)
	}{
		{"AnnouncedAddressIsShownWithModeAndNothingMore", announcedIsShown},
		{"ExternalIPsAreNotShownByDefault", externalIsNotShown},
		{"OtherClassIsUntouched", otherClassIsUntouched},
		{"ChangeOfTypeAndClassTakesOursBack", changeTakesBack},
		{"EditedByHandIsWrittenBackOnce", editedIsWrittenBack},
		{"OthersConditionsStay", othersConditionsStay},
		{"TwoControllersComeToRest", twoControllersRest},
		{"EventsAreOnTheService", eventsAreThere},
		{"NewLeaderWritesNothing", newLeaderWritesNothing},
		{"ServerOwnsAsTheModelDoes", serverOwnsAsModel},
		{"K31PortsThatAreNotToBeHadAreShown", portsAreShown},
		{"K33FinalizerComesAndGoes", finalizerComesAndGoes},
		{"LeastAccountIsEnough", leastAccount},
		{"ServerAwayIsWaitedFor", serverAway},
	} {
		t.Run(test.name, func(t *testing.T) {
			r.t = t
			test.f(t, r)
		})
	}
	r.t = t
}

func announcedIsShown(t *testing.T, r *real) {
	name := r.service()
	address := r.announce(name)
	o := r.eventually("the address", name, shown(address))
	want := []string{
		`Apply status /f:status/f:conditions/k:{"type":"fairlead.io/Allocated"}/f:lastTransitionTime`,
		`Apply status /f:status/f:conditions/k:{"type":"fairlead.io/Allocated"}/f:message`,
		`Apply status /f:status/f:conditions/k:{"type":"fairlead.io/Allocated"}/f:reason`,
		`Apply status /f:status/f:conditions/k:{"type":"fairlead.io/Allocated"}/f:status`,
		`Apply status /f:status/f:conditions/k:{"type":"fairlead.io/Allocated"}/f:type`,
		`Apply status /f:status/f:conditions/k:{"type":"fairlead.io/Announced"}/f:lastTransitionTime`,
		`Apply status /f:status/f:conditions/k:{"type":"fairlead.io/Announced"}/f:message`,
		`Apply status /f:status/f:conditions/k:{"type":"fairlead.io/Announced"}/f:reason`,
		`Apply status /f:status/f:conditions/k:{"type":"fairlead.io/Announced"}/f:status`,
		`Apply status /f:status/f:conditions/k:{"type":"fairlead.io/Announced"}/f:type`,
		`Apply status /f:status/f:loadBalancer/f:ingress`,
	}
	if got := fieldsOf(t, o, Manager); !slices.Equal(got, want) {
		t.Errorf("owned:\n%s", strings.Join(got, "\n"))
	}
	if len(o.Finalizers) > 0 {
		t.Errorf("finalizers %v: the record keeps what is to be withdrawn", o.Finalizers)
	}
	r.steadily(name)
}

func externalIsNotShown(t *testing.T, r *real) {
	name := r.service(func(o *corev1.Service) { o.Spec.ExternalIPs = []string{fmt.Sprintf("203.0.113.%d", r.next)} })
	r.announce(name)
	o := r.eventually("the condition", name, func(o *corev1.Service) bool {
		return len(o.Status.Conditions) == 2 && o.Status.Conditions[1].Reason == ReasonAnnounced
	})
	if showing(o) != "" {
		t.Errorf("shows %q", showing(o))
	}
}

func otherClassIsUntouched(t *testing.T, r *real) {
	other := "example.com/other"
	name := r.service(func(o *corev1.Service) { o.Spec.LoadBalancerClass = &other })
	r.patch(name, "other", `{"status":{"loadBalancer":{"ingress":[{"ip":"198.51.100.1"}]}}}`)
	r.announce(name)
	r.steadily(name)
	if o := r.get(name); showing(o) != "198.51.100.1/VIP" || len(fieldsOf(t, o, Manager)) > 0 {
		t.Errorf("shows %q", showing(o))
	}
}

func changeTakesBack(t *testing.T, r *real) {
	name := r.service()
	r.eventually("the address", name, shown(r.announce(name)))
	none := func(o *corev1.Service) bool {
		return len(o.Status.LoadBalancer.Ingress)+len(o.Status.Conditions)+len(fieldsOf(t, o, Manager)) == 0
	}
	r.turn(name, `{"type":"ClusterIP"}`)
	r.eventually("an empty status", name, none)
	r.turn(name, `{"type":"LoadBalancer","loadBalancerClass":"example.com/other"}`)
	r.steadily(name)
	r.turn(name, `{"type":"ClusterIP","loadBalancerClass":null}`)
	r.turn(name, `{"type":"LoadBalancer"}`)
	r.eventually("the address again", name, func(o *corev1.Service) bool { return len(o.Status.LoadBalancer.Ingress) == 1 })
}

func editedIsWrittenBack(t *testing.T, r *real) {
	name := r.service()
	address := r.announce(name)
	r.eventually("the address", name, shown(address))
	r.patch(name, "kubectl-edit", `{"status":{"loadBalancer":{"ingress":null},"conditions":null}}`)
	o := r.eventually("the address again", name, func(o *corev1.Service) bool { return shown(address)(o) && len(o.Status.Conditions) == 2 })
	if got := fieldsOf(t, o, "kubectl-edit"); len(got) > 0 {
		t.Errorf("still owned by the editor: %v", got)
	}
	r.steadily(name)
}

func othersConditionsStay(t *testing.T, r *real) {
	name := r.service()
	address := r.announce(name)
	r.eventually("the address", name, shown(address))
	r.stop()
	r.patch(name, "other", `{"status":{"conditions":[{"type":"example.com/Other","status":"True","reason":"X","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	r.lead(r.Config(), ours)
	o := r.eventually("our conditions beside the other", name, func(o *corev1.Service) bool { return len(o.Status.Conditions) == 3 })
	if !slices.ContainsFunc(o.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "example.com/Other" && c.Message == "m" }) {
		t.Errorf("conditions %+v", o.Status.Conditions)
	}
	r.turn(name, `{"type":"ClusterIP"}`)
	r.eventually("the other condition alone", name, func(o *corev1.Service) bool {
		return len(o.Status.Conditions) == 1 && o.Status.Conditions[0].Type == "example.com/Other"
	})
}

func twoControllersRest(t *testing.T, r *real) {
	name := r.service()
	address := r.announce(name)
	r.eventually("the address", name, shown(address))
	rewrites := 0
	gaveWay := func() bool { _, err := r.find(name, EventOverwritten); return err == nil }
	for quiet := time.Now(); !gaveWay() || time.Since(quiet) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
		switch o := r.get(name); {
		case shown(address)(o):
			r.patch(name, "other", `{"status":{"loadBalancer":{"ingress":[{"ip":"198.51.100.1"}]}}}`)
			rewrites, quiet = rewrites+1, time.Now()
		case time.Since(quiet) > testkit.Patience:
			t.Fatalf("after %d rewrites we neither rewrite nor say that we give way\n%s", rewrites, r.log.String())
		}
	}
	if rewrites > writes.QuickRewrites+1 {
		t.Errorf("%d rewrites before we gave way", rewrites)
	}
}

// says waits until the log has a text.
func (r *real) says(text string) {
	r.t.Helper()
	testkit.Eventually(r.t, "the log says "+strconv.Quote(text), func() error {
		if log := r.log.String(); !strings.Contains(log, text) {
			return errors.New(log)
		}
		return nil
	})
}

// event waits for an Event as `kubectl describe` finds it.
func (r *real) event(name, reason string) corev1.Event {
	r.t.Helper()
	var e corev1.Event
	testkit.Eventually(r.t, name+": Event "+reason, func() (err error) {
		if e, err = r.find(name, reason); err != nil {
			return fmt.Errorf("%w\n%s", err, r.log.String())
		}
		return nil
	})
	return e
}

// find looks for such an Event.
func (r *real) find(name, reason string) (corev1.Event, error) {
	list, err := r.Client().CoreV1().Events("default").List(r.t.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Service,reason=" + reason + ",involvedObject.name=" + name,
	})
	if err == nil && len(list.Items) == 0 {
		err = errors.New("there is none")
	}
	if err != nil {
		return corev1.Event{}, err
	}
	return list.Items[0], nil
}

func eventsAreThere(t *testing.T, r *real) {
	name := r.service()
	address := r.announce(name)
	if e := r.event(name, EventAnnounced); e.Message != address+" via n1 (192.0.2.1)" || e.Type != "Normal" || e.ReportingController != controllerName {
		t.Errorf("event %+v", e)
	}
	r.event(name, EventAllocated)
	r.b.route(t, address)
	if e := r.event(name, EventWithdrawn); e.Type != "Warning" {
		t.Errorf("event %+v", e)
	}
}

func newLeaderWritesNothing(t *testing.T, r *real) {
	name := r.service()
	r.eventually("the address", name, shown(r.announce(name)))
	r.event(name, EventAnnounced)
	r.stop()
	events := func() int {
		list, err := r.Client().CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	before := events()
	r.lead(r.Config(), ours)
	r.steadily(name)
	if n := events(); n != before {
		t.Errorf("%d events more", n-before)
	}
}

// serverOwnsAsModel holds the model that the properties use to what a real server does.
func serverOwnsAsModel(t *testing.T, r *real) {
	r.stop()
	defer r.lead(r.Config(), ours)
	name := r.service()
	model := newServed(name, corev1.ServiceTypeLoadBalancer, "")
	api := r.api(r.Config())
	apply := func(ingress ...string) {
		o := r.get(name)
		w := Write{ID: model.id(), UID: string(o.UID), ResourceVersion: o.ResourceVersion}
		mode := corev1.LoadBalancerIPModeVIP
		for _, ip := range ingress {
			w.Ingress = append(w.Ingress, corev1.LoadBalancerIngress{IP: ip, IPMode: &mode})
			w.Conditions = []metav1.Condition{verdict{Allocated, "True", "Allocated", "m"}.dated(nil, 0, noon)}
		}
		if _, err := api.Write(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		model.apply(w)
	}
	update := func(ingress ...string) {
		list := []string{}
		for _, ip := range ingress {
			list = append(list, `{"ip":"`+ip+`","ipMode":"VIP"}`)
		}
		r.patch(name, "other", `{"status":{"loadBalancer":{"ingress":[`+strings.Join(list, ",")+`]}}}`)
		model.update("other", ingress...)
		for i := range model.ingress {
			mode := corev1.LoadBalancerIPModeVIP
			model.ingress[i].IPMode = &mode
		}
	}
	for i, step := range []func(){
		func() { apply("203.0.113.1") },
		func() { apply("203.0.113.1") },
		func() { update("198.51.100.1") },
		func() { apply() },
		func() { apply("198.51.100.1") },
		func() { apply() },
		func() { apply("203.0.113.1") },
		func() { update("198.51.100.1") },
		func() { apply("203.0.113.1", "203.0.113.2") },
		func() { apply() },
		func() { apply("203.0.113.1") },
		func() { r.turn(name, `{"type":"ClusterIP"}`); model.turn(corev1.ServiceTypeClusterIP, "") },
		func() { apply() },
	} {
		step()
		have, want := SeenOf(r.get(name)), model.seen()
		if showing(r.get(name)) != model.shows() || have.Owned != want.Owned || have.OwnsIngress != want.OwnsIngress || len(have.Conditions) != len(want.Conditions) {
			t.Fatalf("after step %d the server has %+v, the model %+v", i, have, want)
		}
	}
}

// portsAreShown shows that the API server takes ports with errors, and that they go again.
func portsAreShown(t *testing.T, r *real) {
	name := r.service(func(o *corev1.Service) {
		o.Spec.Ports = []corev1.ServicePort{{Name: "web", Port: 80}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}}
	})
	address := r.announce(name)
	both := func(s *fsm.Service) {
		s.UID, s.Pending = string(r.get(name).UID), fsm.Pending{Code: "port-closing", Text: "port 53/udp is being taken back"}
		s.Frontends = append(s.Frontends, fsm.Frontend{Port: fsm.Port{Protocol: fsm.UDP, Number: 53}})
	}
	r.b.service(t, "default/"+name, both)
	ports := func(o *corev1.Service) (out string) {
		for _, p := range o.Status.LoadBalancer.Ingress[0].Ports {
			out += fmt.Sprintf("%d/%s", p.Port, p.Protocol)
			if p.Error != nil {
				out += " " + *p.Error
			}
			out += ";"
		}
		return out
	}
	r.eventually("the error of a port", name, func(o *corev1.Service) bool {
		return shown(address)(o) && ports(o) == "80/TCP;53/UDP fairlead.io/PortClosing;"
	})
	r.steadily(name)
	r.b.service(t, "default/"+name, uid(r.get(name).UID))
	r.eventually("the end of the error", name, func(o *corev1.Service) bool { return shown(address)(o) && ports(o) == "" })
}

// finalizerComesAndGoes shows that a deleted Service stays until the record is done with it, that the option's end takes
// finalizers away, and that neither touches those of others.
func finalizerComesAndGoes(t *testing.T, r *real) {
	r.stop()
	r.lead(r.Config(), Options{Class: class, Finalizer: true})
	finalized := func(o *corev1.Service) bool { return slices.Contains(o.Finalizers, Finalizer) }
	other := "example.com/other"
	deleted := r.service(func(o *corev1.Service) { o.Finalizers = []string{other} })
	kept := r.service()
	shownAt := r.announce(kept)
	r.eventually("the address and the finalizer", kept, func(o *corev1.Service) bool { return shown(shownAt)(o) && finalized(o) })
	o := r.eventually("the finalizer", deleted, finalized)
	if !slices.Contains(o.Finalizers, other) {
		t.Fatalf("finalizers %v", o.Finalizers)
	}
	if err := r.Client().CoreV1().Services("default").Delete(t.Context(), deleted, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.steadily(deleted)
	if o := r.get(deleted); !finalized(o) {
		t.Fatal("the finalizer went while the record holds the Service")
	}
	b := r.b
	b.service(t, "default/"+deleted, func(s *fsm.Service) { s.Deleting = true }, uid(o.UID))
	b.do(t, &fsm.DeleteService{ID: fsm.ServiceID("default/" + deleted), UID: string(o.UID)})
	o = r.eventually("the end of the finalizer", deleted, func(o *corev1.Service) bool { return !finalized(o) })
	if !slices.Equal(o.Finalizers, []string{other}) || !finalized(r.get(kept)) {
		t.Fatalf("finalizers %v, of a Service that stays %v", o.Finalizers, r.get(kept).Finalizers)
	}
	r.stop()
	r.lead(r.Config(), ours)
	r.eventually("the end of the option", kept, func(o *corev1.Service) bool { return shown(shownAt)(o) && !finalized(o) })
	r.eventuallyAll("the end of the option", func(o *corev1.Service) bool { return !finalized(o) })
}

// leastAccount shows that patching services/status and creating events is all that is asked for, and that less is told.
func leastAccount(t *testing.T, r *real) {
	r.stop()
	defer r.lead(r.Config(), ours)
	ctx := t.Context()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "status-writer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}},
	}}
	account, err := r.ConfigFor("status-writer")
	if err != nil {
		t.Fatal(err)
	}
	name := r.service()
	address := r.announce(name)
	r.lead(account, ours)
	r.says("let the account patch services/status")
	if _, err := r.Client().RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Client().RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "status-writer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "status-writer"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.eventually("the address", name, shown(address))
	r.event(name, EventAnnounced)
	r.stop()
}

func serverAway(t *testing.T, r *real) {
	name := r.service()
	r.Kill()
	address := r.announce(name)
	r.says("status not written")
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.eventually("the address", name, shown(address))
}
