// SPDX-License-Identifier: Apache-2.0

// Package secrets reads single Secrets by name, and keeps what it read in memory.
//
// It knows which Secrets are asked for and no others: nothing is listed or watched, so that an account needs the right to get
// those alone. It promises that a change counts within half a minute, that what was read goes on being used while the API
// server is away, that a Secret which is gone or may not be read is an error at once, with what to do, and that neither
// keys nor values of a Secret are in errors. Start reading at Reader.Read.
package secrets

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	fresh      = 30 * time.Second // how long what was read counts without a look
	again      = 5 * time.Second  // how soon after a failure the server is asked again
	readWithin = 5 * time.Second
	most       = 256 // Secrets that are kept; of more, the one that was read longest ago goes
)

// Getter gets Secrets of a namespace by name.
type Getter interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Secret, error)
}

// Reader reads Secrets. Its methods may be called from any goroutine.
type Reader struct {
	of  func(namespace string) Getter
	now func() time.Time

	mu   sync.Mutex
	kept map[key]*secret
}

type key struct{ namespace, name string }

// secret is what is known of one.
type secret struct {
	turn chan struct{} // has a place for whoever asks the server

	// These belong to whoever has the turn.
	data map[string][]byte // nil: never read, or gone
	err  error             // of the last look, if there is no data
	look time.Time         // when to look again

	used time.Time // under the reader's lock
}

// New makes a Reader of Secrets by a clock.
func New(of func(namespace string) Getter, now func() time.Time) *Reader {
	return &Reader{of: of, now: now, kept: map[key]*secret{}}
}

// Read gives what a Secret holds, which nobody may change.
//
// Errors: it does not exist, may not be read, or has not been read so far and the server does not answer; ctx ended.
func (r *Reader) Read(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	s := r.find(key{namespace, name})
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("Secret %s/%s: %w", namespace, name, context.Cause(ctx))
	}
	defer func() { <-s.turn }()
	if r.now().Before(s.look) {
		return s.data, s.err
	}
	within, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	found, err := r.of(namespace).Get(within, name, metav1.GetOptions{})
	switch {
	case err == nil:
		s.data, s.err, s.look = found.Data, nil, r.now().Add(fresh)
		if s.data == nil {
			s.data = map[string][]byte{}
		}
		return s.data, nil
	case apierrors.IsNotFound(err):
		s.data, s.err = nil, fmt.Errorf("Secret %s/%s: does not exist; create it", namespace, name)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		s.data, s.err = nil, fmt.Errorf("Secret %s/%s: may not be read; grant `get` on it to the account of the members by a Role", namespace, name)
	case s.data == nil:
		s.err = fmt.Errorf("Secret %s/%s: not read yet: %w", namespace, name, err)
	}
	if ctx.Err() == nil { // that somebody waits no longer says nothing of the server
		s.look = r.now().Add(again)
	}
	return s.data, s.err
}

func (r *Reader) find(k key) *secret {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.kept[k]
	if s == nil {
		s = &secret{turn: make(chan struct{}, 1)}
		if len(r.kept) >= most {
			r.dropOldest()
		}
		r.kept[k] = s
	}
	s.used = r.now()
	return s
}

func (r *Reader) dropOldest() {
	var oldest key
	first := true
	for k, s := range r.kept {
		than := r.kept[oldest]
		if first || s.used.Before(than.used) || s.used.Equal(than.used) && (k.namespace+"/"+k.name < oldest.namespace+"/"+oldest.name) {
			oldest, first = k, false
		}
	}
	delete(r.kept, oldest)
}
