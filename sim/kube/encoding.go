// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// encoding is one of the forms in which answers go out.
type encoding struct {
	media string
	info  runtime.SerializerInfo
}

func encodings() map[string]*encoding {
	all := map[string]*encoding{}
	for _, media := range []string{mediaJSON, mediaProtobuf} {
		info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
		if !ok {
			panic("kube: client-go has lost " + media)
		}
		all[media] = &encoding{media, info}
	}
	return all
}

// streamType is the Content-Type of a watch.
func (e *encoding) streamType() string {
	if e.media == mediaJSON {
		return mediaJSON
	}
	return e.media + ";stream=watch"
}

// deleteOptions reads the body of a deletion. It may say that it is of any group that has the kind, as all have.
func (e *encoding) deleteOptions(body []byte, into *metav1.DeleteOptions) error {
	if e.media == mediaJSON {
		if err := json.Unmarshal(body, into); err != nil {
			return err
		}
		if into.Kind != "" && into.Kind != "DeleteOptions" {
			return fmt.Errorf("a %s is no DeleteOptions", into.Kind)
		}
		return nil
	}
	gvk := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	_, _, err := e.info.Serializer.Decode(body, &gvk, into)
	return err
}

// encode gives an object as the body of an answer. Objects of the model can always be encoded.
func (e *encoding) encode(o runtime.Object) []byte {
	var b bytes.Buffer
	if err := e.info.Serializer.Encode(o, &b); err != nil {
		panic(fmt.Sprintf("kube: encode %T: %v", o, err))
	}
	return b.Bytes()
}

// frame gives an event of a watch as it goes over the wire.
func (e *encoding) frame(kind string, o runtime.Object) []byte {
	raw := bytes.TrimRight(e.encode(o), "\n")
	if e.media == mediaProtobuf {
		raw = e.encode(o)
	}
	var b bytes.Buffer
	into := e.info.StreamSerializer.Framer.NewFrameWriter(&b)
	if err := e.info.StreamSerializer.Encode(&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}}, into); err != nil {
		panic(fmt.Sprintf("kube: encode an event of %T: %v", o, err))
	}
	return b.Bytes()
}

// negotiate picks the form that a client prefers of those that there are for a resource.
func (s *Server) negotiate(header map[string][]string, custom bool) (*encoding, *failure) {
	accept := strings.Join(http.Header(header).Values("Accept"), ",")
	if accept == "" {
		return s.encodings[mediaJSON], nil
	}
	for part := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil || params["as"] != "" {
			continue
		}
		switch {
		case media == "*/*", media == "application/*", media == mediaJSON:
			return s.encodings[mediaJSON], nil
		case media == mediaProtobuf && !custom:
			return s.encodings[mediaProtobuf], nil
		}
	}
	return s.encodings[mediaJSON], senseless(apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "", noResource, "",
		"only the following media types are accepted: application/json, application/vnd.kubernetes.protobuf", 0, false))
}

// decode reads an object from the body of a request.
func (s *Server) decode(r *resource, header map[string][]string, body []byte) (Object, *failure) {
	media, _, err := mime.ParseMediaType(http.Header(header).Get("Content-Type"))
	if err != nil {
		media = mediaJSON // what a server takes a body without a type for
	}
	if media != mediaJSON && (media != mediaProtobuf || r.custom) {
		return nil, unsupported(media)
	}
	if r.custom {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(body); err != nil {
			return nil, badRequest("the object provided is unrecognized: %v", err)
		}
		if u.GroupVersionKind() != r.gvk() {
			return nil, badRequest("the object provided is a %s, not a %s", u.GroupVersionKind(), r.gvk())
		}
		return u, nil
	}
	gvk := r.gvk()
	o, got, err := s.encodings[media].info.Serializer.Decode(body, &gvk, nil)
	switch {
	case err != nil:
		return nil, badRequest("%s in version %q cannot be handled as a %s: %v", r.kind, r.Version, r.kind, err)
	case *got != gvk:
		return nil, badRequest("%s in version %q cannot be handled as a %s: converting (%s) to (%s)", got.Kind, got.Version, r.kind, got, gvk)
	}
	return o.(Object), nil
}

func unsupported(media string) *failure {
	return senseless(apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", noResource, "",
		fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: application/json, application/vnd.kubernetes.protobuf; got %q", media), 0, false))
}
