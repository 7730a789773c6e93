// SPDX-License-Identifier: Apache-2.0

// Package balancing knows the names that objects of balancing.elf.io and those around them carry: annotations of policies
// and of Nodes, and what they say.
//
// Parsing and printing are each other's inverse; what cannot be read is an error that says what belongs there. The kinds
// themselves are in v1beta1. Start reading at ServiceID.
package balancing

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

//go:generate ./generate.sh

// Group of the policies.
const Group = "balancing.elf.io"

// Annotations of policies.
const (
	// AnnotationServiceID is the policy's id, which joins its entries and its events (balancing §2.3).
	AnnotationServiceID = Group + "/serviceId"
	// AnnotationSkipFromBackend "true" spares connections that the policy's own backend pods make (balancing §6).
	AnnotationSkipFromBackend = Group + "/skipRedirectFromBackend"
	// AnnotationOnNoBackend "fallthrough" has connections without a backend go on as if there were no policy (balancing §7).
	AnnotationOnNoBackend = Group + "/onNoBackend"
	// AnnotationTargetPort, with the name of a backend port after it, is the port of a pod behind a proxy port, as a number or as
	// the name of a port of its containers (balancing §13).
	AnnotationTargetPort = Group + "/nodeProxyTargetPort."
)

// Annotations of Nodes.
const (
	AnnotationNodeID       = Group + "/nodeId"
	AnnotationNodeProxyIP4 = Group + "/nodeProxyIpv4"
	AnnotationNodeProxyIP6 = Group + "/nodeProxyIpv6"
	// AnnotationNodeProxyManaged "true" says that the proxy addresses are ours and follow the Node.
	AnnotationNodeProxyManaged = Group + "/nodeProxyManaged"
)

// ID is the id of a policy or of a Node: any 32-bit number but 0, which agents of elf-io's balancing take for none.
type ID uint32

// ParseID reads an id, as decimal digits.
func ParseID(text string) (ID, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no id; an id is a number from 1 to 4294967295", text)
	}
	return ID(n), nil
}

// String prints an id as ParseID reads it.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// ServiceID is the id in a policy's annotations; zero if there is none.
func ServiceID(annotations map[string]string) (ID, error) {
	return idIn(annotations, AnnotationServiceID)
}

func idIn(annotations map[string]string, key string) (ID, error) {
	text, ok := annotations[key]
	if !ok {
		return 0, nil
	}
	return ParseID(text)
}

// Node is what annotations say of a Node.
type Node struct {
	ID               ID         // zero if it has none
	ProxyV4, ProxyV6 netip.Addr // zero if it has none
	Managed          bool       // the proxy addresses follow the Node's own
}

// NodeOf reads a Node's annotations. What cannot be read is left out of what it returns, and told in the errors.
func NodeOf(annotations map[string]string) (Node, []error) {
	var out Node
	var errs []error
	bad := func(key string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("annotation %s: %w", key, err))
		}
	}
	var err error
	out.ID, err = idIn(annotations, AnnotationNodeID)
	bad(AnnotationNodeID, err)
	out.ProxyV4, err = proxyIP(annotations[AnnotationNodeProxyIP4], netip.Addr.Is4)
	bad(AnnotationNodeProxyIP4, err)
	out.ProxyV6, err = proxyIP(annotations[AnnotationNodeProxyIP6], netip.Addr.Is6)
	bad(AnnotationNodeProxyIP6, err)
	out.Managed, err = truth(annotations, AnnotationNodeProxyManaged)
	bad(AnnotationNodeProxyManaged, err)
	return out, errs
}

// Annotations prints what NodeOf reads; what is not set has no annotation.
func (n Node) Annotations() map[string]string {
	out := map[string]string{}
	if n.ID != 0 {
		out[AnnotationNodeID] = n.ID.String()
	}
	if n.ProxyV4.IsValid() {
		out[AnnotationNodeProxyIP4] = n.ProxyV4.String()
	}
	if n.ProxyV6.IsValid() {
		out[AnnotationNodeProxyIP6] = n.ProxyV6.String()
	}
	if n.Managed {
		out[AnnotationNodeProxyManaged] = "true"
	}
	return out
}

// proxyIP reads an address of one family; empty is none.
func proxyIP(text string, family func(netip.Addr) bool) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil || a.Zone() != "" || !family(a.Unmap()) {
		return netip.Addr{}, fmt.Errorf("%q is no address of this family; write it like 192.0.2.10 or 2001:db8::10", text)
	}
	return a.Unmap(), nil
}

// SkipsOwnBackends reads AnnotationSkipFromBackend.
func SkipsOwnBackends(annotations map[string]string) (bool, error) {
	return truth(annotations, AnnotationSkipFromBackend)
}

func truth(annotations map[string]string, key string) (bool, error) {
	switch text := annotations[key]; text {
	case "true":
		return true, nil
	case "", "false":
		return false, nil
	default:
		return false, fmt.Errorf("%q is neither true nor false", text)
	}
}

// FallsThrough reads AnnotationOnNoBackend.
func FallsThrough(annotations map[string]string) (bool, error) {
	switch text := annotations[AnnotationOnNoBackend]; text {
	case "fallthrough":
		return true, nil
	case "", "refuse":
		return false, nil
	default:
		return false, fmt.Errorf("%q is neither refuse nor fallthrough", text)
	}
}

// CheckTargetPort tells what is wrong with the value of an annotation AnnotationTargetPort.
func CheckTargetPort(text string) error {
	if n, err := strconv.ParseUint(text, 10, 16); err == nil && n > 0 {
		return nil
	}
	if len(validation.IsValidPortName(text)) == 0 {
		return nil
	}
	return fmt.Errorf("%q is neither a number from 1 to 65535 nor the name of a container's port", text)
}

// ParsePort reads a port of a policy: a number from 1 to 65535, zeros in front of which do no harm.
func ParsePort(text string) (uint16, error) {
	digits := strings.TrimLeft(text, "0")
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no port; a port is a number from 1 to 65535", text)
	}
	return uint16(n), nil
}

// IsPortName tells whether a name of a port is as they should be: letters, digits and single dashes inside, and a letter among
// them. Others are accepted: many were stored.
func IsPortName(name string) bool {
	if name == "" || name[0] == '-' || name[len(name)-1] == '-' || strings.Contains(name, "--") {
		return false
	}
	letter := false
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			letter = true
		case c >= '0' && c <= '9', c == '-':
		default:
			return false
		}
	}
	return letter
}
