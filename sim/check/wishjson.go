// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/json"
	"net/netip"
	"slices"
)

// What checkers read of LBCF's objects, and of pods, on their own. Names are those of the load balancer specification.

// wishObject is what all of them have in common.
type wishObject struct {
	Metadata struct {
		Namespace   string            `json:"namespace"`
		Name        string            `json:"name"`
		UID         string            `json:"uid"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		Deletion    *string           `json:"deletionTimestamp"`
		Finalizers  []string          `json:"finalizers"`
		Owners      []struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
			UID  string `json:"uid"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
	Spec   json.RawMessage `json:"spec"`
	Status json.RawMessage `json:"status"`
}

func (o *wishObject) id() string { return o.Metadata.Namespace + "/" + o.Metadata.Name }

type balancerSpec struct {
	Driver     string            `json:"lbDriver"`
	Spec       map[string]string `json:"lbSpec"`
	Attributes map[string]string `json:"attributes"`
	Scope      []string          `json:"scope"`
}

type balancerStatus struct {
	Info       map[string]string `json:"lbInfo"`
	Conditions []condition       `json:"conditions"`
}

type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// isTrue tells whether a condition is true.
func isTrue(all []condition, kind string) bool {
	for _, c := range all {
		if c.Type == kind && c.Status == "True" {
			return true
		}
	}
	return false
}

type podPort struct {
	Port     int    `json:"port"`
	Protocol string `json:"protocol"`
}

type podsSpec struct {
	Ports   []podPort `json:"ports"`
	ByLabel *struct {
		Selector map[string]string `json:"selector"`
		Except   []string          `json:"except"`
	} `json:"byLabel"`
	ByName []string `json:"byName"`
}

type groupSpec struct {
	Balancers  []string          `json:"loadBalancers"`
	Pods       *podsSpec         `json:"pods"`
	Static     []string          `json:"static"`
	Parameters map[string]string `json:"parameters"`
	Leave      string            `json:"deregisterPolicy"`
}

type groupStatus struct {
	Backends   int `json:"backends"`
	Registered int `json:"registeredBackends"`
}

type bindSpec struct {
	Entries []struct {
		Name       string            `json:"name"`
		Driver     string            `json:"driver"`
		Spec       map[string]string `json:"spec"`
		Attributes map[string]string `json:"attributes"`
	} `json:"loadBalancers"`
	Pods       podsSpec          `json:"pods"`
	Parameters map[string]string `json:"parameters"`
}

type podStatus struct {
	IP         string      `json:"podIP"`
	IPs        []podIP     `json:"podIPs"`
	Phase      string      `json:"phase"`
	Conditions []condition `json:"conditions"`
}

type podIP struct {
	IP string `json:"ip"`
}

// addresses are those of a pod, of each family the first.
func (s podStatus) addresses() (out []netip.Addr) {
	for _, text := range append([]podIP{{s.IP}}, s.IPs...) {
		a, err := netip.ParseAddr(text.IP)
		if err == nil && !slices.ContainsFunc(out, func(b netip.Addr) bool { return a.Is4() == b.Is4() }) {
			out = append(out, a)
		}
	}
	return out
}

type recordSpec struct {
	Balancer   string            `json:"lbName"`
	Info       map[string]string `json:"lbInfo"`
	Parameters map[string]string `json:"parameters"`
}

type recordStatus struct {
	Address    string      `json:"backendAddr"`
	Conditions []condition `json:"conditions"`
}

// read reads a part of an object. What cannot be read is the model's trouble: without it there is nothing to check by.
func read[T any](raw json.RawMessage) (out T) {
	_ = json.Unmarshal(raw, &out)
	return out
}
