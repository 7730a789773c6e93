// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Annotations on LoadBalancerDrivers.
const (
	// AnnotationCredentials names a Secret beside the driver with what it is called with.
	AnnotationCredentials = "fairlead.io/credentials-secret"
	// AnnotationSettle is how long after its end a call of unknown outcome may still take effect, such as 30s.
	AnnotationSettle = "fairlead.io/settle"
	// AnnotationConcurrent is how many calls may be in flight at once.
	AnnotationConcurrent = "fairlead.io/concurrent"
)

// What drivers may ask for at most.
const (
	maxSettle     = time.Hour
	maxConcurrent = 1000
)

// Driver converts a LoadBalancerDriver.
func Driver(o *v1beta1.LoadBalancerDriver) (world.Driver, []world.Problem) {
	meta, r := open(world.KindDriver, &o.ObjectMeta, true)
	d := world.Driver{Meta: meta, URL: fsm.WithoutUserinfo(o.Spec.URL), AcceptsDryRun: o.Spec.AcceptDryRunCall, Draining: lbcf.IsDraining(o.Labels)}
	if why := notCalled(o.Spec.URL); why != "" {
		r.fail("spec.url", "write it like http://driver.example:8080", "%q %s", d.URL, why)
	}
	if d.URL != o.Spec.URL {
		r.degrade("spec.url", "take them out of it, and name a Secret with username and password in the annotation "+AnnotationCredentials,
			"has a user or a password in it, where all read it who see the driver; it is called at %s without them", d.URL)
	}
	if t := o.Spec.DriverType; t != v1beta1.DriverTypeWebhook {
		r.degrade("spec.driverType", "write "+v1beta1.DriverTypeWebhook, "%q is no type of drivers; it is called as a webhook", t)
	}
	d.Timeouts = r.timeouts(o.Spec.Webhooks)
	d.Secret = r.secretName(o.Annotations[AnnotationCredentials])
	d.Settle = r.settle(o.Annotations)
	d.Concurrent = r.concurrent(o.Annotations)
	return d, r.problems
}

// notCalled says why a URL cannot be called, or nothing.
func notCalled(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "is no URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "is neither http nor https"
	case u.Host == "":
		return "names no host"
	}
	return ""
}

// timeouts reads those of the webhooks that say a sane one. Of entries with one name the first counts, whatever it says
// (lbcf §2.1).
func (r *report) timeouts(list []v1beta1.WebhookConfig) (out []world.Timeout) {
	seen := map[string]bool{}
	for i, w := range list {
		field := fmt.Sprintf("spec.webhooks[%d]", i)
		switch {
		case seen[w.Name]:
			r.degrade(field, "remove one of them", "%q is there twice; the first one counts", w.Name)
		case !lbcf.IsWebhook(w.Name):
			r.degrade(field+".name", "remove it", "%q is no webhook", w.Name)
		case w.Timeout == nil:
		case w.Timeout.Duration <= 0 || w.Timeout.Duration > lbcf.MaxTimeout:
			r.degrade(field+".timeout", fmt.Sprintf("use more than 0 and at most %s", lbcf.MaxTimeout),
				"%s is out of range; it is %s", w.Timeout.Duration, lbcf.DefaultTimeout)
		default:
			out = append(out, world.Timeout{Webhook: w.Name, Budget: w.Timeout.Duration})
		}
		seen[w.Name] = true
	}
	return out
}

func (r *report) secretName(name string) string {
	if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		r.degrade(annotationField(AnnotationCredentials), "name a Secret in the driver's namespace", "%q is no name of a Secret; calls go without", name)
		return ""
	}
	return name
}

func (r *report) settle(annotations map[string]string) time.Duration {
	text, ok := annotations[AnnotationSettle]
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxSettle {
		r.degrade(annotationField(AnnotationSettle), fmt.Sprintf("write a time up to %s, such as 30s", maxSettle), "%q is none; the default holds", text)
		return 0
	}
	return d
}

func (r *report) concurrent(annotations map[string]string) int {
	text, ok := annotations[AnnotationConcurrent]
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxConcurrent {
		r.degrade(annotationField(AnnotationConcurrent), fmt.Sprintf("use a number from 1 to %d", maxConcurrent), "%q is none; the default holds", text)
		return 0
	}
	return n
}

// all keeps every entry of a map.
func all(string) bool { return true }

// holds tells whether a condition is true.
func holds(list []v1beta1.Condition, kind string) bool {
	for _, c := range list {
		if c.Type == kind {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}
