// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"net/http"

	"fairlead.io/fairlead/k8s/admission"
	"fairlead.io/fairlead/k8s/api/balancing"
)

// Paths of the webhooks, as elf-io's balancing has them.
const (
	PathMutateBalancing       = "/mutate-balancing-elf-io-v1beta1-balancingpolicy"
	PathMutateLocalRedirect   = "/mutate-balancing-elf-io-v1beta1-localredirectpolicy"
	PathValidateBalancing     = "/validate-balancing-elf-io-v1beta1-balancingpolicy"
	PathValidateLocalRedirect = "/validate-balancing-elf-io-v1beta1-localredirectpolicy"
)

// Handler answers the API server's AdmissionReviews. The deadlines of reading and writing are the server's.
type Handler struct {
	// Look gives what is stored now. It is called by several goroutines.
	Look func(context.Context) *Stored
	// Draw gives a number like no other. It is called by several goroutines.
	Draw func() uint32
	// Numbers are the ids that the group's record knows of; optional. It is called by several goroutines.
	Numbers Numbers
	// Rules are those of this installation.
	Rules Rules
	// Metrics is optional.
	Metrics *admission.Metrics
}

// look is what is stored, and the ids that the record knows of.
func (h *Handler) look(ctx context.Context) *Stored {
	s := *h.Look(ctx)
	s.Numbers = h.Numbers
	return &s
}

// Routes are the handlers by path.
func (h *Handler) Routes() map[string]http.Handler {
	mutate := func(ctx context.Context, r admission.Request) admission.Decision {
		return Mutate(r, h.look(ctx), balancing.ID(h.Draw()))
	}
	validate := func(ctx context.Context, r admission.Request) admission.Decision {
		return Validate(r, h.look(ctx), h.Rules)
	}
	return map[string]http.Handler{
		PathMutateBalancing:       admission.Serve(PathMutateBalancing, Balancing, h.Metrics, mutate),
		PathMutateLocalRedirect:   admission.Serve(PathMutateLocalRedirect, LocalRedirect, h.Metrics, mutate),
		PathValidateBalancing:     admission.Serve(PathValidateBalancing, Balancing, h.Metrics, validate),
		PathValidateLocalRedirect: admission.Serve(PathValidateLocalRedirect, LocalRedirect, h.Metrics, validate),
	}
}
