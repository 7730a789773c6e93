// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// failure is why a request is not carried out.
type failure struct {
	metav1.Status
	// senseless says that no real server would ever accept it, whatever its objects are.
	senseless bool
}

// err is f as an error of client-go, so that apierrors.IsNotFound and the like work on what native callers get.
func (f *failure) err() error {
	if f == nil {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: f.Status}
}

func normal(err *apierrors.StatusError) *failure { return &failure{Status: err.ErrStatus} }

func senseless(err *apierrors.StatusError) *failure { return &failure{err.ErrStatus, true} }

func badRequest(format string, args ...any) *failure {
	return senseless(apierrors.NewBadRequest(fmt.Sprintf(format, args...)))
}

func notFound(r *resource, name string) *failure {
	return normal(apierrors.NewNotFound(r.groupResource(), name))
}

// unknownPath is what a server says of paths that it does not serve.
func unknownPath() *failure {
	return &failure{Status: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{}}}
}

func conflict(r *resource, name, why string) *failure {
	return normal(apierrors.NewConflict(r.groupResource(), name, fmt.Errorf("%s", why)))
}

func invalid(r *resource, name string, errs field.ErrorList) *failure {
	if len(errs) == 0 {
		return nil
	}
	return senseless(apierrors.NewInvalid(r.gvk().GroupKind(), name, errs))
}

func expired(format string, args ...any) *failure {
	return normal(apierrors.NewResourceExpired(fmt.Sprintf(format, args...)))
}
