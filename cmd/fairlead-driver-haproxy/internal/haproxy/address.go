// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"

	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// GenerateBackendAddr implements kit.Driver: HAProxy reaches a pod at its own address, and a Service at the node port on the
// internal address of the node.
func (d *Driver) GenerateBackendAddr(_ context.Context, r webhook.GenerateBackendAddrRequest) (webhook.GenerateBackendAddrResponse, error) {
	address, err := generate(r)
	if err != nil {
		err = &refusal{err}
	}
	a, err := answer(err)
	return webhook.GenerateBackendAddrResponse{Answer: a, BackendAddr: address}, err
}

func generate(r webhook.GenerateBackendAddrRequest) (string, error) {
	switch {
	case r.PodBackend != nil:
		return podAddress(r.PodBackend)
	case r.ServiceBackend != nil:
		return nodePortAddress(r.ServiceBackend)
	default:
		return "", errors.New("neither a pod nor a service")
	}
}

func podAddress(b *webhook.PodBackend) (string, error) {
	var pod struct{ Status struct{ PodIP string } }
	if err := json.Unmarshal(b.Pod, &pod); err != nil {
		return "", fmt.Errorf("pod: %w", err)
	}
	if pod.Status.PodIP == "" {
		return "", errors.New("the pod has no address yet")
	}
	return join(pod.Status.PodIP, b.Port.Number(), b.Port.Protocol)
}

func nodePortAddress(b *webhook.ServiceBackend) (string, error) {
	var service struct {
		Spec struct {
			Ports []struct {
				Port, NodePort int32
				Protocol       string
			}
		}
	}
	if err := json.Unmarshal(b.Service, &service); err != nil {
		return "", fmt.Errorf("service: %w", err)
	}
	nodePort := int32(0)
	for _, p := range service.Spec.Ports {
		if p.Port == b.Port.Number() && tcp(p.Protocol) {
			nodePort = p.NodePort
		}
	}
	if nodePort == 0 {
		return "", fmt.Errorf("the service has no node port for TCP port %d; its type has to be NodePort or LoadBalancer", b.Port.Number())
	}
	for _, a := range b.NodeAddresses {
		if a.Type == "InternalIP" {
			return join(a.Address, nodePort, b.Port.Protocol)
		}
	}
	return "", fmt.Errorf("node %s has no InternalIP", b.NodeName)
}

func tcp(protocol string) bool { return protocol == "" || protocol == "TCP" }

func join(ip string, port int32, protocol string) (string, error) {
	if !tcp(protocol) {
		return "", fmt.Errorf("protocol %s: HAProxy balances TCP", protocol)
	}
	address, err := parseAddress(net.JoinHostPort(ip, strconv.Itoa(int(port))))
	if err != nil {
		return "", err
	}
	return address.String(), nil
}
