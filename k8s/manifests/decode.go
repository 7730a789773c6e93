// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/safeyaml"
	"fairlead.io/fairlead/k8s/alike"
	"fairlead.io/fairlead/k8s/convert"
)

// content is what a file was found to hold.
type content struct {
	objects []object
	// problems are those of no particular object that we know.
	problems []world.Problem
	// broken is why the file as a whole cannot be used; its objects are then unknown.
	broken *world.Problem
	// lost is the first of problems with a document that nobody can tell the object of: a file that is cut off where it is YAML
	// still may end with one.
	lost *world.Problem
}

// blank tells whether the file says nothing: whoever writes it may not have begun.
func (c *content) blank() bool {
	return c.broken == nil && len(c.objects) == 0 && len(c.problems) == 0
}

// decode reads the objects of a file, which share what they can with those that like has seen. A file with one document that is no YAML is
// broken as a whole: it may have been cut off while it was written.
func decode(name string, data []byte, like *alike.Table, by rules) content {
	return decodeWithin(safeyaml.NewBudget(len(data)), name, data, like, by)
}

// decodeWithin is decode, of one of several files whose aliases share a budget.
func decodeWithin(budget *safeyaml.Budget, name string, data []byte, like *alike.Table, by rules) content {
	d := decoder{file: name, ignored: map[string]bool{}, like: like, rules: by}
	documents, err := safeyaml.Documents(data)
	if err != nil {
		return content{broken: &world.Problem{Severity: world.Failed, File: name, Line: 1, Why: err.Error(), Remedy: "save it as UTF-8; until then the file counts as it was"}}
	}
	for _, doc := range documents {
		d.doc = &document{Document: doc}
		raw, err := budget.ToJSON(doc.Text)
		if err != nil {
			line, why := d.doc.yamlError(err)
			return content{broken: &world.Problem{
				Severity: world.Failed, File: name, Line: line, Why: why, Remedy: "mend the YAML; until then the file counts as it was",
			}}
		}
		d.object(raw, "")
	}
	d.out.objects = slices.Clone(d.out.objects) // without the room that they grew into: it is kept for long
	return d.out
}

type decoder struct {
	file    string
	doc     *document
	ignored map[string]bool
	like    *alike.Table
	rules
	out content
}

// rules are by what objects are judged beside what they say themselves.
type rules struct {
	review     convert.Review
	namespaces convert.Namespaces
	// noCluster is Options.NoCluster.
	noCluster bool
}

// head is what tells one object from another.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		UID       string `json:"uid"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

func (h *head) object() metav1.Object {
	return &metav1.ObjectMeta{Name: h.Metadata.Name, Namespace: h.Metadata.Namespace, UID: types.UID(h.Metadata.UID)}
}

// object decodes one object, which stands at path in the document ("" or "items[3]").
func (d *decoder) object(raw []byte, path string) {
	var h head
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &h); err != nil {
		wrong := typeError(raw, &head{}, err)
		if wrong.Field == "" {
			d.lose(path, "no Kubernetes object: %s", wrong.Why)
			return
		}
		d.lost(join(path, wrong.Field), wrong.Remedy, "no Kubernetes object: %s: %s", wrong.Field, wrong.Why)
		return
	}
	var missing []string
	for _, field := range []struct{ name, value string }{{"apiVersion", h.APIVersion}, {"kind", h.Kind}} {
		if field.value == "" {
			missing = append(missing, "no "+field.name)
		}
	}
	switch {
	case len(missing) > 0:
		d.lose(path, "no Kubernetes object: it has %s", strings.Join(missing, " and "))
	case h.Kind == "List" && h.Items == nil:
		d.lose(path, "no Kubernetes object: a List without items")
	case strings.HasSuffix(h.Kind, "List") && h.Items != nil:
		for i, item := range h.Items {
			d.object(item, fmt.Sprintf("items[%d]", i))
		}
	default:
		d.kind(h, raw, path)
	}
}

// add decodes an object of type K and converts it.
func add[K any](d *decoder, raw []byte, path string, h head, kind world.Kind, namespaced bool, turn func(*K) (any, []world.Problem)) {
	ref := world.Ref{Kind: kind, ID: world.ID{Name: h.Metadata.Name}, UID: h.Metadata.UID}
	if namespaced {
		ref.Namespace = cmp.Or(h.Metadata.Namespace, metav1.NamespaceDefault)
	}
	var value any
	var problems []world.Problem
	var k K
	strict, err := kjson.UnmarshalStrict(raw, &k)
	if err != nil {
		wrong := typeError(raw, &k, err)
		wrong.Severity, wrong.Object = world.Failed, ref
		problems = []world.Problem{wrong}
	} else {
		// A resourceVersion in a file is a leftover of the cluster that it was copied from.
		any(&k).(metav1.Object).SetResourceVersion("")
		value, problems = turn(&k)
		for v := range valuesOf(value) {
			toCanonical(v)
			problems = append(problems, convert.Texts(ref, &k, v)...)
			d.like.Same(v)
		}
		misspelt := false
		for _, s := range strict {
			p := unknownField(ref, s, reflect.TypeFor[K]())
			misspelt = misspelt || p.Severity == world.Failed
			problems = append(problems, p)
		}
		if misspelt {
			value = nil
		}
	}
	if !convert.Usable(problems) {
		value = nil
	}
	if o := h.object(); !d.namespaces.Read(kind, o) {
		ref = convert.ElsewhereRef(kind, o)
		value, problems = nil, []world.Problem{d.namespaces.Elsewhere(ref)}
	}
	for i := range problems {
		p := &problems[i]
		p.File, p.Object, p.Line = d.file, ref, d.doc.lineOf(join(path, p.Field))
	}
	if h.Metadata.Name == "" { // nothing can refer to it
		if len(problems) == 0 {
			d.lose(path, "no Kubernetes object: it has no name")
			return
		}
		d.out.problems = append(d.out.problems, problems...)
		d.out.lost = cmp.Or(d.out.lost, &problems[0])
		return
	}
	if len(problems) > 0 || kind == kindEndpoints {
		value = &beside{value, ref, problems}
	}
	d.out.objects = append(d.out.objects, object{is: value, line: int32(d.doc.lineOf(path))})
}

// lose notes a document that nobody can tell the object of.
func (d *decoder) lose(path, why string, args ...any) {
	d.lost(path, "a manifest has apiVersion, kind and metadata", why, args...)
}

// lost is lose, with a remedy of its own.
func (d *decoder) lost(path, remedy, why string, args ...any) {
	d.fileProblem(world.Failed, path, remedy, why, args...)
	lost := d.out.problems[len(d.out.problems)-1]
	d.out.lost = cmp.Or(d.out.lost, &lost)
}

func (d *decoder) fileProblem(s world.Severity, path, remedy, why string, args ...any) {
	d.out.problems = append(d.out.problems, world.Problem{
		Severity: s, File: d.file, Line: d.doc.lineOf(path), Why: fmt.Sprintf(why, args...), Remedy: remedy,
	})
}

// join puts a field behind a path.
func join(path, field string) string {
	if path == "" || field == "" || field[0] == '[' {
		return path + field
	}
	return path + "." + field
}
