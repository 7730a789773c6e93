// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Status is how an operation stands (lbcf §3.3). Upper and lower case matter.
type Status string

// How an operation stands.
const (
	Succ    Status = "Succ"
	Fail    Status = "Fail"
	Running Status = "Running" // the driver is at it: ask again
)

// Valid tells whether s is one of the three; everything else says nothing of the operation (lbcf §3.1).
func (s Status) Valid() bool { return s == Succ || s == Fail || s == Running }

// Answer is what calls answer that are sent again until they succeed (lbcf §3.3).
type Answer struct {
	Status Status `json:"status"`
	// Msg is for people: it goes into Events and conditions.
	Msg string `json:"msg"`
	// MinRetryDelay is how long to wait at least before the next attempt, after Fail and Running.
	MinRetryDelay Seconds `json:"minRetryDelayInSeconds,omitempty"`
}

// RetryAfter is the driver's word on when to ask again; zero if it has none.
func (a Answer) RetryAfter() time.Duration {
	if a.Status == Succ || a.MinRetryDelay < 0 {
		return 0
	}
	return time.Duration(a.MinRetryDelay) * time.Second
}

// Seconds is a number of seconds. A string with a number in it is read, too, since LBCF's documentation says that it is
// one (lbcf §3.1).
type Seconds int32

// UnmarshalJSON implements json.Unmarshaler. Errors: it is no whole number of 32 bits.
func (s *Seconds) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("minRetryDelayInSeconds: %.40q is no whole number of seconds", text)
	}
	*s = Seconds(n)
	return nil
}

// CreateLoadBalancerResponse has the identity of the load balancer (lbcf §3.5).
type CreateLoadBalancerResponse struct {
	Answer
	// LBInfo is heeded with Succ only; without it the identity is the request's LBSpec.
	LBInfo Map `json:"lbInfo,omitempty"`
}

// GenerateBackendAddrResponse has the address of a backend (lbcf §3.9).
type GenerateBackendAddrResponse struct {
	Answer
	BackendAddr string `json:"backendAddr,omitempty"` // with Succ
}

// EnsureBackendResponse has what later calls about the backend shall carry (lbcf §3.10).
type EnsureBackendResponse struct {
	Answer
	// InjectedInfo is heeded with Succ only. Without it what was answered before is kept.
	InjectedInfo Map `json:"injectedInfo,omitempty"`
}

// Verdict is what validations answer (lbcf §3.3).
type Verdict struct {
	Succ bool   `json:"succ"`
	Msg  string `json:"msg"`
}

// JudgePodDeregisterResponse has the pods to keep (lbcf §3.12).
type JudgePodDeregisterResponse struct {
	Verdict
	// DoNotDeregister are Pods of the request; of each only metadata.uid counts.
	DoNotDeregister []json.RawMessage `json:"doNotDeregister"`
}

// HealthzResponse tells how the driver is (lbcf §3.13).
type HealthzResponse struct {
	Healthy bool `json:"healthy"`
}

// UID reads metadata.uid of an object as Kubernetes writes it. Errors: it is no object, or has none.
func UID(object json.RawMessage) (string, error) {
	var o struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &o); err != nil {
		return "", fmt.Errorf("an object: %w", err)
	}
	if o.Metadata.UID == "" {
		return "", fmt.Errorf("an object of %d bytes: it has no metadata.uid", len(bytes.TrimSpace(object)))
	}
	return o.Metadata.UID, nil
}
