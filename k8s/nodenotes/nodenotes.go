// SPDX-License-Identifier: Apache-2.0

// Package nodenotes writes annotations of the group balancing.elf.io to Nodes, while this member leads.
//
// What a Node shall have is said by Contributors, each about its own annotations: pure functions of the record and of what the Node has.
// Who wrote an annotation is what the API server records: ours are those that field manager "fairlead" owns. What nobody wants any more
// is taken away if it is ours and nobody else's; annotations of others are left alone, and so is everything else of a Node. Nothing is
// written when all is as it shall be. Start reading at Contributor.
package nodenotes

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/api/balancing"
)

// Manager is the name under which the API server keeps which annotations are ours.
const Manager = "fairlead"

// Seen is what the API server last showed of a Node. It is immutable.
type Seen struct {
	Name, UID, ResourceVersion string
	// Annotations are those of the group balancing.elf.io.
	Annotations map[string]string
	// Owned are those of them that are ours: we wrote them, and nobody has changed them since.
	Owned map[string]bool
}

// Life is the Node's UID.
func (s *Seen) Life() string { return s.UID }

// Version is the Node's resourceVersion.
func (s *Seen) Version() string { return s.ResourceVersion }

// SeenOf takes from a Node what Seen keeps.
func SeenOf(o *corev1.Node) *Seen {
	s := &Seen{Name: o.Name, UID: string(o.UID), ResourceVersion: o.ResourceVersion, Annotations: map[string]string{}, Owned: map[string]bool{}}
	for k, v := range o.Annotations {
		if ours(k) {
			s.Annotations[k] = v
		}
	}
	for _, m := range o.ManagedFields {
		if m.Manager != Manager || m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != "" || m.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Annotations map[string]json.RawMessage `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for k := range fields.Metadata.Annotations {
			if k, ok := strings.CutPrefix(k, "f:"); ok && ours(k) {
				s.Owned[k] = true
			}
		}
	}
	return s
}

func ours(annotation string) bool { return strings.HasPrefix(annotation, balancing.Group+"/") }

// Contributor says which annotations of its own a Node shall have; to leave one as it is it repeats it (Seen.Keep). An annotation that
// it does not name goes, if it is ours. Names begin with "balancing.elf.io/". It is called from one goroutine, and does not block.
type Contributor func(seen *Seen) map[string]string

// Keep has the given annotations stay as they are, as far as they are ours: for a Contributor that does not know yet what they shall be.
func (s *Seen) Keep(names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		if v, ok := s.Annotations[name]; ok && s.Owned[name] {
			out[name] = v
		}
	}
	return out
}

// Write is what is ours of a Node's annotations, all of them. It is for the very Node that was looked at.
type Write struct {
	Name, UID, ResourceVersion string
	Annotations                map[string]string
}

// Plan gives what to write to a Node; nil if it is as it shall be. Of two Contributors that name one annotation the first counts.
func Plan(seen *Seen, by []Contributor) *Write {
	wanted := map[string]string{}
	for _, c := range by {
		for k, v := range c(seen) {
			if _, said := wanted[k]; !said && ours(k) {
				wanted[k] = v
			}
		}
	}
	due := false
	for k, v := range wanted {
		have, ok := seen.Annotations[k]
		due = due || !ok || have != v
	}
	for k := range seen.Owned {
		_, still := wanted[k]
		due = due || !still
	}
	if !due {
		return nil
	}
	return &Write{seen.Name, seen.UID, seen.ResourceVersion, wanted}
}

func (w *Write) digest() uint64 {
	h := fnv.New64a()
	for _, k := range slices.Sorted(maps.Keys(w.Annotations)) {
		_, _ = h.Write([]byte(k + "\x00" + w.Annotations[k] + "\x00"))
	}
	return h.Sum64()
}
