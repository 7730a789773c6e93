// SPDX-License-Identifier: Apache-2.0

package convert

import (
	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/fsm/world"
)

// The config maps of kube-loadbalancer-controller, and the key that each must have.
const (
	ConfigMapGoBGP  = "kube-gobgp-cfg"
	KeyGoBGP        = "config_bgp.toml"
	ConfigMapIPRule = "kube-iprule-cfg"
	KeyIPRule       = "SWITCH"
)

// requiredKey names the key without which a config map of that name is useless; false for names that we do not read.
func requiredKey(name string) (string, bool) {
	switch name {
	case ConfigMapGoBGP:
		return KeyGoBGP, true
	case ConfigMapIPRule:
		return KeyIPRule, true
	}
	return "", false
}

// ReadsConfigMap tells whether config maps of that name are read at all.
func ReadsConfigMap(name string) bool {
	_, ok := requiredKey(name)
	return ok
}

// Review tells what of a usable config map has no effect, or not the one that its author may want: whoever reads what is in it knows.
// It must be a pure function.
type Review func(*world.ConfigMap) []world.Problem

// ConfigMap is the function ConfigMap, with what the review finds besides. A nil one finds nothing.
func (r Review) ConfigMap(o *corev1.ConfigMap) (world.ConfigMap, []world.Problem) {
	c, problems := ConfigMap(o)
	if r == nil || !Usable(problems) {
		return c, problems
	}
	for _, p := range r(&c) {
		p.Object = c.Ref(world.KindConfigMap)
		problems = append(problems, p)
	}
	return c, problems
}

// ConfigMap converts a config map that we read.
func ConfigMap(o *corev1.ConfigMap) (world.ConfigMap, []world.Problem) {
	meta, r := open(world.KindConfigMap, &o.ObjectMeta, true)
	if key, ok := requiredKey(o.Name); ok && o.Data[key] == "" {
		r.fail("data."+key, "add the key", "empty or missing")
	}
	return world.ConfigMap{Meta: meta, Data: kvs(o.Data, func(string) bool { return true })}, r.problems
}
