// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"

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

// OthersConfigMap tells whether a config map is one that another load balancer is configured by, and that nothing comes of here: what it is, and what
// to do instead. Empty for all others.
func OthersConfigMap(o *corev1.ConfigMap) (is, remedy string) {
	of := func(prefixes ...string) bool {
		for key := range o.Data {
			if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
				return true
			}
		}
		return false
	}
	switch text := o.Data["config"]; {
	case strings.Contains(text, "address-pools:") || o.Name == "config" && o.Namespace == "metallb-system" && text != "":
		return "the configuration of a MetalLB before 0.13", "make IPAddressPools, BGPPeers, BGPAdvertisements and L2Advertisements of it (MetalLB's configmaptocrs writes them), and apply those"
	case o.Name == "kubevip" && of("cidr-", "range-"):
		return "the configuration of kube-vip's cloud provider", "make an IPAddressPool of each of its ranges; serviceAllocation.namespaces says which namespace one is for"
	}
	return "", ""
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
