// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"net/http"
	"time"

	"fairlead.io/fairlead/cmd/internal/member/drivers"
	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/pool"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/admission"
	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/cabundle"
	"fairlead.io/fairlead/k8s/convert"
)

// openAdmission has this member judge objects of LBCF's kinds for the API server, all the time, and the leader tell that by
// which CA members are known.
func (m *Member) openAdmission() error {
	at := m.network.Admission
	if at == nil {
		return nil
	}
	if m.stored == nil || m.drivers == nil {
		m.log.Warn("admission is not served: no cluster is read", "listen", m.config.Listen.Admission)
		return nil
	}
	metrics, err := admission.NewMetrics(m.registry)
	if err != nil {
		return err
	}
	h := &admission.Handler{View: m.view, Ask: m.ask, Metrics: metrics, Rules: admission.Rules{
		DriverAway: admission.Away(m.config.Admission.DriverAway), DryRun: m.config.LBCF.DryRun,
	}}
	mux := http.NewServeMux()
	for path, handler := range h.Routes() {
		mux.Handle(path, handler)
	}
	policies, err := m.policyRoutes(metrics)
	if err != nil {
		return err
	}
	for path, handler := range policies {
		mux.Handle(path, handler)
	}
	m.judges = mux
	keeper, err := cabundle.New(cabundle.Options{API: m.kube, Bundle: at.Bundle, Policies: len(policies) > 0, Clock: wallClock{}, Log: m.log})
	if err != nil {
		return err
	}
	m.node.WhileLeader(func(ctx context.Context, _ uint64) { keeper.Run(ctx) })
	return nil
}

// view is what is stored, once that was read in full.
func (m *Member) view(ctx context.Context) (admission.View, error) { return m.stored.View(ctx) }

// ask has a driver asked by the client that calls it in all else, too.
func (m *Member) ask(ctx context.Context, c admission.Call) admission.Answer {
	s := settingsOf(c.Driver)
	row, ok := fsm.Get[*fsm.Driver](m.state.Read(), fsm.TableDrivers, s.Name)
	if ok && row.URL == s.URL {
		s = drivers.Settings(row)
	}
	client, err := m.drivers.For(s)
	if err != nil {
		return admission.Answer{Err: err}
	}
	return ask(ctx, client, c)
}

// ask asks a driver in the webhooks' own words (package webhook).
func ask(ctx context.Context, client *driver.Client, c admission.Call) admission.Answer {
	var v webhook.Verdict
	var err error
	how := driver.Call{DryRun: c.DryRun}
	if q := c.LoadBalancer; q != nil {
		v, err = client.ValidateLoadBalancer(ctx, how, webhook.ValidateLoadBalancerRequest{
			Operation: webhook.Operation(q.Operation), LBSpec: q.LBSpec, Attributes: q.Attributes, OldAttributes: q.OldAttributes,
		})
	} else {
		q := c.Backend
		v, err = client.ValidateBackend(ctx, how, webhook.ValidateBackendRequest{
			BackendType: webhook.BackendType(q.BackendType), Operation: webhook.Operation(q.Operation), LBInfo: q.LBInfo,
			Parameters: q.Parameters, OldParameters: q.OldParameters,
		})
	}
	return admission.Answer{Succ: v.Succ, Msg: v.Msg, Err: err}
}

// settingsOf is how a driver is called that the record does not know yet. Timeouts that are none, of objects from before
// admission looked at them, become the nearest that is one.
func settingsOf(d *v1beta1.LoadBalancerDriver) pool.Settings {
	s := pool.Settings{
		Name: d.Namespace + "/" + d.Name, URL: fsm.WithoutUserinfo(d.Spec.URL), Timeouts: map[webhook.Name]time.Duration{},
		AcceptsDryRun: d.Spec.AcceptDryRunCall, Secret: d.Annotations[convert.AnnotationCredentials],
	}
	for _, w := range d.Spec.Webhooks {
		if lbcf.IsWebhook(w.Name) {
			s.Timeouts[webhook.Name(w.Name)] = min(lbcf.Timeout(d, w.Name), lbcf.MaxTimeout)
		}
	}
	return s
}
