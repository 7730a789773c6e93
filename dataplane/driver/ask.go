// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
)

// Call is how to make one call.
type Call struct {
	// Deadline is the reading of Options.Now after which nothing of the request may be written and nobody waits any more.
	// It shortens the webhook's timeout, and never extends it. Zero for none.
	Deadline time.Duration
	// Attempt is the committed attempt that the call carries out (webhook.AttemptHeader). Zero for none.
	Attempt fsm.Revision
	// DryRun asks to change nothing, as Options.DryRun does for every call.
	DryRun bool
}

// maxAnswer bounds what is read of an answer, bytes.
const maxAnswer = 1 << 20

var (
	errTimeout = errors.New("no answer in time")
	errLate    = errors.New("the deadline has passed")
)

// ask makes one call and reads its answer. A nil request is an empty body.
func ask[A any](ctx context.Context, c *Client, n webhook.Name, call Call, request any, judge func(*A) (refused bool, err error)) (A, error) {
	began := c.o.Now()
	var answer A
	refused, e := false, (*Error)(nil)
	body, err := c.exchange(ctx, n, call, request, began)
	if err == nil {
		refused, err = read(body, &answer, judge)
	}
	if err != nil {
		var none A
		answer = none
		e = c.blame(n, err)
	}
	o := Observation{Webhook: n, Took: c.o.Now() - began, Err: e, Refused: refused}
	c.o.Observe(o)
	if e == nil {
		c.o.Log.Debug("driver called", "driver", c.o.Name, "webhook", n, "took", o.Took, "dryRun", c.dry(call), "refused", refused)
		return answer, nil
	}
	c.o.Log.Debug("driver not heard", "driver", c.o.Name, "webhook", n, "took", o.Took, "dryRun", c.dry(call), "cause", e.Cause, "sent", e.Sent, "err", e.Err)
	return answer, e
}

// read takes an answer apart.
func read[A any](body []byte, answer *A, judge func(*A) (bool, error)) (bool, error) {
	if err := json.Unmarshal(body, answer); err != nil {
		return false, &Error{Cause: CauseBody, Sent: true, Err: fmt.Errorf("its answer of %d bytes: %w", len(body), err)}
	}
	refused, err := judge(answer)
	if err != nil {
		return false, &Error{Cause: CauseInvalid, Sent: true, Err: err}
	}
	return refused, nil
}

// blame says on what a call failed.
func (c *Client) blame(n webhook.Name, err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Cause: CauseBroken, Sent: true, Err: err}
	}
	e.Driver, e.Webhook = c.o.Name, n
	return e
}

// exchange sends a request when it may go out, and gives the body of the answer 200 to it. Its errors are *Error.
func (c *Client) exchange(ctx context.Context, n webhook.Name, call Call, request any, began time.Duration) ([]byte, error) {
	if c.dry(call) && !c.o.AcceptsDryRun {
		c.o.Log.Info("driver not called in dry run", "driver", c.o.Name, "webhook", n)
		return nil, &Error{Cause: CauseDryRun, Err: errors.New("the driver does not take part in dry runs (spec.acceptDryRunCall)")}
	}
	deadline := began + c.Timeout(n)
	if call.Deadline != 0 {
		deadline = min(deadline, call.Deadline)
	}
	post, err := c.request(n, call, request)
	if err != nil {
		return nil, &Error{Cause: CauseRequest, Err: err}
	}
	ctx, cancel := withBudget(ctx, deadline, c.o.Now)
	defer cancel()
	free, err := c.places.take(ctx, n)
	if err != nil {
		return nil, c.failed(ctx, &Error{Cause: CauseBusy, Err: err})
	}
	defer free()
	if left(ctx) <= 0 {
		return nil, &Error{Cause: CauseLate, Err: errLate}
	}
	probe, refused := c.circuit.admit()
	if refused != nil {
		return nil, &Error{Cause: CauseOpen, RetryAfter: refused.after, Err: refused}
	}
	sent := c.o.Now()
	body, e := c.send(ctx, post)
	c.circuit.ended(probe, e, sent)
	if e != nil {
		return nil, e
	}
	return body, nil
}

// request makes the POST of a call.
func (c *Client) request(n webhook.Name, call Call, request any) (*http.Request, error) {
	var body []byte
	if request != nil {
		var err error
		if body, err = json.Marshal(request); err != nil {
			return nil, fmt.Errorf("write its request: %w", err)
		}
	}
	return c.post(n.At(c.base), call.Attempt, body)
}

func (c *Client) post(to *url.URL, attempt fsm.Revision, body []byte) (*http.Request, error) {
	post, err := http.NewRequest(http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make its request: %w", err)
	}
	post.Header.Set("Content-Type", "application/json")
	if !attempt.IsZero() {
		post.Header.Set(webhook.AttemptHeader, attempt.String())
	}
	if c.o.Token != "" {
		post.Header.Set("Authorization", "Bearer "+c.o.Token)
	} else if user := c.o.User; user != nil {
		password, _ := user.Password()
		post.SetBasicAuth(user.Username(), password)
	}
	return post, nil
}

// send makes the call and follows as many redirects as it may.
func (c *Client) send(ctx context.Context, post *http.Request) ([]byte, *Error) {
	for hop := 0; ; hop++ {
		response, err := c.o.HTTP.RoundTrip(post.WithContext(ctx))
		if err != nil {
			return nil, c.failed(ctx, &Error{Cause: CauseBroken, Sent: hop > 0 || !errors.Is(err, ErrNotSent), Err: err})
		}
		if response.StatusCode == http.StatusOK {
			return c.body(ctx, response)
		}
		_ = response.Body.Close() // nobody reads it
		e := &Error{Cause: CauseStatus, Sent: true, Status: response.StatusCode, Err: fmt.Errorf("the driver answered %s", statusText(response.StatusCode))}
		if hop == c.o.Redirects || response.StatusCode != http.StatusTemporaryRedirect && response.StatusCode != http.StatusPermanentRedirect {
			return nil, e
		}
		if post, err = c.redirected(post, response); err != nil {
			e.Err = fmt.Errorf("%w; %w", e.Err, err)
			return nil, e
		}
	}
}

// redirected is the same request to where an answer points.
func (c *Client) redirected(post *http.Request, response *http.Response) (*http.Request, error) {
	location := response.Header.Get("Location")
	to, err := post.URL.Parse(location)
	if err != nil || location == "" || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return nil, errors.New("it does not say where the driver is")
	}
	if !webhook.SameOrigin(to, c.base) {
		return nil, errors.New("it points to another scheme, host or port, which is not followed: write that in the driver's URL")
	}
	to.User = nil
	body, err := post.GetBody()
	if err != nil {
		return nil, err
	}
	next := post.Clone(post.Context())
	next.URL, next.Host, next.Body = to, "", body
	return next, nil
}

// body reads an answer, as much as an answer may have.
func (c *Client) body(ctx context.Context, response *http.Response) ([]byte, *Error) {
	defer func() { _ = response.Body.Close() }() // it was read to its end, or nobody waits for it
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, c.failed(ctx, &Error{Cause: CauseBroken, Sent: true, Err: fmt.Errorf("read its answer: %w", err)})
	case len(body) > maxAnswer:
		return nil, &Error{Cause: CauseTooLong, Sent: true, Err: fmt.Errorf("its answer is longer than %d bytes", maxAnswer)}
	}
	return body, nil
}

// failed says of a call that broke off whether its time was over, or whoever waited for it had gone.
func (c *Client) failed(ctx context.Context, e *Error) *Error {
	over := left(ctx) <= 0 || errors.Is(context.Cause(ctx), errTimeout)
	switch {
	case over && e.Cause == CauseBusy:
		// Its time was over before there was a place.
	case over && e.Sent:
		e.Cause, e.Err = CauseTimeout, errTimeout
	case over:
		e.Cause, e.Err = CauseTimeout, fmt.Errorf("no connection in time: %w", e.Err)
	case ctx.Err() != nil:
		e.Cause, e.Err = CauseGone, context.Cause(ctx)
	case !e.Sent && errors.Is(e.Err, ErrAddress):
		e.Cause = CauseAddress
	case !e.Sent && e.Cause != CauseBusy:
		e.Cause = CauseConnect
	}
	return e
}

// statusText is an HTTP status as people know it.
func statusText(code int) string {
	if text := http.StatusText(code); text != "" {
		return fmt.Sprintf("%d %s", code, text)
	}
	return fmt.Sprint(code)
}

// A call's budget travels in its context, as far as the connection that the request is written to.
type budgetKey struct{}

func withBudget(ctx context.Context, deadline time.Duration, now func() time.Duration) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(ctx, budgetKey{}, func() time.Duration { return deadline - now() })
	return context.WithTimeoutCause(ctx, deadline-now(), errTimeout)
}

// left is how long the call that ctx belongs to may still take. Who knows nothing of a budget may take as long as any.
func left(ctx context.Context) time.Duration {
	if left, ok := ctx.Value(budgetKey{}).(func() time.Duration); ok {
		return left()
	}
	return webhook.MaxTimeout
}
