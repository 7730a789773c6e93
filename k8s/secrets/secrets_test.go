// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/k8s/secrets"
)

// server is an API server with one Secret, which counts how often it is asked.
type server struct {
	token string
	err   error
	asked int
}

func (s *server) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	s.asked++
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	return &corev1.Secret{Data: map[string][]byte{"token": []byte(s.token)}}, nil
}

var resource = schema.GroupResource{Resource: "secrets"}

func TestSecretsAreKeptForAMomentAndWhileTheServerIsAway(t *testing.T) {
	s, now := &server{token: "one"}, time.Unix(1e9, 0)
	r := secrets.New(func(string) secrets.Getter { return s }, func() time.Time { return now })
	read := func(want string, asked int) {
		t.Helper()
		data, err := r.Read(t.Context(), "shop", "d")
		if err != nil || string(data["token"]) != want || s.asked != asked {
			t.Errorf("%q after %d questions, %v; not %q after %d", data["token"], s.asked, err, want, asked)
		}
	}
	refused := func(want string) {
		t.Helper()
		if data, err := r.Read(t.Context(), "shop", "d"); data != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d keys, %v", len(data), err)
		}
	}
	read("one", 1)
	s.token = "two"
	now = now.Add(29 * time.Second)
	read("one", 1)
	now = now.Add(time.Second)
	read("two", 2)
	s.err = errors.New("connection refused")
	now = now.Add(time.Hour)
	read("two", 3) // away: what was read goes on
	read("two", 3) // and it is not asked for every call
	now = now.Add(5 * time.Second)
	read("two", 4)
	s.err = apierrors.NewNotFound(resource, "d")
	now = now.Add(time.Hour)
	refused("shop/d: does not exist; create it")
	s.err = errors.New("connection refused") // gone is gone
	now = now.Add(time.Hour)
	refused("not read yet")
	s.err = apierrors.NewForbidden(resource, "d", errors.New("no"))
	now = now.Add(time.Hour)
	refused("grant `get`")
	s.err = nil
	now = now.Add(5 * time.Second)
	read("two", s.asked+1)
}

func TestOneWhoGivesUpKeepsNobodyFromReading(t *testing.T) {
	s, now := &server{token: "one"}, time.Unix(1e9, 0)
	r := secrets.New(func(string) secrets.Getter { return s }, func() time.Time { return now })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(gone, "shop", "d"); err == nil {
		t.Error("read by somebody who is gone")
	}
	if data, err := r.Read(t.Context(), "shop", "d"); err != nil || string(data["token"]) != "one" {
		t.Errorf("%v", err)
	}
}

func TestOnlySoManyAreKept(t *testing.T) {
	s, now := &server{}, time.Unix(1e9, 0)
	r := secrets.New(func(string) secrets.Getter { return s }, func() time.Time { now = now.Add(time.Millisecond); return now })
	for i := range 257 {
		if _, err := r.Read(t.Context(), "shop", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	before := s.asked
	if _, _ = r.Read(t.Context(), "shop", "256"); s.asked != before {
		t.Error("the newest is not kept")
	}
	if _, _ = r.Read(t.Context(), "shop", "0"); s.asked != before+1 {
		t.Error("the oldest is kept")
	}
}
