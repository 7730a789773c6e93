// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/tokenreview"
)

// signerEndsSoon is how long before the end of what signs a member says so at its start.
const signerEndsSoon = 90 * 24 * time.Hour

// openEnrolment gives agents their certificates, and keeps this member's own fresh.
func (m *Member) openEnrolment() error {
	o := enrol.Options{
		Member: m.config.Name, Record: m.state, Proposer: m.node, ServiceAccount: m.config.Enrolment.ServiceAccount,
		Others: m.otherSigners, Serves: m.node.Serves, Log: m.log, Metrics: m.registry, Now: time.Now,
	}
	var authority *pki.Authority
	if key := m.config.TLS.CAKey; key != "" {
		var err error
		if authority, err = pki.OpenAuthority(m.config.TLS.CA, key); err != nil {
			return err
		}
		o.Signer = authority
		m.registry.MustRegister(authority.ExpiryGauge())
		if end, err := authority.NotAfter(); err == nil && time.Until(end) < signerEndsSoon {
			m.log.Warn("all certificates end with the one that signs them: replace it", "not_after", end, "remedy", "fairlead pki signer")
		}
	}
	if m.kube != nil {
		o.Reviewer = reviewer{tokenreview.Reviewer{
			Reviews: m.kube.Client.AuthenticationV1().TokenReviews(), Audience: enrol.Audience,
		}}
	}
	service, err := enrol.New(o)
	if err != nil {
		return err
	}
	m.server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewEnrolServiceHandler(service, o...)
	})
	expiry := enrol.Expiry{Record: m.state, Proposer: here{m.node}, Member: m.config.Name, Log: m.log}
	m.node.WhileLeader(func(ctx context.Context, _ uint64) { expiry.Run(ctx) })
	if m.network.Endpoint == nil {
		return nil
	}
	return m.holdCertificate(authority)
}

// holdCertificate keeps this member's own certificate fresh. authority is nil on a member without the CA's key.
func (m *Member) holdCertificate(authority *pki.Authority) (err error) {
	source := m.network.Endpoint.Source
	renew, again := enrol.AsMember(m.config.Name, m.otherSigners), enrol.Ask(nil)
	if authority != nil {
		renew = enrol.BySigning(authority, source)
		again = renew // its own expired certificate does not keep it from signing
	}
	if authority == nil {
		m.log.Warn("this member's certificate is renewed by another one that has tls.caKey, or by nobody: then it ends", "not_after", source.Material().Certificate.Leaf.NotAfter,
			"remedy", "see that at least one member has tls.caKey (fairlead pki signer; docs/install.md)")
	}
	m.registry.MustRegister(pki.ExpiryGauge(source))
	m.holder, err = enrol.NewHolder(enrol.HolderOptions{
		Files: m.network.Files, Source: source, Renew: renew, Enrol: again, Renewed: m.clients.Close, Log: m.log, Metrics: m.registry,
	})
	return err
}

// otherSigners are the other members, which may have the CA's key.
func (m *Member) otherSigners() []enrol.Other {
	known := map[string]bool{m.config.Name: true}
	var out []enrol.Other
	add := func(name string) {
		address := m.apiOf(name)
		if known[name] || address == "" {
			return
		}
		known[name] = true
		out = append(out, enrol.Other{Name: name, Client: m.clients.Client(address).Enrol})
	}
	for _, p := range fsm.List[*fsm.Member](m.state.Read(), fsm.TableMembers) {
		add(p.Name)
	}
	for _, p := range m.config.Members {
		add(p.Name)
	}
	return out
}

// here keeps proposals on this member: once it no longer leads, they are somebody else's to make.
type here struct{ node *cluster.Node }

func (h here) Propose(ctx context.Context, u cluster.Urgency, proposals ...fsm.Proposal) ([]fsm.Outcome, error) {
	return h.node.ProposeLocal(ctx, u, proposals...)
}

// reviewer puts Kubernetes' answers into enrolment's words.
type reviewer struct{ tokenreview.Reviewer }

// Review implements enrol.Reviewer.
func (r reviewer) Review(ctx context.Context, token string) (enrol.Review, error) {
	a, err := r.Reviewer.Review(ctx, token)
	return enrol.Review(a), err
}
