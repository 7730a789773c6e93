// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/spelling"
	"fairlead.io/fairlead/k8s/api/lbcf"
)

// annotations are those of ours that are read from objects of a kind, or written to them by the group itself.
var annotations = map[world.Kind][]string{
	world.KindService: {
		AnnotationAddresses, AnnotationPool, AnnotationSharing, AnnotationAcross, AnnotationNextHops, AnnotationScheduler, AnnotationEndpointWeights,
		AnnotationHealthCheck,
	},
	world.KindPool: {AnnotationExclude, AnnotationCutOff, AnnotationDrain},
	world.KindPeer: {
		AnnotationMode, AnnotationTTLSecurity, AnnotationSendMax, AnnotationPassive, AnnotationRestart, AnnotationRestartTime, AnnotationStaleTime,
		AnnotationKeepOnNotification,
	},
	world.KindAdvertisement: {AnnotationMED, AnnotationWeights},
	world.KindDriver:        {AnnotationCredentials, AnnotationSettle, AnnotationConcurrent},
	world.KindBackendGroup:  {AnnotationNodes},
	world.KindBackendRecord: {lbcf.AnnotationRecord, lbcf.AnnotationRevision},
}

// unknownAnnotations tells of annotations under our prefix that nobody reads: whoever wrote one takes it to be heeded. Programs copy annotations to
// EndpointSlices, where nobody wrote them.
func (r *report) unknownAnnotations(kind world.Kind, all map[string]string) {
	if kind == world.KindEndpointSlice {
		return
	}
	known := annotations[kind]
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasPrefix(key, ourPrefix) || slices.Contains(known, key) {
			continue
		}
		if others := kindsOf(key); len(others) > 0 {
			r.degrade(annotationField(key), "remove it", "it says nothing on a %s; it is read on objects of kind %s", kind, strings.Join(others, ", "))
			continue
		}
		remedy := "remove it"
		if len(known) > 0 {
			remedy = "use one of " + strings.Join(known, ", ") + ", or remove it"
		}
		r.degrade(annotationField(key), remedy, "there is no such annotation, and it says nothing%s", meantAnnotation(key, known))
	}
}

// kindsOf lists the kinds on which an annotation is read.
func kindsOf(key string) (out []string) {
	for kind, known := range annotations {
		if slices.Contains(known, key) {
			out = append(out, string(kind))
		}
	}
	slices.Sort(out)
	return out
}

// meantAnnotation is what to say of an annotation that there is not: whose name is nearly the same, else who has its name for a part of its own.
func meantAnnotation(key string, known []string) string {
	name := func(annotation string) string { return strings.TrimPrefix(annotation, ourPrefix) }
	var names, parts []string
	for _, k := range known {
		names = append(names, name(k))
		if slices.Contains(strings.Split(name(k), "-"), strings.ToLower(name(key))) {
			parts = append(parts, k)
		}
	}
	near := spelling.Near(name(key), names)
	for i := range near {
		near[i] = ourPrefix + near[i]
	}
	if len(near) == 0 {
		near = parts
	}
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}
