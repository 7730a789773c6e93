// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// failure is why a request is not carried out.
type failure struct {
	metav1.Status
	// senseless says that no real server would ever accept it, whatever its objects are.
	senseless bool
	// plain says that the answer is text, from a part of the server that knows no Status.
	plain bool
}

// err is f as an error of client-go, so that apierrors.IsNotFound and the like work on what native callers get.
func (f *failure) err() error {
	if f == nil {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: f.Status}
}

// object is f as it is sent.
func (f *failure) object() *metav1.Status {
	status := f.Status
	status.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Status"})
	return &status
}

func normal(err *apierrors.StatusError) *failure { return &failure{Status: err.ErrStatus} }

func senseless(err *apierrors.StatusError) *failure {
	return &failure{Status: err.ErrStatus, senseless: true}
}

func badRequest(format string, args ...any) *failure {
	return senseless(apierrors.NewBadRequest(fmt.Sprintf(format, args...)))
}

func notFound(r *resource, name string) *failure {
	return normal(apierrors.NewNotFound(r.groupResource(), name))
}

// unknownPath is what a server says of paths that it does not serve.
func unknownPath() *failure {
	return &failure{plain: true, Status: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound,
		Reason: metav1.StatusReasonNotFound, Message: "404 page not found"}}
}

// unhandled is a request that a server answers with 500, for lack of care, though it is the client that is wrong.
func unhandled(format string, args ...any) *failure {
	return &failure{senseless: true, Status: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Message: fmt.Sprintf(format, args...)}}
}

// anotherLife is a precondition that does not hold.
func anotherLife(r *resource, name, what string, wanted, have any) *failure {
	return normal(apierrors.NewConflict(schema.GroupResource{Group: r.Group, Resource: r.kind}, name, fmt.Errorf(
		"the %s in the precondition (%v) does not match the %s in record (%v). The object might have been deleted and then recreated", what, wanted, what, have)))
}

func conflict(r *resource, name, why string) *failure {
	return normal(apierrors.NewConflict(r.groupResource(), name, fmt.Errorf("%s", why)))
}

func invalid(r *resource, name string, errs field.ErrorList) *failure {
	if len(errs) == 0 {
		return nil
	}
	kind := r.gvk().GroupKind()
	if kind.Kind == "Event" {
		kind.Group = "" // where servers keep them
	}
	return senseless(apierrors.NewInvalid(kind, name, errs))
}

func expired(format string, args ...any) *failure {
	return normal(apierrors.NewResourceExpired(fmt.Sprintf(format, args...)))
}
