// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Bounds of a write: how long it may take, and how long to wait after a failure, from the first to the last.
const (
	CallTimeout = 15 * time.Second
	FirstRetry  = 100 * time.Millisecond
	LastRetry   = 30 * time.Second
)

// Backoff is how long to wait after a number of failures in a row, which is at least 1.
func Backoff(failures int) time.Duration {
	return min(FirstRetry<<min(failures-1, 10), LastRetry)
}

// Ways to fail, as metrics name them.
const (
	Gone        = "gone"
	Conflict    = "conflict"
	Throttled   = "throttled"
	Forbidden   = "forbidden"
	Invalid     = "invalid"
	Unreachable = "error"
)

// FailureOf tells how a write ended; empty for well.
func FailureOf(err error) string {
	switch {
	case err == nil:
		return ""
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Gone
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return Conflict
	case apierrors.IsTooManyRequests(err):
		return Throttled
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return Forbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return Invalid
	}
	return Unreachable
}
