// SPDX-License-Identifier: Apache-2.0

// Package cabundle tells the API server by which CAs it knows the members that it asks for admission: the caBundle of the
// webhook configurations lbcf-validate and lbcf-mutate, and of those of policies where these are judged.
//
// It knows which configurations are ours: those that carry our label. LBCF's own, which have the same names until they are
// taken over, and those that cert-manager keeps, it leaves alone. It promises to write only what differs, nothing but that
// field, and never over a change that it has not seen. Start reading at Keeper.Run.
package cabundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/k8s/client"
)

// Names of the configurations: of LBCF's kinds, as LBCF has them, and of policies of client-side balancing.
const (
	Validating         = "lbcf-validate"
	Mutating           = "lbcf-mutate"
	ValidatingPolicies = "fairlead-balancing-validate"
	MutatingPolicies   = "fairlead-balancing-mutate"
)

// label and ours mark configurations that were installed with us.
const (
	label = "app.kubernetes.io/part-of"
	ours  = "fairlead"
)

// injectors are annotations of configurations whose caBundle cert-manager keeps.
func injectors() []string {
	return []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca"}
}

const (
	lookEvery  = 30 * time.Second
	lookWithin = 10 * time.Second
)

// Clock is what a Keeper waits by.
type Clock interface {
	After(time.Duration) <-chan time.Time
}

// Options is what a Keeper is made of. All fields without "optional" are required.
type Options struct {
	API *client.API
	// Policies says that members judge policies of client-side balancing, too, and may write those configurations; optional.
	Policies bool
	// Bundle gives the CAs, in PEM; empty if they are not for us to tell.
	Bundle func() ([]byte, error)
	Clock  Clock
	Log    *slog.Logger
}

// Keeper keeps the bundle of the configurations current.
type Keeper struct {
	o          Options
	validating client.Resource[admissionv1.ValidatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration]
	mutating   client.Resource[admissionv1.MutatingWebhookConfiguration, *admissionv1.MutatingWebhookConfiguration]
	said       string // the last trouble, so as to say it once
}

// New makes a Keeper. Errors: the API's configuration.
func New(o Options) (*Keeper, error) {
	group, err := o.API.Group(admissionv1.SchemeGroupVersion, &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{})
	if err != nil {
		return nil, err
	}
	return &Keeper{
		o:          o,
		validating: client.ResourceOf[admissionv1.ValidatingWebhookConfiguration](group, "validatingwebhookconfigurations", ""),
		mutating:   client.ResourceOf[admissionv1.MutatingWebhookConfiguration](group, "mutatingwebhookconfigurations", ""),
	}, nil
}

// Run looks now and then until ctx ends. One runs at a time.
func (k *Keeper) Run(ctx context.Context) {
	for ctx.Err() == nil {
		trouble := ""
		if err := k.Look(ctx); err != nil && ctx.Err() == nil {
			trouble = err.Error()
		}
		if trouble != "" && trouble != k.said {
			k.o.Log.Error("webhook configuration not kept", "err", trouble)
		}
		k.said = trouble
		select {
		case <-ctx.Done():
		case <-k.o.Clock.After(lookEvery):
		}
	}
}

// Look puts right what differs. Configurations that are not installed are no error.
func (k *Keeper) Look(ctx context.Context) error {
	bundle, err := k.o.Bundle()
	if err != nil {
		return fmt.Errorf("read the CAs that the API server is to trust: %w", err)
	}
	if len(bundle) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	err = k.lookAt(ctx, Validating, Mutating, bundle)
	if k.o.Policies {
		err = errors.Join(err, k.lookAt(ctx, ValidatingPolicies, MutatingPolicies, bundle))
	}
	return err
}

// lookAt puts a pair of configurations right.
func (k *Keeper) lookAt(ctx context.Context, validating, mutating string, bundle []byte) error {
	if err := look(ctx, k, k.validating, validating, bundle, func(c *admissionv1.ValidatingWebhookConfiguration) (all []webhook) {
		for _, w := range c.Webhooks {
			all = append(all, webhook{w.Name, w.ClientConfig.CABundle})
		}
		return all
	}); err != nil {
		return err
	}
	return look(ctx, k, k.mutating, mutating, bundle, func(c *admissionv1.MutatingWebhookConfiguration) (all []webhook) {
		for _, w := range c.Webhooks {
			all = append(all, webhook{w.Name, w.ClientConfig.CABundle})
		}
		return all
	})
}

// webhook is one of a configuration.
type webhook struct {
	name   string
	bundle []byte
}

// configuration is a kind of them.
type configuration[T any] interface {
	*T
	metav1.Object
	runtime.Object
}

func look[T any, P configuration[T]](ctx context.Context, k *Keeper, of client.Resource[T, P], name string, bundle []byte, webhooks func(P) []webhook) error {
	c, err := of.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read webhook configuration %s: %w", name, err)
	}
	if c.GetLabels()[label] != ours {
		return fmt.Errorf("webhook configuration %s: it is not labelled %s=%s, so it is somebody else's: take LBCF over first, or remove it, then apply ours",
			name, label, ours)
	}
	for _, annotation := range injectors() {
		if c.GetAnnotations()[annotation] != "" {
			return nil
		}
	}
	var wrong []any
	for _, w := range webhooks(c) {
		if !bytes.Equal(w.bundle, bundle) {
			wrong = append(wrong, map[string]any{"name": w.name, "clientConfig": map[string]any{"caBundle": bundle}})
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": c.GetResourceVersion()}, "webhooks": wrong})
	if err != nil {
		return fmt.Errorf("encode the caBundle of webhook configuration %s: %w", name, err)
	}
	if _, err := of.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "fairlead"}); err != nil {
		return fmt.Errorf("write the caBundle of webhook configuration %s: %w", name, err)
	}
	k.o.Log.Info("webhook configuration trusts our certificates", "name", name, "webhooks", len(wrong))
	return nil
}
