// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"strconv"
	"sync"

	"fairlead.io/fairlead/dataplane/driver/kit"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// memory is a driver of load balancers that exist in its memory only. A real one calls an API where this one has maps.
type memory struct {
	mu        sync.Mutex
	balancers map[string]map[string]string // name -> address -> weight
}

func newMemory() *memory { return &memory{balancers: map[string]map[string]string{}} }

// ValidateLoadBalancer implements kit.Driver.
func (m *memory) ValidateLoadBalancer(_ context.Context, r webhook.ValidateLoadBalancerRequest) (webhook.Verdict, error) {
	if r.LBSpec["name"] == "" {
		return webhook.Verdict{Msg: "spec.lbSpec needs a name"}, nil
	}
	return webhook.Verdict{Succ: true}, nil
}

// CreateLoadBalancer implements kit.Driver. The name is the identity, so that asking twice makes one.
func (m *memory) CreateLoadBalancer(_ context.Context, r webhook.CreateLoadBalancerRequest) (webhook.CreateLoadBalancerResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := r.LBSpec["name"]
	if m.balancers[name] == nil && !r.DryRun {
		m.balancers[name] = map[string]string{}
	}
	return webhook.CreateLoadBalancerResponse{Answer: webhook.Answer{Status: webhook.Succ}, LBInfo: webhook.Map{"name": name}}, nil
}

// EnsureLoadBalancer implements kit.Driver. These balancers have no attributes.
func (m *memory) EnsureLoadBalancer(context.Context, webhook.LoadBalancerRequest) (webhook.Answer, error) {
	return webhook.Answer{Status: webhook.Succ}, nil
}

// DeleteLoadBalancer implements kit.Driver. What others put on it stays: it is refused then.
func (m *memory) DeleteLoadBalancer(_ context.Context, r webhook.LoadBalancerRequest) (webhook.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if left := len(m.balancers[r.LBInfo["name"]]); left > 0 {
		return webhook.Answer{Status: webhook.Fail, Msg: fmt.Sprintf("%d backends are on it", left)}, nil
	}
	if !r.DryRun {
		delete(m.balancers, r.LBInfo["name"])
	}
	return webhook.Answer{Status: webhook.Succ}, nil
}

// ValidateBackend implements kit.Driver.
func (m *memory) ValidateBackend(_ context.Context, r webhook.ValidateBackendRequest) (webhook.Verdict, error) {
	if weight, ok := r.Parameters["weight"]; ok {
		if _, err := strconv.ParseUint(weight, 10, 8); err != nil {
			return webhook.Verdict{Msg: "spec.parameters.weight is a number from 0 to 255, in quotes"}, nil
		}
	}
	return webhook.Verdict{Succ: true}, nil
}

// GenerateBackendAddr implements kit.Driver: the address is the pod's, or the node's internal one.
func (m *memory) GenerateBackendAddr(_ context.Context, r webhook.GenerateBackendAddrRequest) (webhook.GenerateBackendAddrResponse, error) {
	address, port := "", int32(0)
	switch {
	case r.PodBackend != nil:
		var pod struct{ Status struct{ PodIP string } }
		if err := json.Unmarshal(r.PodBackend.Pod, &pod); err != nil {
			return webhook.GenerateBackendAddrResponse{}, err
		}
		address, port = pod.Status.PodIP, r.PodBackend.Port.Number()
	case r.ServiceBackend != nil:
		var service struct {
			Spec struct {
				Ports []struct{ Port, NodePort int32 }
			}
		}
		if err := json.Unmarshal(r.ServiceBackend.Service, &service); err != nil {
			return webhook.GenerateBackendAddrResponse{}, err
		}
		for _, a := range r.ServiceBackend.NodeAddresses {
			if a.Type == "InternalIP" {
				address = a.Address
			}
		}
		for _, p := range service.Spec.Ports {
			if p.Port == r.ServiceBackend.Port.Number() {
				port = p.NodePort
			}
		}
	}
	if address == "" || port == 0 {
		return webhook.GenerateBackendAddrResponse{Answer: webhook.Answer{Status: webhook.Fail, Msg: "it has no address yet"}}, nil
	}
	return webhook.GenerateBackendAddrResponse{
		Answer: webhook.Answer{Status: webhook.Succ}, BackendAddr: net.JoinHostPort(address, strconv.Itoa(int(port))),
	}, nil
}

// EnsureBackend implements kit.Driver.
func (m *memory) EnsureBackend(_ context.Context, r webhook.BackendRequest) (webhook.EnsureBackendResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	balancer, ok := m.balancers[r.LBInfo["name"]]
	if !ok {
		return webhook.EnsureBackendResponse{Answer: webhook.Answer{Status: webhook.Fail, Msg: "there is no such load balancer", MinRetryDelay: 5}}, nil
	}
	if !r.DryRun {
		balancer[r.BackendAddr] = r.Parameters["weight"]
	}
	return webhook.EnsureBackendResponse{Answer: webhook.Answer{Status: webhook.Succ}}, nil
}

// DeregisterBackend implements kit.Driver. It looks for its address only: others' backends are none of its business.
func (m *memory) DeregisterBackend(_ context.Context, r webhook.BackendRequest) (webhook.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !r.DryRun {
		delete(m.balancers[r.LBInfo["name"]], r.BackendAddr)
	}
	return webhook.Answer{Status: webhook.Succ}, nil
}

// A whole driver, and its test as `fairlead driver test URL --lb-spec name=edge` runs it.
func Example() {
	server := httptest.NewServer(kit.NewHandler(newMemory(), kit.HandlerOptions{}))
	defer server.Close()
	report, err := kit.Test(context.Background(), kit.TestOptions{URL: server.URL, LBSpec: webhook.Map{"name": "edge"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range report.Checks {
		if c.Result == kit.Failed {
			fmt.Printf("%s (§%s): %s; %s\n", c.Name, c.Section, c.Why, c.Remedy)
		}
	}
	fmt.Println(report.Failed, "failed")
	// Output: 0 failed
}
