// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/driver/kit"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// Whatever a driver does wrong, the report says so in a time that is bounded, with what to do about it, and never with what
// the driver was shown to believe the caller.
func TestReportsSayWhatIsWrongAndWhatToDo(t *testing.T) {
	good := kit.NewHandler(newMemory(), kit.HandlerOptions{})
	// spoilt answers all but healthz, which is a driver that seems to work.
	spoilt := func(serve http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/healthz") {
				good.ServeHTTP(w, r)
				return
			}
			serve(w, r)
		}
	}
	says := func(text string) http.HandlerFunc {
		return spoilt(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	status := func(code int) http.HandlerFunc {
		return spoilt(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "password: hunter2", code) })
	}
	for name, c := range map[string]struct {
		serve           http.HandlerFunc
		check, why, fix string
	}{
		"html":         {says("<html>"), "validateLoadBalancer", "invalid character '<'", "one JSON object"},
		"wrong-types":  {says(`{"succ":"yes","status":"Succ","lbInfo":{"id":1}}`), "validateLoadBalancer", "succ is a JSON string, and has to be true or false", "one JSON object"},
		"wrong-map":    {says(`{"succ":true,"status":"Succ","lbInfo":{"id":1}}`), "createLoadBalancer", "and has to be a string", "one JSON object"},
		"ten-megabyte": {says(`{"msg":"` + strings.Repeat("x", 10<<20) + `"}`), "validateLoadBalancer", "longer than 1048576 bytes", "less than a megabyte"},
		"500":          {status(500), "createLoadBalancer", "500 Internal Server Error", "a 500 leaves open what happened"},
		"401":          {status(401), "validateLoadBalancer", "401 Unauthorized", "--token-file"},
		"403":          {status(403), "validateLoadBalancer", "403 Forbidden", "--driver-cert"},
		"404":          {status(404), "validateLoadBalancer", "404 Not Found", "look whether the URL is right"},
		"400":          {status(400), "validateLoadBalancer", "400 Bad Request", "https"},
		"302":          {status(302), "validateLoadBalancer", "302 Found", "answer HTTP 200"},
		"never": {spoilt(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
			"createLoadBalancer", "no answer in time (300ms)", "status Running"},
		"running": {says(`{"succ":true,"status":"Running"}`), "createLoadBalancer", "still answered Running after", "--within"},
		"patient": {says(`{"succ":true,"status":"Running","minRetryDelayInSeconds":3600}`), "createLoadBalancer", "still answered Running after", "--within"},
		"repeats-what-it-was-shown": {spoilt(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, `{"succ":false,"status":"Fail","msg":"who is %s?"}`, r.Header.Get("Authorization"))
		}), "createLoadBalancer", "who is Bearer (secret)?", "what users write"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options
			o.Token = "s3cret-token"
			r := test(t, c.serve, o)
			var text strings.Builder
			found := false
			for _, check := range r.Checks {
				fmt.Fprintln(&text, check)
				found = found || check.Name == c.check && strings.Contains(check.Why, c.why) && strings.Contains(check.Remedy, c.fix)
			}
			if !found || r.Failed == 0 {
				t.Errorf("%s does not say %q and %q:\n%s", c.check, c.why, c.fix, text.String())
			}
			if strings.Contains(text.String(), "s3cret") || strings.Contains(text.String(), "hunter2") || text.Len() > 20_000 {
				t.Errorf("%d bytes:\n%.1000s", text.Len(), text.String())
			}
		})
	}
}

// A certificate that nobody vouched for is told apart from a driver that is not there.
func TestReportsSayWhatTLSLacks(t *testing.T) {
	s := httptest.NewTLSServer(kit.NewHandler(newMemory(), kit.HandlerOptions{}))
	defer s.Close()
	r, err := kit.Test(t.Context(), kit.TestOptions{URL: s.URL, LBSpec: webhook.Map{"name": "edge"}})
	if err != nil || r.Failed != 1 || !strings.Contains(r.Checks[0].Why, "certificate") || !strings.Contains(r.Checks[0].Remedy, "--driver-ca") {
		t.Errorf("%+v, %v", r.Checks[0], err)
	}
	r, err = kit.Test(t.Context(), kit.TestOptions{URL: strings.Replace(s.URL, "https", "http", 1)})
	if err != nil || !strings.Contains(r.Checks[0].Remedy, "https") {
		t.Errorf("%+v, %v", r.Checks[0], err)
	}
}
