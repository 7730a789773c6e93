// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
)

// externalKey is what Services agree on that name an address in spec.externalIPs, without any annotation.
const externalKey = "externalIPs"

// maxSharingKey is how long a key in the record may be.
const maxSharingKey = 4096

// sharingKey is under which key a Service shares an address; empty shares with nobody. Under externalTrafficPolicy Local that is only
// with Services of the policy which lead to the same pods: a node without its endpoints would drop what belongs to the other.
func (s *wish) sharingKey(a netip.Addr) string {
	key := s.next.SharingKey()
	if key == "" && slices.Contains(s.next.External(), a) {
		key = externalKey
	}
	if key == "" || !s.next.Local {
		return key
	}
	return s.localKey(key)
}

// localKey adds to a key the pods that a Service leads to; empty where nobody can tell them. No key of another policy is like it: those begin with names
// of namespaces, "*" or externalKey.
func (s *wish) localKey(key string) string {
	if s.seen == nil || s.seen.Extras().Selector == "" {
		return "" // its endpoints are made by hand
	}
	ready := "ready pods"
	if s.seen.PublishNotReady {
		ready = "all pods"
	}
	whole := fmt.Sprintf("Local, %s of %s with %s: %s", ready, s.seen.Namespace, s.seen.Extras().Selector, key)
	if len(whole) > maxSharingKey {
		return fmt.Sprintf("Local, %x", sha256.Sum256([]byte(whole)))
	}
	return whole
}
