// SPDX-License-Identifier: Apache-2.0

// Package pki knows who is who: it makes the CA and the certificates of members, agents, hosts, operators and
// viewers, and guards the two mutual-TLS ports, Raft and API.
//
// It promises that a connection through an Endpoint has a peer whose role and name are proven by a
// certificate of the group's CA, and that no member talks to one of another group or another epoch; what it
// refuses it logs and counts. Certificate files are read again when they change. A connection ends with what it was admitted by: its
// certificate, the CA, the group's trust in both (Endpoint.EndStale).
//
// Start reading at Identity (who), then Membership (which group, which epoch), then Endpoint (the ports).
// Making files is in Init and Issue.
package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Role is what the holder of a certificate may be. Which calls each may make is decided in cluster/admin.
type Role string

// The roles that exist.
const (
	Member   Role = "member"   // a controller: both ends of Raft, and the API's server
	Agent    Role = "agent"    // the agent of one node, which the name is
	Host     Role = "host"     // the agent of a machine outside the cluster, which the name is
	Operator Role = "operator" // a person or program that may change things
	Viewer   Role = "viewer"   // a person or program that may look
)

// Roles lists all roles, most powerful first.
func Roles() []Role { return []Role{Member, Agent, Host, Operator, Viewer} }

// Identity is what a certificate proves.
type Identity struct {
	Domain string // the CA's name; several CAs of one group may differ in it
	Role   Role
	Name   string // of the member, the node, or the person; a DNS subdomain (RFC 1123)
}

// String gives role and name, as histories and logs show an actor: "operator/alice".
func (i Identity) String() string { return string(i.Role) + "/" + i.Name }

// ParseActor reads what String wrote; the domain is not part of it.
func ParseActor(actor string) (Identity, error) {
	role, name, ok := strings.Cut(actor, "/")
	id := Identity{Role: Role(role), Name: name}
	if !ok || !slices.Contains(Roles(), id.Role) {
		return Identity{}, fmt.Errorf("read actor %q: %w", actor, ErrNoIdentity)
	}
	return id, checkName("actor name", name)
}

const (
	uriScheme          = "fairlead"
	organizationPrefix = "fairlead:"
	maxNameLength      = 253 // RFC 1123, and what Kubernetes allows a node's name to be
)

// ErrNoIdentity is part of every error about a certificate that does not say who its holder is in the way
// that Issue writes it.
var ErrNoIdentity = errors.New("no fairlead identity")

// Identify reads role and name from a certificate. It does not verify the certificate.
//
// They stand in the one URI fairlead://<domain>/<role>/<name>, and again in the organization and the common
// name, for people; where these contradict each other the certificate is worth nothing. Errors: ErrNoIdentity.
func Identify(cert *x509.Certificate) (Identity, error) {
	fail := func(format string, args ...any) (Identity, error) {
		return Identity{}, fmt.Errorf("certificate %q: %w: %s", cert.Subject.CommonName, ErrNoIdentity, fmt.Sprintf(format, args...))
	}
	var found *url.URL
	for _, uri := range cert.URIs {
		if uri.Scheme != uriScheme {
			continue
		}
		if found != nil {
			return fail("it has two %s:// names", uriScheme)
		}
		found = uri
	}
	if found == nil {
		return fail("it has no %s:// name", uriScheme)
	}
	id, err := parseURI(found)
	if err != nil {
		return fail("%v", err)
	}
	if cert.IsCA {
		return fail("it is a CA")
	}
	if !slices.Equal(cert.Subject.Organization, []string{organizationPrefix + string(id.Role)}) || cert.Subject.CommonName != id.Name {
		return fail("%s and the subject %q contradict each other", found, cert.Subject)
	}
	return id, nil
}

func parseURI(uri *url.URL) (Identity, error) {
	segments := strings.Split(strings.TrimPrefix(uri.Path, "/"), "/")
	if len(segments) != 2 || uri.RawQuery != "" || uri.Fragment != "" || uri.User != nil {
		return Identity{}, fmt.Errorf("%s is not %s://domain/role/name", uri, uriScheme)
	}
	id := Identity{Domain: uri.Host, Role: Role(segments[0]), Name: segments[1]}
	if !slices.Contains(Roles(), id.Role) {
		return Identity{}, fmt.Errorf("unknown role %q", id.Role)
	}
	if err := checkName("domain", id.Domain); err != nil {
		return Identity{}, err
	}
	return id, checkName("name", id.Name)
}

func (i Identity) uri() *url.URL {
	return &url.URL{Scheme: uriScheme, Host: i.Domain, Path: "/" + string(i.Role) + "/" + i.Name}
}

// CheckName tells whether nobody can have a certificate of a name, and why.
func CheckName(name string) error { return checkName("name", name) }

// checkName holds names to DNS subdomains, so that they are the same in a URI, a log line and Kubernetes.
func checkName(what, name string) error {
	edge := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	valid := name != "" && len(name) <= maxNameLength && edge(name[0]) && edge(name[len(name)-1]) && !strings.Contains(name, "..")
	for i := 0; valid && i < len(name); i++ {
		valid = edge(name[i]) || name[i] == '-' || name[i] == '.'
	}
	if !valid {
		return fmt.Errorf("%s %q: not a DNS name; use lower-case letters, digits, - and .", what, name) //nolint:staticcheck // the full stop is one of them
	}
	return nil
}
