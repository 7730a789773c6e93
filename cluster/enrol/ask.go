// SPDX-License-Identifier: Apache-2.0

package enrol

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/smallfile"
)

// BySigning asks a signer in this process, for a certificate like the one that is held.
func BySigning(signer Signer, source *pki.Source) Ask {
	return func(_ context.Context, request []byte) (*fairleadv1.SignedCertificate, error) {
		held := source.Material()
		signed, err := signer.Sign(request, pki.Request{
			Role: held.Identity.Role, Name: held.Identity.Name, Hosts: pki.HostsOf(held.Certificate.Leaf),
		})
		if err != nil {
			return nil, err
		}
		return message(signed), nil
	}
}

// AsMember asks the other members for another certificate of a member.
func AsMember(name string, others func() []Other) Ask {
	return func(ctx context.Context, request []byte) (*fairleadv1.SignedCertificate, error) {
		return anyOf(ctx, others(), func(o Other) (*fairleadv1.SignedCertificate, error) {
			answer, err := o.Client.RenewMember(ctx, &fairleadv1.RenewMemberRequest{Name: name, Request: request})
			return answer.GetCertificate(), err
		})
	}
}

// AsAgent asks members for another certificate of a node's agent.
func AsAgent(node string, members func() []Other) Ask {
	return func(ctx context.Context, request []byte) (*fairleadv1.SignedCertificate, error) {
		return anyOf(ctx, members(), func(o Other) (*fairleadv1.SignedCertificate, error) {
			answer, err := o.Client.Renew(ctx, &fairleadv1.RenewRequest{Node: node, Request: request})
			return answer.GetCertificate(), err
		})
	}
}

// AsStranger asks members for the first certificate of a node's agent, or of one outside the cluster. Both files are read anew each time: the token
// of a ServiceAccount is replaced every hour. Nobody is asked who was revoked; revoked may be nil.
func AsStranger(node string, outside bool, caFile, tokenFile string, members []string, revoked pki.Revoked) Ask {
	return func(ctx context.Context, request []byte) (*fairleadv1.SignedCertificate, error) {
		roots, err := pki.ReadRoots(caFile)
		if err != nil {
			return nil, err
		}
		token, err := readToken(tokenFile)
		if err != nil {
			return nil, err
		}
		req := &fairleadv1.EnrolRequest{Node: node, Request: request, Outside: outside}
		if strings.Count(token, ".") == 2 { // a JWT; one-time tokens have none
			req.Proof = &fairleadv1.EnrolRequest_ServiceAccountToken{ServiceAccountToken: token}
		} else {
			req.Proof = &fairleadv1.EnrolRequest_Token{Token: token}
		}
		peers := admin.NewPeers(&pki.Endpoint{Roots: roots, Revoked: revoked}, nil)
		defer peers.Close()
		return anyOf(ctx, Members(peers, members), func(o Other) (*fairleadv1.SignedCertificate, error) {
			answer, err := o.Client.Enrol(ctx, req)
			return answer.GetCertificate(), err
		})
	}
}

// Members gives the enrolment service of each member at an address.
func Members(peers *admin.Peers, addresses []string) []Other {
	out := make([]Other, len(addresses))
	for i, address := range addresses {
		out[i] = Other{Name: address, Client: peers.Client(address).Enrol}
	}
	return out
}

// maxTokenBytes is more than any token has.
const maxTokenBytes = 8 << 10

func readToken(path string) (string, error) {
	data, err := smallfile.Read(path, smallfile.Most)
	if err != nil {
		return "", fmt.Errorf("enrol: %w; mount the ServiceAccount token there, or write what `fairlead pki enrol` printed", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || len(token) > maxTokenBytes {
		return "", fmt.Errorf("enrol: %s: no token in it", path)
	}
	return token, nil
}

// anyOf asks one after another until one grants, beginning with any. What is refused for good is not asked again.
func anyOf(ctx context.Context, others []Other, ask func(Other) (*fairleadv1.SignedCertificate, error)) (*fairleadv1.SignedCertificate, error) {
	var whys []string
	for _, i := range rand.Perm(len(others)) {
		granted, err := ask(others[i])
		if err == nil {
			return granted, nil
		}
		whys = append(whys, others[i].Name+": "+err.Error())
		if errors.Is(err, admin.Forbidden) || errors.Is(err, admin.Invalid) || ctx.Err() != nil {
			break
		}
	}
	if len(whys) == 0 {
		return nil, errors.New("no member is known to ask")
	}
	return nil, errors.New(strings.Join(whys, "; "))
}
