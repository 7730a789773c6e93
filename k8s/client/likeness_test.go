// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/k8s/client"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// echo is an API server that notes what it is asked and gives one answer.
type echo struct {
	*httptest.Server
	requests []string
	status   int
	kind     string
	answer   []byte
}

func newEcho(t *testing.T) *echo {
	e := &echo{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var headers []string
		for name, values := range r.Header {
			headers = append(headers, fmt.Sprintf("%s: %q", name, values))
		}
		slices.Sort(headers)
		e.requests = append(e.requests, fmt.Sprintf("%s %s %q %q", r.Method, r.URL, headers, body))
		w.Header().Set("Content-Type", e.kind)
		w.WriteHeader(e.status)
		_, _ = w.Write(e.answer)
	}))
	t.Cleanup(e.Close)
	return e
}

// says has the server answer with an object in a form.
func (e *echo) says(t *testing.T, o runtime.Object, version schema.GroupVersion, form string) {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), form)
	if !ok {
		t.Fatalf("no %s", form)
	}
	answer, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, version), o)
	if err != nil {
		t.Fatal(err)
	}
	e.status, e.kind, e.answer = http.StatusOK, form, answer
}

// both are our way to the server and that of client-go's clientset, which knows everything.
func both(t *testing.T, e *echo) (*client.API, kubernetes.Interface) {
	t.Helper()
	ours, err := client.New(&rest.Config{Host: e.URL, BearerToken: "t"})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := kubernetes.NewForConfig(&rest.Config{Host: e.URL, BearerToken: "t", UserAgent: "fairlead", QPS: -1, ContentConfig: rest.ContentConfig{
		ContentType: protobuf, AcceptContentTypes: protobuf + ",application/json",
	}})
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

type call func(context.Context) (runtime.Object, error)

// of gives a request without what it is asked with.
func of[O any, P interface {
	*O
	runtime.Object
}, A any](do func(context.Context, A) (P, error), ask A) call {
	return func(ctx context.Context) (runtime.Object, error) { return do(ctx, ask) }
}

func got[O any, P interface {
	*O
	runtime.Object
}](do func(context.Context, string, metav1.GetOptions) (P, error), name string) call {
	return func(ctx context.Context) (runtime.Object, error) { return do(ctx, name, metav1.GetOptions{}) }
}

func created[O any, P interface {
	*O
	runtime.Object
}](do func(context.Context, P, metav1.CreateOptions) (P, error), o P) call {
	return func(ctx context.Context) (runtime.Object, error) {
		return do(ctx, o, metav1.CreateOptions{FieldManager: "m"})
	}
}

// What goes over the wire, and what is made of the answer, is what client-go's own clientset does, for every kind, in
// both forms in which a server may answer.
func TestRequestsAndAnswersAreThoseOfTheFullClientset(t *testing.T) {
	e := newEcho(t)
	ours, theirs := both(t, e)
	apps, err := ours.Group(appsv1.SchemeGroupVersion, &appsv1.StatefulSet{})
	if err != nil {
		t.Fatal(err)
	}
	seconds := int64(20)
	all := metav1.ListOptions{TimeoutSeconds: &seconds, FieldSelector: "metadata.name=web", Limit: 1}
	meta := metav1.ObjectMeta{Name: "web", Namespace: "shop", ResourceVersion: "7", Labels: map[string]string{"a": "b"}}
	list := metav1.ListMeta{ResourceVersion: "9"}
	service := corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Port: 80}}}}
	old := &corev1.Event{ObjectMeta: meta, Reason: "SuccEnsureBackend", Count: 1, Source: corev1.EventSource{Component: "c"}}
	event := &eventsv1.Event{ObjectMeta: meta, Action: "Announce", EventTime: metav1.NowMicro(), Regarding: corev1.ObjectReference{Kind: "Service"}}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "x", Audiences: []string{"y"}}}
	fields := applycorev1.Service("web", "shop").WithStatus(applycorev1.ServiceStatus())
	force := metav1.ApplyOptions{FieldManager: "m", Force: true}
	for name, c := range map[string]struct {
		answer       runtime.Object
		ours, theirs call
	}{
		"list-services": {&corev1.ServiceList{ListMeta: list, Items: []corev1.Service{service}},
			of(ours.Client.CoreV1().Services("").List, all), of(theirs.CoreV1().Services("").List, all)},
		"get-service":       {&service, got(ours.Client.CoreV1().Services("shop").Get, "web"), got(theirs.CoreV1().Services("shop").Get, "web")},
		"list-nodes":        {&corev1.NodeList{ListMeta: list, Items: []corev1.Node{{ObjectMeta: meta}}}, of(ours.Client.CoreV1().Nodes().List, all), of(theirs.CoreV1().Nodes().List, all)},
		"list-configmaps":   {&corev1.ConfigMapList{ListMeta: list, Items: []corev1.ConfigMap{{ObjectMeta: meta}}}, of(ours.Client.CoreV1().ConfigMaps("shop").List, all), of(theirs.CoreV1().ConfigMaps("shop").List, all)},
		"get-configmap":     {&corev1.ConfigMap{ObjectMeta: meta}, got(ours.Client.CoreV1().ConfigMaps("shop").Get, "web"), got(theirs.CoreV1().ConfigMaps("shop").Get, "web")},
		"get-namespace":     {&corev1.Namespace{ObjectMeta: meta}, got(ours.Client.CoreV1().Namespaces().Get, "shop"), got(theirs.CoreV1().Namespaces().Get, "shop")},
		"list-namespaces":   {&corev1.NamespaceList{ListMeta: list, Items: []corev1.Namespace{{ObjectMeta: meta}}}, of(ours.Client.CoreV1().Namespaces().List, all), of(theirs.CoreV1().Namespaces().List, all)},
		"get-secret":        {&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"token": []byte("t")}}, got(ours.Client.CoreV1().Secrets("shop").Get, "web"), got(theirs.CoreV1().Secrets("shop").Get, "web")},
		"list-slices":       {&discoveryv1.EndpointSliceList{ListMeta: list}, of(ours.Client.DiscoveryV1().EndpointSlices("").List, all), of(theirs.DiscoveryV1().EndpointSlices("").List, all)},
		"create-event":      {event, created(ours.Client.EventsV1().Events("shop").Create, event.DeepCopy()), created(theirs.EventsV1().Events("shop").Create, event.DeepCopy())},
		"create-review":     {review, created(ours.Client.AuthenticationV1().TokenReviews().Create, review.DeepCopy()), created(theirs.AuthenticationV1().TokenReviews().Create, review.DeepCopy())},
		"get-a-further-one": {&appsv1.StatefulSet{ObjectMeta: meta}, got(client.ResourceOf[appsv1.StatefulSet](apps, "statefulsets", "shop").Get, "web"), got(theirs.AppsV1().StatefulSets("shop").Get, "web")},
		"apply-status": {&service, func(ctx context.Context) (runtime.Object, error) {
			return ours.Client.CoreV1().Services("shop").Apply(ctx, "web", fields, force, "status")
		}, func(ctx context.Context) (runtime.Object, error) {
			return theirs.CoreV1().Services("shop").ApplyStatus(ctx, fields, force)
		}},
		"create-old-event": {old, created(ours.Client.CoreV1().Events("shop").Create, old.DeepCopy()), created(theirs.CoreV1().Events("shop").Create, old.DeepCopy())},
		"patch-event": {old, func(ctx context.Context) (runtime.Object, error) {
			return ours.Client.CoreV1().Events("shop").Patch(ctx, "web", types.MergePatchType, []byte(`{"count":2}`), metav1.PatchOptions{FieldManager: "m"})
		}, func(ctx context.Context) (runtime.Object, error) {
			return theirs.CoreV1().Events("shop").Patch(ctx, "web", types.MergePatchType, []byte(`{"count":2}`), metav1.PatchOptions{FieldManager: "m"})
		}},
		"update-service": {&service, func(ctx context.Context) (runtime.Object, error) {
			return ours.Client.CoreV1().Services("shop").Update(ctx, "web", service.DeepCopy(), metav1.UpdateOptions{FieldManager: "m"})
		}, func(ctx context.Context) (runtime.Object, error) {
			return theirs.CoreV1().Services("shop").Update(ctx, service.DeepCopy(), metav1.UpdateOptions{FieldManager: "m"})
		}},
		"update-status": {&service, func(ctx context.Context) (runtime.Object, error) {
			return ours.Client.CoreV1().Services("shop").Update(ctx, "web", service.DeepCopy(), metav1.UpdateOptions{FieldManager: "m"}, "status")
		}, func(ctx context.Context) (runtime.Object, error) {
			return theirs.CoreV1().Services("shop").UpdateStatus(ctx, service.DeepCopy(), metav1.UpdateOptions{FieldManager: "m"})
		}},
		"delete-node": {&metav1.Status{Status: metav1.StatusSuccess}, func(ctx context.Context) (runtime.Object, error) {
			return nil, ours.Client.CoreV1().Nodes().Delete(ctx, "web", *metav1.NewPreconditionDeleteOptions("u"))
		}, func(ctx context.Context) (runtime.Object, error) {
			return nil, theirs.CoreV1().Nodes().Delete(ctx, "web", *metav1.NewPreconditionDeleteOptions("u"))
		}},
		"resources": {&metav1.APIResourceList{GroupVersion: "metallb.io/v1beta1", APIResources: []metav1.APIResource{{Name: "bgppeers"}}},
			of(ours.Resources, schema.GroupVersion{Group: "metallb.io", Version: "v1beta1"}),
			func(ctx context.Context) (runtime.Object, error) {
				out := &metav1.APIResourceList{}
				err := theirs.Discovery().RESTClient().Get().AbsPath("/apis", "metallb.io", "v1beta1").Do(ctx).Into(out)
				out.TypeMeta = metav1.TypeMeta{} // the decoder of groups takes it away
				return out, err
			}},
	} {
		t.Run(name, func(t *testing.T) {
			kinds, _, err := scheme.Scheme.ObjectKinds(c.answer)
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range []string{protobuf, "application/json"} {
				e.says(t, c.answer, kinds[0].GroupVersion(), form)
				_ = e.alike(t, c.ours, c.theirs) // an error is as good, if both have it
			}
			denied := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", fmt.Errorf("no such right"))
			e.says(t, &denied.ErrStatus, schema.GroupVersion{Version: "v1"}, protobuf)
			e.status = http.StatusForbidden
			if err := e.alike(t, c.ours, c.theirs); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "no such right") {
				t.Errorf("got %v", err)
			}
			e.status, e.kind, e.answer = http.StatusNotFound, "text/plain", []byte("404 page not found\n")
			if err := e.alike(t, c.ours, c.theirs); !apierrors.IsNotFound(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// alike makes both requests and gives the error that they agree on.
func (e *echo) alike(t *testing.T, ours, theirs call) error {
	t.Helper()
	e.requests = nil
	got, err := ours(t.Context())
	want, wantErr := theirs(t.Context())
	if len(e.requests) != 2 || e.requests[0] != e.requests[1] {
		t.Errorf("asked\n%s", strings.Join(e.requests, "\n"))
	}
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Errorf("failed with %v, want %v", err, wantErr)
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	return err
}

// A watch asks as client-go's does and gives the same events, bookmarks and failures among them.
func TestWatchesAreThoseOfTheFullClientset(t *testing.T) {
	e := newEcho(t)
	ours, theirs := both(t, e)
	e.status, e.kind = http.StatusOK, "application/json"
	e.answer = []byte(`{"type":"ADDED","object":{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4","metadata":{"name":"a","namespace":"b","resourceVersion":"3"}}}
{"type":"BOOKMARK","object":{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"resourceVersion":"5"}}}
{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","status":"Failure","code":410,"reason":"Expired","message":"too old"}}
`)
	seconds := int64(300)
	o := metav1.ListOptions{ResourceVersion: "2", AllowWatchBookmarks: true, TimeoutSeconds: &seconds}
	events := func(w watch.Interface, err error) (all []watch.Event) {
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for event := range w.ResultChan() {
			all = append(all, event)
		}
		return all
	}
	got := events(ours.Client.DiscoveryV1().EndpointSlices("").Watch(t.Context(), o))
	want := events(theirs.DiscoveryV1().EndpointSlices("").Watch(t.Context(), o))
	if len(got) != 3 || !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if e.requests[0] != e.requests[1] {
		t.Errorf("asked\n%s", strings.Join(e.requests, "\n"))
	}
}
