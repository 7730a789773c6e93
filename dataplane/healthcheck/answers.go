// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// answers tells, whatever is asked for, what kube-proxy 1.36 does.
type answers struct {
	check   *atomic.Pointer[Check]
	healthy func() bool
	metrics *metrics
}

// answer is the body.
type answer struct {
	Service struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"service"`
	LocalEndpoints      int  `json:"localEndpoints"`
	ServiceProxyHealthy bool `json:"serviceProxyHealthy"`
}

// ServeHTTP implements http.Handler: 200 if the node has ready endpoints of the family that it was asked in and carries
// out what it is told, else 503. A drained node goes on answering 200 while it has endpoints, as with kube-proxy.
func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	check := a.check.Load()
	out := answer{LocalEndpoints: check.IPv6, ServiceProxyHealthy: a.healthy()}
	if overIPv4(r) {
		out.LocalEndpoints = check.IPv4
	}
	out.Service.Namespace, out.Service.Name, _ = strings.Cut(check.Service, "/")
	code := http.StatusServiceUnavailable
	if out.LocalEndpoints > 0 && out.ServiceProxyHealthy {
		code = http.StatusOK
	}
	a.metrics.answered(code)
	body, err := json.MarshalIndent(out, "", "\t")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(out.LocalEndpoints))
	w.WriteHeader(code)
	_, _ = w.Write(body) // who left hears nothing
}

// overIPv4 tells by which family of the node's addresses a request came in. A socket of both has IPv4 ones mapped.
func overIPv4(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && at.IP.To4() != nil
}
