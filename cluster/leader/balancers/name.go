// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"crypto/md5" // LBCF names records so; nothing is kept secret or safe by it
	"encoding/hex"
	"strconv"
	"strings"

	"fairlead.io/fairlead/fsm/world"
)

// PodRecord is the name of the BackendRecord of a port of a pod in a group, on a LoadBalancer (lbcf §2.4.1). A pod
// that is made anew has another UID, and so another record.
func PodRecord(loadBalancer, group, podUID string, port world.BackendPort) string {
	return hash("_", loadBalancer, group, podUID, number(port.Port), port.Protocol)
}

// ServiceRecord is the name of the BackendRecord of a port of a Service on a node. Its node port is not part of it.
func ServiceRecord(loadBalancer, group, service string, port world.BackendPort, node string) string {
	return hash("_", loadBalancer, group, service, number(port.Port), port.Protocol, node)
}

// StaticRecord is the name of the BackendRecord of a static address.
func StaticRecord(loadBalancer, group, address string) string {
	return hash("_", loadBalancer, group, address)
}

// BindRecord is the name of the BackendRecord of a port of a pod in a Bind. Two Binds can come to the same name (a-b
// with c, a with b-c); then Apart gives one of them another.
func BindRecord(bind, entry, pod, podIP string, port world.BackendPort) string {
	return hash("-", bind, entry, pod, podIP, port.Protocol, number(port.Port))
}

// Apart is the name of a record whose own name is taken by a record of another owner.
func Apart(name, ownerUID string) string { return hash("-", name, ownerUID) }

func hash(separator string, parts ...string) string {
	sum := md5.Sum([]byte(strings.Join(parts, separator)))
	return hex.EncodeToString(sum[:])
}

func number(n uint16) string { return strconv.Itoa(int(n)) }
