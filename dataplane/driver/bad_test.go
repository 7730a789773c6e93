// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/fsm"
)

// lbcf §3.1: everything but a 200 with JSON of the right types is an error, which says what is wrong, and of which the
// outcome is unknown: the driver has seen the request.
func TestBadAnswersAreUnderstoodAsSuch(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(*http.Request) (*http.Response, error)
		cause driver.Cause
		text  string
	}{
		"500":             {answer(500, `{"status":"Succ"}`), driver.CauseStatus, "answered 500 Internal Server Error"},
		"404":             {answer(404, `404 page not found`), driver.CauseStatus, "answered 404 Not Found"},
		"201":             {answer(201, `{"status":"Succ"}`), driver.CauseStatus, "answered 201 Created"},
		"204":             {answer(204, ``), driver.CauseStatus, "answered 204 No Content"},
		"odd-status":      {answer(599, `{"status":"Succ"}`), driver.CauseStatus, "answered 599"},
		"empty":           {answer(200, ``), driver.CauseBody, "unexpected end of JSON input"},
		"html":            {answer(200, `<html>s3cret</html>`), driver.CauseBody, "its answer of 19 bytes: invalid character '<'"},
		"cut":             {answer(200, `{"status":"Su`), driver.CauseBody, "unexpected end of JSON input"},
		"trailing":        {answer(200, `{"status":"Succ"}{}`), driver.CauseBody, "after top-level value"},
		"array":           {answer(200, `[{"status":"Succ"}]`), driver.CauseBody, "cannot unmarshal array"},
		"text":            {answer(200, `"Succ"`), driver.CauseBody, "cannot unmarshal string"},
		"wrong-type":      {answer(200, `{"status":1}`), driver.CauseBody, "status of type webhook.Status"},
		"wrong-map":       {answer(200, `{"status":"Succ","injectedInfo":{"weight":50}}`), driver.CauseBody, "injectedInfo of type string"},
		"wrong-delay":     {answer(200, `{"status":"Fail","minRetryDelayInSeconds":5.0}`), driver.CauseBody, `minRetryDelayInSeconds: "5.0" is no whole number`},
		"long-number":     {answer(200, `{"minRetryDelayInSeconds":`+strings.Repeat("1", 1000)+`}`), driver.CauseBody, `1111" is no whole`},
		"deep":            {answer(200, strings.Repeat(`{"a":`, 20000)+strings.Repeat(`}`, 20000)), driver.CauseBody, "exceeded max depth"},
		"null":            {answer(200, `null`), driver.CauseInvalid, `status "" is none of Succ, Fail, Running`},
		"nothing":         {answer(200, `{}`), driver.CauseInvalid, `status "" is none of`},
		"lower-case":      {answer(200, `{"status":"succ"}`), driver.CauseInvalid, `status "succ" is none of`},
		"unknown-status":  {answer(200, `{"status":"`+strings.Repeat("x", 1000)+`"}`), driver.CauseInvalid, `status "xxx`},
		"ten-megabytes":   {answer(200, `{"status":"Succ","msg":"`+strings.Repeat("x", 10<<20)+`"}`), driver.CauseTooLong, "longer than 1048576 bytes"},
		"a-byte-too-long": {answer(200, `{"status":"Succ"}`+strings.Repeat(" ", 1<<20-16)), driver.CauseTooLong, "longer than"},
		"redirect":        {redirect(307, "http://elsewhere.example/"), driver.CauseStatus, "answered 307 Temporary Redirect"},
		"broken":          {broken(io.ErrUnexpectedEOF), driver.CauseBroken, "unexpected EOF"},
		"body-broken":     {brokenBody, driver.CauseBroken, "read its answer: connection reset"},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			e := &endpoint{serve: c.serve}
			d := client(t, e, func(o *driver.Options) {
				o.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			a, err := ensure(t.Context(), d, driver.Call{})
			if cause(err) != c.cause || !strings.Contains(err.Error(), c.text) || len(err.Error()) > 400 {
				t.Errorf("%v", err)
			}
			if driver.ResultOf(a.Status, err) != fsm.ResultUnknown || a.Status != "" || e.calls() != 1 {
				t.Errorf("%+v, %d calls", a, e.calls())
			}
			if logged.Len() == 0 || logged.Len() > 1000 || strings.Contains(logged.String()+err.Error(), "s3cret") {
				t.Errorf("logged %s", logged.String())
			}
		})
	}
	if a, err := ensure(t.Context(), client(t, &endpoint{serve: answer(200, `{"status":"Succ"}`+strings.Repeat(" ", 1<<20-17))}, nil), driver.Call{}); err != nil || a.Status != "Succ" {
		t.Errorf("an answer of the greatest length: %+v, %v", a, err)
	}
}

// lbcf §3.9 [FIX]: an empty address with Succ is no answer.
func TestAnEmptyAddressIsNoAnswer(t *testing.T) {
	c := client(t, &endpoint{serve: answer(200, `{"status":"Succ","backendAddr":""}`)}, nil)
	if errs := all(t.Context(), c); cause(errs["generateBackendAddr"]) != driver.CauseInvalid {
		t.Error(errs["generateBackendAddr"])
	}
}

// A failure is certain only where the one who sends says so.
func TestOnlyWhatWasNotSentIsCertain(t *testing.T) {
	refused := fmt.Errorf("%w: dial: connection refused", driver.ErrNotSent)
	_, err := ensure(t.Context(), client(t, &endpoint{serve: broken(refused)}, nil), driver.Call{})
	if cause(err) != driver.CauseConnect || driver.ResultOf("", err) != fsm.ResultFailed || err.Error() != "ensureBackend of driver shop/d: not sent: dial: connection refused" {
		t.Error(err)
	}
	_, err = ensure(t.Context(), client(t, &endpoint{serve: broken(errors.New("connection refused"))}, nil), driver.Call{})
	if cause(err) != driver.CauseBroken || driver.ResultOf("", err) != fsm.ResultUnknown {
		t.Error(err)
	}
	for status, want := range map[string]fsm.Result{"Succ": fsm.ResultSucceeded, "Fail": fsm.ResultFailed, "Running": fsm.ResultRunning} {
		a, err := ensure(t.Context(), client(t, &endpoint{serve: answer(200, `{"status":"`+status+`"}`)}, nil), driver.Call{})
		if got := driver.ResultOf(a.Status, err); got != want {
			t.Error(status, got, err)
		}
	}
}

func redirect(status int, to string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		out, err := answer(status, "moved")(r)
		out.Header.Set("Location", to)
		return out, err
	}
}

func broken(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func brokenBody(*http.Request) (*http.Response, error) {
	body := io.MultiReader(strings.NewReader(`{"status":"Succ"}`), failing{})
	return &http.Response{StatusCode: 200, Body: io.NopCloser(body)}, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// lbcf §3.1: 307 and 308 are followed where that is wanted, with the request; never to another place.
func TestRedirectsAreFollowedWhereWanted(t *testing.T) {
	for name, c := range map[string]struct {
		status, redirects int
		to                string
		want              driver.Cause
		url               string
	}{
		"307":          {307, 1, "/v2/ensureBackend", "", "http://driver.example:80/v2/ensureBackend"},
		"308":          {308, 10, "http://driver.example:80/x", "", "http://driver.example:80/x"},
		"same-in-caps": {308, 1, "HTTP://Driver.Example/x", "", "http://Driver.Example/x"},
		"userinfo":     {308, 1, "http://u:pw@driver.example/x", "", "http://driver.example/x"},
		"host":         {308, 1, "http://other.example:80/x", driver.CauseStatus, "http://driver.example:80/p/ensureBackend?zone=1"},
		"port":         {308, 1, "http://driver.example:81/x", driver.CauseStatus, "http://driver.example:80/p/ensureBackend?zone=1"},
		"scheme":       {308, 1, "https://driver.example:80/x", driver.CauseStatus, "http://driver.example:80/p/ensureBackend?zone=1"},
		"no-scheme":    {308, 1, "//other.example/x", driver.CauseStatus, "http://driver.example:80/p/ensureBackend?zone=1"},
		"302":          {302, 1, "/v2/ensureBackend", driver.CauseStatus, "http://driver.example:80/p/ensureBackend?zone=1"},
		"unwanted":     {307, 0, "/v2/ensureBackend", driver.CauseStatus, "http://driver.example:80/p/ensureBackend?zone=1"},
		"nowhere":      {307, 1, "", driver.CauseStatus, ""},
		"file":         {307, 1, "file:///etc/passwd", driver.CauseStatus, "http://driver.example:80/p/ensureBackend?zone=1"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &endpoint{}
			e.serve = func(r *http.Request) (*http.Response, error) {
				if e.calls() == 1 {
					return redirect(c.status, c.to)(r)
				}
				return answer(200, everyAnswer)(r)
			}
			d := client(t, e, func(o *driver.Options) { o.Redirects = c.redirects })
			if _, err := ensure(t.Context(), d, driver.Call{}); cause(err) != c.want {
				t.Error(err)
			}
			if last := e.last(t); c.url != "" && last.url != c.url || last.body != e.seen[0].body || last.length == 0 {
				t.Errorf("%+v", last)
			}
		})
	}
	e := &endpoint{serve: redirect(307, "/again")}
	if _, err := ensure(t.Context(), client(t, e, func(o *driver.Options) { o.Redirects = 3 }), driver.Call{}); cause(err) != driver.CauseStatus || e.calls() != 4 {
		t.Error(err, e.calls())
	}
}
