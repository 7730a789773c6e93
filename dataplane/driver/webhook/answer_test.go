// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// lbcf §3.1, §12 #1: keys in any case, unknown fields, missing ones, null, and a number in a string are read.
func TestAnswersAreReadLeniently(t *testing.T) {
	for body, want := range map[string]webhook.Answer{
		`{"status":"Running","msg":"allocating address","minRetryDelayInSeconds":15}`: {Status: "Running", Msg: "allocating address", MinRetryDelay: 15},
		`{"status":"Fail","minRetryDelayinSeconds":30}`:                               {Status: "Fail", MinRetryDelay: 30},
		`{"STATUS":"Succ","Msg":"m"}`:                                                 {Status: "Succ", Msg: "m"},
		`{"status":"Fail","minRetryDelayInSeconds":"30"}`:                             {Status: "Fail", MinRetryDelay: 30},
		`{"status":"Fail","minRetryDelayInSeconds":-1}`:                               {Status: "Fail", MinRetryDelay: -1},
		`{"status":"Succ","minRetryDelayInSeconds":null,"msg":null}`:                  {Status: "Succ"},
		`{"status":"Succ","extra":{"deep":[1,2,{}]}}`:                                 {Status: "Succ"},
		`{}`:                         {},
		`null`:                       {},
		` {"status":"Succ"} ` + "\n": {Status: "Succ"},
	} {
		var got webhook.Answer
		if err := json.Unmarshal([]byte(body), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}

// lbcf §3.1: a value of the wrong type for a known field makes the whole answer worthless.
func TestAnswersWithWrongTypesAreRefused(t *testing.T) {
	for _, body := range []string{
		`{"minRetryDelayInSeconds":5.0}`, `{"minRetryDelayInSeconds":2147483648}`, `{"minRetryDelayInSeconds":"2147483648"}`,
		`{"minRetryDelayInSeconds":"soon"}`, `{"minRetryDelayInSeconds":""}`, `{"minRetryDelayInSeconds":true}`, `{"minRetryDelayInSeconds":{}}`,
		`{"status":1}`, `{"status":true}`, `{"msg":{}}`, `[]`, `"Succ"`, ``, `{`, `{"status":"Succ"} trailing`, `<html>`,
	} {
		var got webhook.Answer
		if err := json.Unmarshal([]byte(body), &got); err == nil {
			t.Errorf("%s: read as %+v", body, got)
		}
	}
	for body, into := range map[string]any{
		`{"status":"Succ","lbInfo":{"port":443}}`:         new(webhook.CreateLoadBalancerResponse),
		`{"status":"Succ","lbInfo":[]}`:                   new(webhook.CreateLoadBalancerResponse),
		`{"status":"Succ","injectedInfo":{"weight":50}}`:  new(webhook.EnsureBackendResponse),
		`{"status":"Succ","backendAddr":7}`:               new(webhook.GenerateBackendAddrResponse),
		`{"succ":"true"}`:                                 new(webhook.Verdict),
		`{"succ":true,"doNotDeregister":{"metadata":{}}}`: new(webhook.JudgePodDeregisterResponse),
		`{"healthy":"yes"}`:                               new(webhook.HealthzResponse),
	} {
		if err := json.Unmarshal([]byte(body), into); err == nil {
			t.Errorf("%s: read as %+v", body, into)
		}
	}
}

// lbcf §3.1: upper and lower case matter in the values of status.
func TestStatusKnowsThreeValues(t *testing.T) {
	for _, s := range []webhook.Status{"Succ", "Fail", "Running"} {
		if !s.Valid() {
			t.Errorf("%s is refused", s)
		}
	}
	for _, s := range []webhook.Status{"", "succ", "SUCC", "Success", "fail", "running", "Succ "} {
		if s.Valid() {
			t.Errorf("%q is taken", s)
		}
	}
}

// lbcf §3.3: the delay counts after Fail and Running; zero, less or none is no word at all (design §11).
func TestRetryAfterIsTheDriversWordOnly(t *testing.T) {
	for want, a := range map[time.Duration]webhook.Answer{
		15 * time.Second: {Status: webhook.Running, MinRetryDelay: 15},
		30 * time.Second: {Status: webhook.Fail, MinRetryDelay: 30},
	} {
		if got := a.RetryAfter(); got != want {
			t.Errorf("%+v: %v", a, got)
		}
	}
	for _, a := range []webhook.Answer{{Status: webhook.Succ, MinRetryDelay: 15}, {Status: webhook.Fail, MinRetryDelay: -3}, {Status: webhook.Fail}} {
		if got := a.RetryAfter(); got != 0 {
			t.Errorf("%+v: %v", a, got)
		}
	}
}

// lbcf §3.1: the name is joined to the path, without a slash at the end; a query stays.
func TestAddressesOfCallsAreJoined(t *testing.T) {
	for base, want := range map[string]string{
		"http://h:80":                    "http://h:80/createLoadBalancer",
		"http://h:80/":                   "http://h:80/createLoadBalancer",
		"http://h/p/v1/":                 "http://h/p/v1/createLoadBalancer",
		"http://h//p/./v1/x/..":          "http://h/p/v1/createLoadBalancer",
		"https://h/p?b=2&a=1+2":          "https://h/p/createLoadBalancer?a=1+2&b=2",
		"https://[2001:db8::1]:8443/#no": "https://[2001:db8::1]:8443/createLoadBalancer",
		"http://h/a%2Fb":                 "http://h/a%2Fb/createLoadBalancer",
	} {
		u, err := webhook.ParseURL(base)
		if err != nil {
			t.Errorf("%s: %v", base, err)
			continue
		}
		before := u.String()
		if got := webhook.CreateLoadBalancer.At(u).String(); got != want {
			t.Errorf("%s: %s, want %s", base, got, want)
		}
		if u.String() != before {
			t.Errorf("%s was changed to %s", before, u)
		}
	}
}

// lbcf §2.1 [FIX]: an address is http or https and has a host; what is said of a wrong one keeps its password, and
// none has one.
func TestAddressesWithoutHostOrWithOtherSchemesAreRefused(t *testing.T) {
	for _, raw := range []string{"", "h:80", "/p", "ftp://u:secret@h/", "http://", "http://:80", "http:///p", "https://u:secret@h:port/", "http://u:secret@h/%zz", "unix:///run/x",
		"http://u:secret@h:80/", "https://secret@h"} {
		u, err := webhook.ParseURL(raw)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, %v", raw, u, err)
		}
	}
}

// lbcf §3.2: nine calls are configurable; judgePodDeregister is known, and not filled in.
func TestNamesAreTheCatalogue(t *testing.T) {
	want := strings.Fields("healthz validateLoadBalancer createLoadBalancer ensureLoadBalancer deleteLoadBalancer validateBackend generateBackendAddr ensureBackend deregisterBackend")
	var got []string
	for _, n := range webhook.Configurable() {
		got = append(got, string(n))
	}
	if !reflect.DeepEqual(got, want) {
		t.Error(got)
	}
	if !webhook.Name("judgePodDeregister").Known() || webhook.Name("Healthz").Known() || len(webhook.Names()) != 10 {
		t.Error(webhook.Names())
	}
}

// lbcf §3.3, §11 #8: all calls of a Bind name their entry.
func TestRecordIDs(t *testing.T) {
	if got := webhook.RecordID(webhook.EnsureBackend, "u"); got != "ensureBackend(u)" {
		t.Error(got)
	}
	if got := webhook.BindRecordID(webhook.DeleteLoadBalancer, "u", "edge"); got != "deleteLoadBalancer(u-edge)" {
		t.Error(got)
	}
}

// lbcf §2.3, §3.9: the effective port is port where it is there, else portNumber.
func TestPortsAreReadByEitherName(t *testing.T) {
	for want, p := range map[int32]webhook.Port{80: {Port: 80, PortNumber: 81}, 81: {PortNumber: 81}, 0: {}, 443: webhook.PortOf(443, "")} {
		if got := p.Number(); got != want {
			t.Errorf("%+v: %d", p, got)
		}
	}
}

// lbcf §3.12: only metadata.uid of a pod counts.
func TestUIDIsReadFromObjects(t *testing.T) {
	if uid, err := webhook.UID(json.RawMessage(`{"metadata":{"uid":"a","labels":5},"spec":[]}`)); uid != "a" || err != nil {
		t.Error(uid, err)
	}
	for _, object := range []string{`5`, `{}`, `null`, `{"metadata":{"uid":""}}`, `{"metadata":{"uid":7}}`, `{"metadata":[]}`} {
		if uid, err := webhook.UID(json.RawMessage(object)); err == nil {
			t.Errorf("%s: %q", object, uid)
		}
	}
}
