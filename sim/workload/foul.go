// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// What is in the way of a Service, by its name in a step. API servers take either: they do not look into the value of an annotation, and what is
// not UTF-8 comes to them by protobuf.
const (
	foulBytes = "bytes" // a sharing key that is not UTF-8
	foulLong  = "long"  // one that is longer than a text may be
)

func foulVerbs() []Verb {
	return []Verb{{
		Name: "foul", Text: "create a Service with a text that the record cannot take, and the application behind it; edit mends it",
		Parameters: []parameter.Parameter{
			name(), parameter.OneOf("text", "of an annotation: bytes that are not UTF-8 without it, or too many", foulBytes, foulLong), replicas(),
		},
		Do: (*Cluster).createFoul,
		Draw: func(d dice.Dice, _ Plan, s *Step) {
			s.With.Set("name", fmt.Sprint("foul", d.From("foul", 1, 3)))
			s.With.Set("text", dice.Pick(d, "text", []string{foulBytes, foulBytes, foulLong}))
		},
	}}
}

func (c *Cluster) createFoul(s Step) {
	o := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: s.With["name"]},
	}
	wish(o, parameter.Values{})
	text := "k\xff"
	if s.With["text"] == foulLong {
		text = strings.Repeat("k", world.MaxText+1)
	}
	o.Annotations = with(o.Annotations, convert.AnnotationSharing, text)
	_, err := c.kube.Create("user", o)
	c.may(err)
	c.scale(s.With["name"], s.With.Number("replicas", 2))
}

// DrawFoul draws Services that the record cannot take, between two times, and what becomes of some of them: they are mended, or deleted.
func (p Plan) DrawFoul(d dice.Dice, from, to time.Duration) (out []Step) {
	for range d.From("steps", 1, 3) {
		s := p.DrawOne(d, "foul", from, to)
		out = append(out, s)
		if then := dice.Pick(d, "then", []string{"", "edit", "delete"}); then != "" {
			next := Step{At: d.Time("then at", s.At, to), Do: then}
			next.With.Set("name", s.With["name"])
			out = append(out, next)
		}
	}
	return out
}
