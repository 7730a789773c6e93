// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// Names of checks that others need.
const (
	reachable = "healthz"
	created   = "createLoadBalancer"
	addressed = "generateBackendAddr"
	ensured   = "ensureBackend"
	deleted   = "deleteLoadBalancer"
)

// crowd is how many backends are registered at once.
const crowd = 8

// questions lists the checks in their order: everything that is made is used, and then taken off again.
func questions() []question {
	alive := []string{reachable}
	return []question{
		{reachable, "3.13", "healthz answers {\"healthy\":true}", "answer {\"healthy\":true} when the driver can do its work", nil, askHealth},
		{"validateLoadBalancer", "3.4", "a load balancer that users may have passes validation", "give the test what users write: --lb-spec and --attribute", alive, askValidLoadBalancer},
		{"unknown-fields", "3.3", "fields of requests that the driver does not know are ignored", "do not refuse unknown fields: newer callers send more", []string{"validateLoadBalancer"}, askUnknownFields},
		{"bad-request", "3.1", "a request that is no JSON does nothing, and harms nothing", "answer an HTTP status other than 200, and go on", alive, askNonsense},
		{created, "3.5", "a load balancer is created, or found", "give the test what users write, and look into the driver's log", alive, askCreate},
		{"createLoadBalancer-again", "3.14", "creating it again succeeds and gives the same lbInfo", "derive the load balancer from lbSpec or recordID, and look whether it is there: calls are repeated after crashes", []string{created}, askCreateAgain},
		{"ensureLoadBalancer", "3.6", "its attributes are set", "look into the driver's log", []string{created}, askEnsureLoadBalancer},
		{"ensureLoadBalancer-again", "3.14", "setting them again succeeds", "what is as wanted is a success", []string{"ensureLoadBalancer"}, askEnsureLoadBalancer},
		{"validateBackend", "3.8", "backends with parameters that users may write pass validation", "give the test what users write: --parameter", []string{created}, askValidBackend(webhook.Create)},
		{"validateBackend-update", "3.8", "so do they when they were others before", "take OldParameters, and oldParameters beside them", []string{"validateBackend"}, askValidBackend(webhook.Update)},
		{addressed, "3.9", "a pod's backend has an address", "make an address of podBackend, or use --address if only static backends are served", []string{created}, askAddresses},
		{"generateBackendAddr-again", "3.14", "asked again, it is the same address", "derive the address from the pod and its port alone", []string{addressed}, askAddressAgain},
		{ensured, "3.10", "a backend is registered", "look into the driver's log", []string{addressed}, askEnsure},
		{"ensureBackend-again", "3.10", "registering it again succeeds", "what is registered already is a success", []string{ensured}, askEnsure},
		{"deregisterBackend-unknown", "3.11", "deregistering a backend that never was registered succeeds", "what is not there is deregistered", []string{addressed}, askDeregister(1, "unknown")},
		{"deregisterBackend", "3.11", "a backend is deregistered", "look into the driver's log", []string{addressed}, askDeregister(0, "0")},
		{"deregisterBackend-again", "3.11", "deregistering it again succeeds", "what is not there is deregistered", []string{"deregisterBackend"}, askDeregister(0, "0")},
		{"address-returns", "5.6", "an address that was deregistered can be registered again, and deregistered", "remember nothing of backends that are gone", []string{ensured, "deregisterBackend"}, askReturn},
		{"backends-at-once", "3.14", fmt.Sprintf("%d backends are registered and deregistered at the same time", crowd), "calls about different backends come concurrently: serialize what your load balancer cannot do at once", []string{ensured, "deregisterBackend"}, askCrowd},
		{deleted, "3.7", "the load balancer is deleted", "look into the driver's log; it may still be there", []string{created}, askDelete},
		{"deleteLoadBalancer-again", "3.14", "deleting it again succeeds", "what is not there is deleted", []string{deleted}, askDelete},
		{"deregisterBackend-no-balancer", "3.11", "deregistering a backend of a load balancer that is gone succeeds", "where there is no load balancer, nothing is registered", []string{deleted, addressed}, askDeregister(0, "0")},
		{"judgePodDeregister", "3.12", "pods to keep are among those that it was asked about", "answer pods of notReadyPods only, with their metadata.uid", alive, askJudge},
	}
}

func askHealth(ctx context.Context, s *session) (string, error) {
	healthy, known, err := s.client.Healthz(ctx, s.call())
	switch {
	case err != nil:
		return "", err
	case !known:
		return "the driver does not know the call (404), which is allowed: its health is unknown", nil
	case !healthy:
		return "", errors.New("it says that it is not healthy")
	}
	return "", nil
}

// verdict is a validation's outcome.
func verdict(v webhook.Verdict, err error) (string, error) {
	if err == nil && !v.Succ {
		err = fmt.Errorf("it was refused: %s", short(v.Msg))
	}
	return "", err
}

func askValidLoadBalancer(ctx context.Context, s *session) (string, error) {
	return verdict(s.client.ValidateLoadBalancer(ctx, s.call(), webhook.ValidateLoadBalancerRequest{
		Operation: webhook.Create, LBSpec: s.o.LBSpec, Attributes: s.o.Attributes,
	}))
}

// post sends a body as it is to a webhook.
func (s *session) post(ctx context.Context, n webhook.Name, body []byte) (status int, answer []byte, err error) {
	base, err := webhook.ParseURL(s.o.URL)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.At(base).String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if s.o.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.o.Token)
	} else if u := s.o.User; u != nil {
		password, _ := u.Password()
		r.SetBasicAuth(u.Username(), password)
	}
	response, err := s.http.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was read to its end, or is too long
	const most = 1 << 20
	answer, err = io.ReadAll(io.LimitReader(response.Body, most))
	return response.StatusCode, answer, err
}

func askUnknownFields(ctx context.Context, s *session) (string, error) {
	body, err := json.Marshal(struct {
		webhook.ValidateLoadBalancerRequest
		Unknown map[string]any `json:"fieldThatNobodyKnows"`
	}{
		webhook.ValidateLoadBalancerRequest{Operation: webhook.Create, LBSpec: s.o.LBSpec, Attributes: s.o.Attributes},
		map[string]any{"deep": []int{1, 2}},
	})
	if err != nil {
		return "", err
	}
	status, answer, err := s.post(ctx, webhook.ValidateLoadBalancer, body)
	if err != nil {
		return "", err
	}
	var v webhook.Verdict
	if err := json.Unmarshal(answer, &v); status != http.StatusOK || err != nil || !v.Succ {
		return "", fmt.Errorf("with a field more the same request is refused: HTTP %d, %s", status, short(v.Msg))
	}
	return "", nil
}

func askNonsense(ctx context.Context, s *session) (string, error) {
	status, answer, err := s.post(ctx, webhook.EnsureBackend, []byte("this is no JSON"))
	if err != nil {
		return "", err
	}
	var a webhook.Answer
	if json.Unmarshal(answer, &a) == nil && status == http.StatusOK && a.Status != webhook.Fail {
		return "", fmt.Errorf("it answered HTTP 200 and status %.40q", a.Status)
	}
	return askHealth(ctx, s)
}

func (s *session) create(ctx context.Context) (webhook.Map, error) {
	var info webhook.Map
	err := s.done(ctx, func() (webhook.Answer, error) {
		a, err := s.client.CreateLoadBalancer(ctx, s.call(), webhook.CreateLoadBalancerRequest{
			Attempt: s.attempt(webhook.CreateLoadBalancer, "lb"), LBSpec: s.o.LBSpec, Attributes: s.o.Attributes,
		})
		info = a.LBInfo
		return a.Answer, err
	})
	return info, err
}

func askCreate(ctx context.Context, s *session) (_ string, err error) {
	s.info, err = s.create(ctx)
	return "", err
}

func askCreateAgain(ctx context.Context, s *session) (string, error) {
	info, err := s.create(ctx)
	if err == nil && !maps.Equal(info, s.info) {
		err = fmt.Errorf("lbInfo was %v, and is %v now: two load balancers, or one with two identities", s.info, info)
	}
	return "", err
}

func (s *session) balancer(n webhook.Name) webhook.LoadBalancerRequest {
	return webhook.LoadBalancerRequest{Attempt: s.attempt(n, "lb"), LBInfo: s.info, Attributes: s.o.Attributes}
}

func askEnsureLoadBalancer(ctx context.Context, s *session) (string, error) {
	return "", s.done(ctx, func() (webhook.Answer, error) {
		return s.client.EnsureLoadBalancer(ctx, s.call(), s.balancer(webhook.EnsureLoadBalancer))
	})
}

func askDelete(ctx context.Context, s *session) (string, error) {
	return "", s.done(ctx, func() (webhook.Answer, error) {
		return s.client.DeleteLoadBalancer(ctx, s.call(), s.balancer(webhook.DeleteLoadBalancer))
	})
}

func askValidBackend(operation webhook.Operation) func(context.Context, *session) (string, error) {
	return func(ctx context.Context, s *session) (string, error) {
		kind := webhook.Pod
		if len(s.o.Addresses) > 0 {
			kind = webhook.Static
		}
		return verdict(s.client.ValidateBackend(ctx, s.call(), webhook.ValidateBackendRequest{
			BackendType: kind, Operation: operation, LBInfo: s.info, Parameters: s.o.Parameters, OldParameters: s.o.Parameters,
		}))
	}
}

// generate asks for the address of a pod that is made up.
func (s *session) generate(ctx context.Context, pod int) (string, error) {
	address := ""
	err := s.done(ctx, func() (webhook.Answer, error) {
		a, err := s.client.GenerateBackendAddr(ctx, s.call(), webhook.GenerateBackendAddrRequest{
			Attempt: s.attempt(webhook.GenerateBackendAddr, fmt.Sprint(pod)), LBInfo: s.info, LBAttributes: s.o.Attributes, Parameters: s.o.Parameters,
			PodBackend: &webhook.PodBackend{Pod: s.pod(pod), Port: webhook.PortOf(8080, "TCP")},
		})
		address = a.BackendAddr
		return a.Answer, err
	})
	return address, err
}

func askAddresses(ctx context.Context, s *session) (string, error) {
	if len(s.o.Addresses) > 0 {
		s.address = s.o.Addresses
		return "static backends: the driver is not asked", nil
	}
	seen := map[string]bool{}
	for pod := range crowd {
		address, err := s.generate(ctx, pod)
		if err != nil {
			return "", err
		}
		if seen[address] {
			return "", fmt.Errorf("two pods have the address %.80q", address)
		}
		seen[address] = true
		s.address = append(s.address, address)
	}
	return "", nil
}

func askAddressAgain(ctx context.Context, s *session) (string, error) {
	if len(s.o.Addresses) > 0 {
		return "", skipped{errors.New("static backends: the driver is not asked")}
	}
	address, err := s.generate(ctx, 0)
	if err == nil && address != s.address[0] {
		err = fmt.Errorf("it was %.80q, and is %.80q now", s.address[0], address)
	}
	return "", err
}

func (s *session) backend(n webhook.Name, address int, object string, injected webhook.Map) webhook.BackendRequest {
	return webhook.BackendRequest{
		Attempt: s.attempt(n, object), LBInfo: s.info, BackendAddr: s.address[address], Parameters: s.o.Parameters, InjectedInfo: injected,
	}
}

// ensure registers a backend, and gives what the driver injects.
func (s *session) ensure(ctx context.Context, call driver.Call, address int, object string, injected webhook.Map) (webhook.Map, error) {
	err := s.done(ctx, func() (webhook.Answer, error) {
		a, err := s.client.EnsureBackend(ctx, call, s.backend(webhook.EnsureBackend, address, object, injected))
		if len(a.InjectedInfo) > 0 {
			injected = a.InjectedInfo
		}
		return a.Answer, err
	})
	return injected, err
}

func (s *session) deregister(ctx context.Context, call driver.Call, address int, object string, injected webhook.Map) error {
	return s.done(ctx, func() (webhook.Answer, error) {
		return s.client.DeregisterBackend(ctx, call, s.backend(webhook.DeregisterBackend, address, object, injected))
	})
}

func askEnsure(ctx context.Context, s *session) (_ string, err error) {
	s.injected, err = s.ensure(ctx, s.call(), 0, "0", s.injected)
	return "", err
}

func askDeregister(address int, object string) func(context.Context, *session) (string, error) {
	return func(ctx context.Context, s *session) (string, error) {
		injected := s.injected
		if address != 0 {
			injected = nil
		}
		return "", s.deregister(ctx, s.call(), address, object, injected)
	}
}

func askReturn(ctx context.Context, s *session) (string, error) {
	injected, err := s.ensure(ctx, s.call(), 0, "returned", nil)
	return "", errors.Join(err, s.deregister(ctx, s.call(), 0, "returned", injected))
}

func askCrowd(ctx context.Context, s *session) (string, error) {
	errs := make([]error, min(crowd, len(s.address)))
	var all sync.WaitGroup
	for i := range errs {
		in, out := s.call(), s.call()
		all.Go(func() {
			object := fmt.Sprintf("crowd-%d", i)
			injected, err := s.ensure(ctx, in, i, object, nil)
			errs[i] = errors.Join(err, s.deregister(ctx, out, i, object, injected))
		})
	}
	all.Wait()
	return "", errors.Join(errs...)
}

func askJudge(ctx context.Context, s *session) (string, error) {
	j, err := s.client.JudgePodDeregister(ctx, s.call(), webhook.JudgePodDeregisterRequest{NotReadyPods: []json.RawMessage{s.pod(0), s.pod(1)}})
	var e *driver.Error
	switch {
	case errors.As(err, &e) && e.Status == http.StatusNotFound:
		return "", skipped{errors.New("the driver does not know the call (404): it judges no pods")}
	case err != nil:
		return "", err
	case j.Strangers > 0:
		return "", fmt.Errorf("it answered %d pods that it was not asked about", j.Strangers)
	}
	return "", nil
}
