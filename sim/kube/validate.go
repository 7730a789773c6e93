// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validate says what is wrong with an object, as far as Fairlead could get it wrong. Before is nil for a new one.
func validate(r *resource, o, before Object) field.ErrorList {
	meta := field.NewPath("metadata")
	name := apivalidation.NameIsDNSSubdomain
	if r.name == "services" || r.name == "namespaces" {
		name = apivalidation.NameIsDNSLabel
	}
	errs := apivalidation.ValidateObjectMetaAccessor(o, r.namespaced, name, meta)
	if before != nil && o.GetNamespace() != before.GetNamespace() {
		errs = append(errs, field.Invalid(meta.Child("namespace"), o.GetNamespace(), "field is immutable"))
	}
	switch o := o.(type) {
	case *corev1.Service:
		return append(errs, validateService(o)...)
	case *discoveryv1.EndpointSlice:
		return append(errs, validateSlice(o)...)
	case *eventsv1.Event:
		return append(errs, validateEvent(o)...)
	}
	return errs
}

func validateService(o *corev1.Service) (errs field.ErrorList) {
	spec, status := field.NewPath("spec"), field.NewPath("status")
	if len(o.Spec.Ports) == 0 && o.Spec.ClusterIP != corev1.ClusterIPNone && o.Spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(spec.Child("ports"), ""))
	}
	for i, p := range o.Spec.Ports {
		for _, why := range validation.IsValidPortNum(int(p.Port)) {
			errs = append(errs, field.Invalid(spec.Child("ports").Index(i).Child("port"), p.Port, why))
		}
		if p.Name == "" && len(o.Spec.Ports) > 1 {
			errs = append(errs, field.Required(spec.Child("ports").Index(i).Child("name"), ""))
		}
	}
	if o.Spec.LoadBalancerClass != nil && o.Spec.Type != corev1.ServiceTypeLoadBalancer {
		errs = append(errs, field.Forbidden(spec.Child("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'"))
	}
	ingress := status.Child("loadBalancer", "ingress")
	if len(o.Status.LoadBalancer.Ingress) > 0 && o.Spec.Type != corev1.ServiceTypeLoadBalancer {
		errs = append(errs, field.Forbidden(ingress, "may only be used when `spec.type` is \"LoadBalancer\""))
	}
	for i, in := range o.Status.LoadBalancer.Ingress {
		at := ingress.Index(i)
		if a, err := netip.ParseAddr(in.IP); in.IP != "" && (err != nil || a.Zone() != "") {
			errs = append(errs, field.Invalid(at.Child("ip"), in.IP, "must be a valid IP address"))
		}
		switch {
		case in.IP == "" && in.IPMode != nil:
			errs = append(errs, field.Forbidden(at.Child("ipMode"), "may not be specified when `ip` is not set"))
		case in.IPMode != nil && *in.IPMode != corev1.LoadBalancerIPModeVIP && *in.IPMode != corev1.LoadBalancerIPModeProxy:
			errs = append(errs, field.NotSupported(at.Child("ipMode"), *in.IPMode, []corev1.LoadBalancerIPMode{corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP}))
		}
		if in.Hostname != "" {
			for _, why := range validation.IsDNS1123Subdomain(in.Hostname) {
				errs = append(errs, field.Invalid(at.Child("hostname"), in.Hostname, why))
			}
		}
	}
	return errs
}

func validateSlice(o *discoveryv1.EndpointSlice) (errs field.ErrorList) {
	if o.AddressType != discoveryv1.AddressTypeIPv4 && o.AddressType != discoveryv1.AddressTypeIPv6 && o.AddressType != discoveryv1.AddressTypeFQDN {
		errs = append(errs, field.NotSupported(field.NewPath("addressType"), o.AddressType, []discoveryv1.AddressType{"FQDN", "IPv4", "IPv6"}))
	}
	for i, e := range o.Endpoints {
		at := field.NewPath("endpoints").Index(i).Child("addresses")
		if len(e.Addresses) == 0 {
			errs = append(errs, field.Required(at, "must contain at least 1 address"))
		}
		for j, text := range e.Addresses {
			a, err := netip.ParseAddr(text)
			if o.AddressType != discoveryv1.AddressTypeFQDN && (err != nil || a.Is4() != (o.AddressType == discoveryv1.AddressTypeIPv4)) {
				errs = append(errs, field.Invalid(at.Index(j), text, fmt.Sprintf("must be a valid %s address", o.AddressType)))
			}
		}
	}
	return errs
}

// validateEvent holds an Event to what events.k8s.io/v1 asks of new ones.
func validateEvent(o *eventsv1.Event) (errs field.ErrorList) {
	if o.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if o.Type != corev1.EventTypeNormal && o.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), o.Type, "has invalid value: "+o.Type))
	}
	if o.ReportingController == "" {
		errs = append(errs, field.Required(field.NewPath("reportingController"), ""))
	}
	for _, why := range validation.IsQualifiedName(o.ReportingController) {
		errs = append(errs, field.Invalid(field.NewPath("reportingController"), o.ReportingController, why))
	}
	for _, f := range []struct {
		name, value string
		most        int
		required    bool
	}{
		{"reportingInstance", o.ReportingInstance, 128, true}, {"action", o.Action, 128, true}, {"reason", o.Reason, 128, true}, {"note", o.Note, 1024, false},
	} {
		if f.required && f.value == "" {
			errs = append(errs, field.Required(field.NewPath(f.name), ""))
		}
		if len(f.value) > f.most {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", fmt.Sprintf("can have at most %d characters", f.most)))
		}
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"firstTimestamp", !o.DeprecatedFirstTimestamp.IsZero()}, {"lastTimestamp", !o.DeprecatedLastTimestamp.IsZero()},
		{"count", o.DeprecatedCount != 0}, {"source", strings.TrimSpace(o.DeprecatedSource.Component+o.DeprecatedSource.Host) != ""},
	} {
		if f.set {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", "needs to be unset"))
		}
	}
	return errs
}
