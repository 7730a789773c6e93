// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Group is the way to kinds of one group and version, by their Go types. client-go's own clientset knows every group
// there is, which is most of a binary and of the time that it takes to start.
type Group struct {
	rest       rest.Interface
	parameters runtime.ParameterCodec
}

// Group makes the way to kinds of one group and version: to each object and each list that will be sent or read.
func (a *API) Group(version schema.GroupVersion, kinds ...runtime.Object) (*Group, error) {
	return a.group(rest.CopyConfig(a.typed), version, kinds)
}

// CustomGroup is Group for kinds of CustomResourceDefinitions, which travel as JSON: API servers have nothing else for
// them.
func (a *API) CustomGroup(version schema.GroupVersion, kinds ...runtime.Object) (*Group, error) {
	c := rest.CopyConfig(a.typed)
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	return a.group(c, version, kinds)
}

func (a *API) group(c *rest.Config, version schema.GroupVersion, kinds []runtime.Object) (*Group, error) {
	known := runtime.NewScheme()
	known.AddKnownTypes(version, kinds...)
	metav1.AddToGroupVersion(known, version) // options, events of a watch, failures
	c.GroupVersion = &version
	c.APIPath = "/apis"
	if version.Group == "" {
		c.APIPath = "/api"
	}
	c.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(known, serializer.NewCodecFactory(known)).WithoutConversion()
	r, err := rest.RESTClientForConfigAndClient(c, a.http)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server at %s: %w", c.Host, err)
	}
	return &Group{rest: r, parameters: runtime.NewParameterCodec(known)}, nil
}

// Resources asks which resources a group and version has, which need not be known to the API in any other way.
//
// Errors: those of apimachinery's api/errors; NotFound if the server has no such group or version.
func (a *API) Resources(ctx context.Context, version schema.GroupVersion) (*metav1.APIResourceList, error) {
	out := &metav1.APIResourceList{}
	return out, a.Client.core.rest.Get().AbsPath("/apis", version.Group, version.Version).Do(ctx).Into(out)
}
