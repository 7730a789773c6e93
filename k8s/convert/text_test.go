// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// A text that the record cannot take is refused with the field that it stands in, however it was derived; one that nobody reads is left alone.
func TestTextsNamesTheField(t *testing.T) {
	long := strings.Repeat("x", world.MaxText+1)
	service := func(annotations map[string]string, ports ...corev1.ServicePort) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", Annotations: annotations},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: append([]corev1.ServicePort{{Name: "web", Port: 80}}, ports...)},
		}
	}
	for name, c := range map[string]struct {
		service    *corev1.Service
		field, why string
	}{
		"sharing-key": {service(map[string]string{"a.example/x": "\xfe", AnnotationSharing: "k\xff"}), "metadata.annotations[fairlead.io/allow-shared-ip]", `not UTF-8`},
		"long-key":    {service(map[string]string{AnnotationSharing: long}), "metadata.annotations[fairlead.io/allow-shared-ip]", `bytes`},
		"pool":        {service(map[string]string{AnnotationPool: long}), "metadata.annotations[fairlead.io/address-pool]", "65537 bytes, at most 65536 are taken"},
		"port":        {service(nil, corev1.ServicePort{Name: "\xff", Port: 81}), "spec.ports[1].name", `"\xff" is not UTF-8`},
		"unread":      {service(map[string]string{"a.example/x": "\xff", "b.example/y": long}), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v, problems := Service(c.service)
			problems = append(problems, Texts(v.Ref(world.KindService), c.service, &v)...)
			if c.why == "" {
				if !Usable(problems) {
					t.Fatalf("got %+v", problems)
				}
				return
			}
			if Usable(problems) || problems[0].Field != c.field || !strings.Contains(problems[0].Why, c.why) || !utf8.ValidString(problems[0].Why) {
				t.Fatalf("got %+v", problems)
			}
		})
	}
}

// Whatever bytes the annotations of a Service and the labels of a Node are, either it is refused with a problem or the record can hold its
// texts.
func TestPropertyUsableObjectsFit(t *testing.T) {
	text := rapid.OneOf(rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }), rapid.String(), rapid.Just(strings.Repeat("x", world.MaxText+1)),
		rapid.Just(strings.Repeat("k", maxSharing-2)))
	keys := rapid.SampledFrom([]string{AnnotationSharing, AnnotationPool, AnnotationAcross, AnnotationAddresses, AnnotationNextHops, "metallb.io/address-pool", "other"})
	testkit.Check(t, func(t *rapid.T) {
		o := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "u", Annotations: rapid.MapOfN(keys, text, 0, 3).Draw(t, "annotations"), Labels: rapid.MapOfN(text, text, 0, 2).Draw(t, "labels")},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: text.Draw(t, "port"), Port: 80}}},
		}
		v, problems := Service(o)
		problems = append(problems, Texts(v.Ref(world.KindService), o, &v)...)
		if !Usable(problems) {
			return
		}
		s := fsm.Service{ID: "a/b", UID: v.UID, Rare: &fsm.Rare{SharingKey: v.Extras().SharingKey}}
		for _, p := range v.Ports {
			s.Frontends = append(s.Frontends, fsm.Frontend{Name: p.Name})
		}
		for _, c := range []fsm.Command{&fsm.PutService{Service: s}, &fsm.Allocate{SharingKey: v.Extras().SharingKey, Pool: fsm.PoolName(v.Extras().Pool)}} {
			if _, err := fsm.Fit(fsm.Proposal{Command: c}); err != nil {
				t.Fatalf("%v; problems %+v", err, problems)
			}
		}
	})
}
