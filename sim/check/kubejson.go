// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"encoding/json"
	"slices"
)

// What checkers read of Kubernetes objects, on their own: the rest of the code has other readers.

// object is what all have in common.
type object struct {
	Metadata struct {
		Namespace   string            `json:"namespace"`
		Name        string            `json:"name"`
		UID         string            `json:"uid"`
		Labels      map[string]string `json:"labels"`
		Annotations json.RawMessage   `json:"annotations"`
		Deletion    *string           `json:"deletionTimestamp"`
	} `json:"metadata"`
}

type serviceJSON struct {
	object
	Spec   json.RawMessage `json:"spec"`
	Status struct {
		LoadBalancer struct {
			Ingress []struct {
				IP string `json:"ip"`
			} `json:"ingress"`
		} `json:"loadBalancer"`
	} `json:"status"`
}

type endpoint struct {
	Addresses  []string `json:"addresses"`
	NodeName   string   `json:"nodeName"`
	Conditions struct {
		Ready       *bool `json:"ready"`
		Serving     *bool `json:"serving"`
		Terminating *bool `json:"terminating"`
	} `json:"conditions"`
	TargetRef struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"targetRef"`
}

type sliceJSON struct {
	object
	Endpoints []endpoint `json:"endpoints"`
}

type nodeJSON struct {
	object
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

type portSpec struct {
	Port     uint16 `json:"port"`
	Protocol string `json:"protocol"`
}

// share tells whether two Services agreed to share addresses: by one annotation on both, and by different ports.
func (k *kube) share(a, b string) bool {
	for _, p := range k.services[a].Ports {
		if slices.Contains(k.services[b].Ports, p) {
			return false
		}
	}
	if k.services[a].Metadata.Namespace != k.services[b].Metadata.Namespace {
		return false // nobody consents to that here
	}
	keys := func(id string) (out []string) {
		var all map[string]string
		_ = json.Unmarshal(k.services[id].Metadata.Annotations, &all) // of a document that was read
		for _, name := range sharing() {
			if v := all[name]; v != "" {
				out = append(out, v)
			}
		}
		return out
	}
	return slices.ContainsFunc(keys(a), func(v string) bool { return slices.Contains(keys(b), v) })
}

// sharing lists the annotations by which Services agree to share addresses.
func sharing() []string {
	return []string{"fairlead.io/allow-shared-ip", "metallb.io/allow-shared-ip", "metallb.universe.tf/allow-shared-ip"}
}

type advertisementJSON struct {
	Spec struct {
		AggregationLength int               `json:"aggregationLength"`
		Pools             []string          `json:"ipAddressPools"`
		PoolLabels        []json.RawMessage `json:"ipAddressPoolSelectors"`
		Peers             []string          `json:"peers"`
		Nodes             []json.RawMessage `json:"nodeSelectors"`
		Services          []json.RawMessage `json:"serviceSelectors"`
	} `json:"spec"`
}

// mostText is how long a text of an object may be for the record to take it, in bytes.
const mostText = 64 << 10

// foul tells whether the record cannot take one of an object's annotations: it is too long, or not UTF-8. JSON, in which events carry objects,
// has an escape in the place of such bytes; a replacement character that somebody wrote stands there as it is.
func foul(raw json.RawMessage, annotations map[string]string) bool {
	for _, v := range annotations {
		if len(v) > mostText {
			return true
		}
	}
	return bytes.Contains(raw, []byte(`\ufffd`))
}
