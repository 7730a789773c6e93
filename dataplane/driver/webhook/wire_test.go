// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/internal/testkit"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	balancerUID = "0f7b6c1e-55a2-4b0f-8f2c-3f0b2b6a9d01"
	recordUID   = "9c1d7c55-1f0e-4f6c-8d0a-71f0f2a3b4c5"
)

var (
	info   = webhook.Map{"vip": "198.51.100.20", "port": "443"}
	weight = webhook.Map{"weight": "80"}
)

func attempt(n webhook.Name, uid, retry string) webhook.Attempt {
	return webhook.Attempt{RecordID: webhook.RecordID(n, uid), RetryID: retry}
}

// requests has the requests of the specification's examples, by section.
func requests() map[string]any {
	pod := `{"metadata":{"name":"web-0","namespace":"shop","uid":"5b0c1b6e-2f0a-4d53-9a51-0d9c5d1f7a10","labels":{"app":"web"}},` +
		`"spec":{"nodeName":"node-1","containers":[{"name":"web","image":"web:7"}]},"status":{"phase":"Running","podIP":"10.244.1.17","conditions":[{"type":"Ready","status":"True"}]}}`
	service := `{"metadata":{"name":"web-svc","namespace":"shop"},"spec":{"type":"NodePort","ports":[{"port":80,"protocol":"TCP","targetPort":8080,"nodePort":31080}]},"status":{"loadBalancer":{}}}`
	notReady := `{"metadata":{"name":"web-1","namespace":"shop","uid":"6c0d…"},"spec":{"containers":[{"name":"web","image":"web:8"}]},` +
		`"status":{"phase":"Running","podIP":"10.244.2.9","conditions":[{"type":"Ready","status":"False"}]}}`
	return map[string]any{
		"3.4-validateLoadBalancer": webhook.ValidateLoadBalancerRequest{
			Operation: webhook.Update, LBSpec: info, Attributes: webhook.Map{"algo": "maglev"}, OldAttributes: webhook.Map{"algo": "rr"},
		},
		"3.5-createLoadBalancer": webhook.CreateLoadBalancerRequest{
			Attempt: attempt(webhook.CreateLoadBalancer, balancerUID, "f5f7d5f0-5d7c-4f57-9a8e-1c6a0c0d7b11"),
			LBSpec:  webhook.Map{"pool": "dmz", "port": "443"}, Attributes: webhook.Map{"algo": "maglev"},
		},
		"3.6-ensureLoadBalancer": webhook.LoadBalancerRequest{
			Attempt: attempt(webhook.EnsureLoadBalancer, balancerUID, "7b0a8a3e-6a0f-4b6b-b0c1-0f9d5e7c2a22"),
			LBInfo:  info, Attributes: webhook.Map{"algo": "least-conn"},
		},
		"3.7-deleteLoadBalancer": webhook.LoadBalancerRequest{
			Attempt: attempt(webhook.DeleteLoadBalancer, balancerUID, "3c6d2e55-3f1b-4e0b-9d55-6f6d0a4f1c33"),
			LBInfo:  info, Attributes: webhook.Map{"algo": "least-conn"},
		},
		"3.8-validateBackend": webhook.ValidateBackendRequest{
			BackendType: webhook.Pod, Operation: webhook.Update, LBInfo: info, Parameters: weight, OldParameters: webhook.Map{"weight": "100"},
		},
		"3.9-generateBackendAddr-pod": webhook.GenerateBackendAddrRequest{
			Attempt: attempt(webhook.GenerateBackendAddr, recordUID, "b8f0a7b2-54f3-4c36-9ad5-8f1f1c6f5d44"),
			LBInfo:  info, LBAttributes: webhook.Map{"algo": "maglev"}, Parameters: weight,
			PodBackend: &webhook.PodBackend{Pod: json.RawMessage(pod), Port: webhook.PortOf(8080, "TCP")},
		},
		"3.9-generateBackendAddr-service": webhook.GenerateBackendAddrRequest{
			Attempt: webhook.Attempt{RecordID: "generateBackendAddr(2e4b…)", RetryID: "…"},
			LBInfo:  webhook.Map{"vip": "198.51.100.21", "port": "80"},
			ServiceBackend: &webhook.ServiceBackend{
				Service: json.RawMessage(service), Port: webhook.PortOf(80, "TCP"), NodeName: "node-1",
				NodeAddresses: []webhook.NodeAddress{{Type: "InternalIP", Address: "192.0.2.11"}, {Type: "Hostname", Address: "node-1"}},
			},
		},
		"3.10-ensureBackend": webhook.BackendRequest{
			Attempt: attempt(webhook.EnsureBackend, recordUID, "0d3f6f0c-9f61-4f5e-8f5f-7f6f0f2b5e55"),
			LBInfo:  info, BackendAddr: "10.244.1.17:8080", Parameters: weight,
		},
		"3.11-deregisterBackend": webhook.BackendRequest{
			Attempt: attempt(webhook.DeregisterBackend, recordUID, "c1a2b3c4-0a1b-4c2d-8e3f-5a6b7c8d9e66"),
			LBInfo:  info, BackendAddr: "10.244.1.17:8080", Parameters: weight, InjectedInfo: webhook.Map{"memberID": "m-4711"},
		},
		"3.12-judgePodDeregister": webhook.JudgePodDeregisterRequest{NotReadyPods: []json.RawMessage{json.RawMessage(notReady)}},
		// Fields are null where nothing is known (lbcf §3.3).
		"3.3-validateLoadBalancer-nulls": webhook.ValidateLoadBalancerRequest{Operation: webhook.Create},
		"3.3-createLoadBalancer-nulls":   webhook.CreateLoadBalancerRequest{},
		"3.3-loadBalancer-nulls":         webhook.LoadBalancerRequest{},
		"3.3-validateBackend-nulls":      webhook.ValidateBackendRequest{BackendType: webhook.Static, Operation: webhook.Create, OldParameters: webhook.Map{}},
		"3.3-generateBackendAddr-nulls":  webhook.GenerateBackendAddrRequest{},
		"3.3-backend-nulls":              webhook.BackendRequest{},
	}
}

// lbcf §3.4 to §3.12: requests have the bytes of the specification's examples, whose files are copied from it. LBCF's
// keys are in alphabetical order, which is no promise (3.1); ours are as in the examples, but for keys of maps.
func TestRequestsHaveTheBytesOfTheSpecification(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != len(requests()) && !*update {
		t.Errorf("%d golden files of %d requests, %v", len(files), len(requests()), err)
	}
	for name, request := range requests() {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(request)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(got)+"\n" != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// The examples as the specification prints them, copied by hand: the golden files are equal to them, whatever -update did.
func TestTheExamplesOfTheSpecificationAreTheGoldenFiles(t *testing.T) {
	for name, example := range map[string]string{
		"3.4-validateLoadBalancer":    `{"dryRun":false,"operation":"Update","lbSpec":{"vip":"198.51.100.20","port":"443"},"attributes":{"algo":"maglev"},"oldAttributes":{"algo":"rr"}}`,
		"3.5-createLoadBalancer":      `{"recordID":"createLoadBalancer(0f7b6c1e-55a2-4b0f-8f2c-3f0b2b6a9d01)","retryID":"f5f7d5f0-5d7c-4f57-9a8e-1c6a0c0d7b11","dryRun":false,"lbSpec":{"pool":"dmz","port":"443"},"attributes":{"algo":"maglev"}}`,
		"3.6-ensureLoadBalancer":      `{"recordID":"ensureLoadBalancer(0f7b6c1e-55a2-4b0f-8f2c-3f0b2b6a9d01)","retryID":"7b0a8a3e-6a0f-4b6b-b0c1-0f9d5e7c2a22","dryRun":false,"lbInfo":{"vip":"198.51.100.20","port":"443"},"attributes":{"algo":"least-conn"}}`,
		"3.7-deleteLoadBalancer":      `{"recordID":"deleteLoadBalancer(0f7b6c1e-55a2-4b0f-8f2c-3f0b2b6a9d01)","retryID":"3c6d2e55-3f1b-4e0b-9d55-6f6d0a4f1c33","dryRun":false,"lbInfo":{"vip":"198.51.100.20","port":"443"},"attributes":{"algo":"least-conn"}}`,
		"3.8-validateBackend":         `{"dryRun":false,"backendType":"Pod","operation":"Update","lbInfo":{"vip":"198.51.100.20","port":"443"},"parameters":{"weight":"80"},"OldParameters":{"weight":"100"},"oldParameters":{"weight":"100"}}`,
		"3.9-generateBackendAddr-pod": `{"recordID":"generateBackendAddr(9c1d7c55-1f0e-4f6c-8d0a-71f0f2a3b4c5)","retryID":"b8f0a7b2-54f3-4c36-9ad5-8f1f1c6f5d44","dryRun":false,"lbInfo":{"vip":"198.51.100.20","port":"443"},"lbAttributes":{"algo":"maglev"},"parameters":{"weight":"80"},"podBackend":{"pod":{"metadata":{"name":"web-0","namespace":"shop","uid":"5b0c1b6e-2f0a-4d53-9a51-0d9c5d1f7a10","labels":{"app":"web"}},"spec":{"nodeName":"node-1","containers":[{"name":"web","image":"web:7"}]},"status":{"phase":"Running","podIP":"10.244.1.17","conditions":[{"type":"Ready","status":"True"}]}},"port":{"portNumber":8080,"port":8080,"protocol":"TCP"}},"serviceBackend":null}`,
		"3.9-generateBackendAddr-service": `{"recordID":"generateBackendAddr(2e4b…)","retryID":"…","dryRun":false,"lbInfo":{"vip":"198.51.100.21","port":"80"},"lbAttributes":null,"parameters":null,"podBackend":null,` +
			`"serviceBackend":{"service":{"metadata":{"name":"web-svc","namespace":"shop"},"spec":{"type":"NodePort","ports":[{"port":80,"protocol":"TCP","targetPort":8080,"nodePort":31080}]},"status":{"loadBalancer":{}}},"port":{"portNumber":80,"port":80,"protocol":"TCP"},"nodeName":"node-1","nodeAddresses":[{"type":"InternalIP","address":"192.0.2.11"},{"type":"Hostname","address":"node-1"}]}}`,
		"3.10-ensureBackend":      `{"recordID":"ensureBackend(9c1d7c55-1f0e-4f6c-8d0a-71f0f2a3b4c5)","retryID":"0d3f6f0c-9f61-4f5e-8f5f-7f6f0f2b5e55","dryRun":false,"lbInfo":{"vip":"198.51.100.20","port":"443"},"backendAddr":"10.244.1.17:8080","parameters":{"weight":"80"},"injectedInfo":null}`,
		"3.11-deregisterBackend":  `{"recordID":"deregisterBackend(9c1d7c55-1f0e-4f6c-8d0a-71f0f2a3b4c5)","retryID":"c1a2b3c4-0a1b-4c2d-8e3f-5a6b7c8d9e66","dryRun":false,"lbInfo":{"vip":"198.51.100.20","port":"443"},"backendAddr":"10.244.1.17:8080","parameters":{"weight":"80"},"injectedInfo":{"memberID":"m-4711"}}`,
		"3.12-judgePodDeregister": `{"dryRun":false,"notReadyPods":[{"metadata":{"name":"web-1","namespace":"shop","uid":"6c0d…"},"spec":{"containers":[{"name":"web","image":"web:8"}]},"status":{"phase":"Running","podIP":"10.244.2.9","conditions":[{"type":"Ready","status":"False"}]}}]}`,
	} {
		golden, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		// The example writes vip before port; a map's keys are sorted on the wire.
		example = strings.NewReplacer(
			`{"vip":"198.51.100.20","port":"443"}`, `{"port":"443","vip":"198.51.100.20"}`,
			`{"vip":"198.51.100.21","port":"80"}`, `{"port":"80","vip":"198.51.100.21"}`).Replace(example)
		if got := strings.TrimSuffix(string(golden), "\n"); got != example {
			t.Errorf("%s: golden\n%s\nexample\n%s", name, got, example)
		}
	}
}

// oneOf draws a map that is nil at times.
func oneOf(t *rapid.T, name string) webhook.Map {
	if rapid.Bool().Draw(t, name+" is null") {
		return nil
	}
	return rapid.MapOfN(rapid.StringMatching(`[a-zA-Z<&"]{1,4}`), rapid.String(), 1, 3).Draw(t, name)
}

func drawAttempt(t *rapid.T) webhook.Attempt {
	return webhook.Attempt{
		RecordID: rapid.String().Draw(t, "recordID"), RetryID: rapid.String().Draw(t, "retryID"), DryRun: rapid.Bool().Draw(t, "dryRun"),
	}
}

// again decodes what is encoded, in LBCF's order of keys too, and compares.
func again[M any](t *rapid.T, m M) {
	once, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var loose any
	if err := json.Unmarshal(once, &loose); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(loose)
	if err != nil {
		t.Fatal(err)
	}
	for _, encoded := range [][]byte{once, sorted} {
		var back M
		if err := json.Unmarshal(encoded, &back); err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("%v: %+v\n%s\n%+v", err, m, encoded, back)
		}
	}
}

// Whoever reads a message has what was written.
func TestPropertyMessagesComeBackAsTheyWere(t *testing.T) {
	object := json.RawMessage(`{"metadata":{"name":"a","uid":"b"}}`)
	testkit.Check(t, func(t *rapid.T) {
		again(t, webhook.CreateLoadBalancerRequest{Attempt: drawAttempt(t), LBSpec: oneOf(t, "lbSpec"), Attributes: oneOf(t, "attributes")})
		again(t, webhook.LoadBalancerRequest{Attempt: drawAttempt(t), LBInfo: oneOf(t, "lbInfo"), Attributes: oneOf(t, "attributes")})
		again(t, webhook.BackendRequest{
			Attempt: drawAttempt(t), LBInfo: oneOf(t, "lbInfo"), BackendAddr: rapid.String().Draw(t, "backendAddr"),
			Parameters: oneOf(t, "parameters"), InjectedInfo: oneOf(t, "injectedInfo"),
		})
		again(t, webhook.ValidateLoadBalancerRequest{LBSpec: oneOf(t, "lbSpec"), Attributes: oneOf(t, "attributes"), OldAttributes: oneOf(t, "oldAttributes")})
		again(t, webhook.ValidateBackendRequest{LBInfo: oneOf(t, "lbInfo"), Parameters: oneOf(t, "parameters"), OldParameters: oneOf(t, "oldParameters")})
		g := webhook.GenerateBackendAddrRequest{Attempt: drawAttempt(t), LBInfo: oneOf(t, "lbInfo"), LBAttributes: oneOf(t, "lbAttributes"), Parameters: oneOf(t, "parameters")}
		if rapid.Bool().Draw(t, "pod") {
			g.PodBackend = &webhook.PodBackend{Pod: object, Port: webhook.PortOf(rapid.Int32().Draw(t, "port"), "UDP")}
		} else {
			g.ServiceBackend = &webhook.ServiceBackend{Service: object, NodeName: rapid.String().Draw(t, "nodeName"), NodeAddresses: []webhook.NodeAddress{{Type: "Hostname", Address: "a"}}}
		}
		again(t, g)
		answer := webhook.Answer{Status: webhook.Running, Msg: rapid.String().Draw(t, "msg"), MinRetryDelay: webhook.Seconds(rapid.Int32().Draw(t, "delay"))}
		again(t, webhook.CreateLoadBalancerResponse{Answer: answer, LBInfo: oneOf(t, "lbInfo")})
		again(t, webhook.EnsureBackendResponse{Answer: answer, InjectedInfo: oneOf(t, "injectedInfo")})
		again(t, webhook.GenerateBackendAddrResponse{Answer: answer, BackendAddr: rapid.String().Draw(t, "backendAddr")})
		again(t, webhook.JudgePodDeregisterResponse{Verdict: webhook.Verdict{Succ: true, Msg: answer.Msg}, DoNotDeregister: []json.RawMessage{object}})
	})
}

// lbcf §3.8 [KEEP+], §12 #2: a driver reads OldParameters by either name, and both are sent.
func TestOldParametersHaveTwoNames(t *testing.T) {
	for _, body := range []string{`{"OldParameters":{"a":"b"}}`, `{"oldParameters":{"a":"b"}}`, `{"OldParameters":{"a":"b"},"oldParameters":{"a":"b"}}`} {
		var r webhook.ValidateBackendRequest
		if err := json.Unmarshal([]byte(body), &r); err != nil || !reflect.DeepEqual(r.OldParameters, webhook.Map{"a": "b"}) {
			t.Errorf("%s: %v %v", body, r.OldParameters, err)
		}
	}
	out, err := json.Marshal(webhook.ValidateBackendRequest{OldParameters: webhook.Map{}})
	if err != nil || bytes.Contains(bytes.ToLower(out), []byte("oldparameters")) {
		t.Errorf("an empty one is sent: %s, %v", out, err)
	}
}
