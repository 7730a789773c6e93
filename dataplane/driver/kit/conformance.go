// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
)

// TestOptions is what a driver is asked about. Only URL is required.
type TestOptions struct {
	URL string
	// HTTP makes the calls. Default: TCP.
	HTTP http.RoundTripper
	// Token is sent as bearer token, User as basic authentication where there is no Token. Default none.
	Token string
	User  *url.Userinfo
	// LBSpec and Attributes are of the load balancer to make, use and delete; Parameters of the backends on it. They are
	// what the driver's users write.
	LBSpec, Attributes, Parameters webhook.Map
	// Addresses are those of static backends to use, at least two. Default: the driver is asked for those of pods.
	Addresses []string
	// Timeout of each call. Default webhook.DefaultTimeout.
	Timeout time.Duration
	// Within is how long the driver may answer Running. Default one minute.
	Within time.Duration
}

// beat is how long to wait after Running where the driver does not say.
const beat = time.Second

// Test asks a driver what there is to ask. It makes a load balancer and backends on it, with addresses that are set aside
// for documentation, and takes all of them off again. Errors: the driver cannot be asked at all with these options.
func Test(ctx context.Context, o TestOptions) (Report, error) {
	s, err := newSession(o)
	if err != nil {
		return Report{}, err
	}
	defer s.close()
	report := Report{URL: s.base}
	passed := map[string]bool{}
	for _, q := range questions() {
		c := Check{Name: q.name, Section: q.section, What: q.what, Result: Skipped}
		began := time.Now()
		switch missing := q.missing(passed); {
		case ctx.Err() != nil:
			c.Why = "the test was interrupted"
		case missing != "":
			c.Why = missing + " has to pass first"
		default:
			c.Why, err = q.ask(ctx, s)
			c.TookMs = time.Since(began).Milliseconds()
			c.Result = Passed
			var skip skipped
			switch {
			case errors.As(err, &skip):
				c.Result, c.Why = Skipped, skip.Error()
			case err != nil:
				c.Result, c.Why, c.Remedy = Failed, s.why(err), remedy(err, q.remedy)
			default:
				c.Why = s.discreet(c.Why)
			}
		}
		passed[q.name] = c.Result == Passed
		report.add(c)
	}
	return report, nil
}

// skipped says why a check does not apply.
type skipped struct{ error }

// unfinished says that a driver did not come to an end.
type unfinished struct{ error }

// question is a check before it is made.
type question struct {
	name, section, what string
	remedy              string
	needs               []string
	// ask gives a remark, or what is wrong.
	ask func(context.Context, *session) (string, error)
}

func (q question) missing(passed map[string]bool) string {
	if i := slices.IndexFunc(q.needs, func(n string) bool { return !passed[n] }); i >= 0 {
		return q.needs[i]
	}
	return ""
}

// session is what is known while a driver is asked.
type session struct {
	o       TestOptions
	base    string
	http    http.RoundTripper
	close   func()
	client  *driver.Client
	fence   fsm.Revision
	id      string // of the objects that are made up
	info    webhook.Map
	address []string
	// injected is what the newest successful ensureBackend answered.
	injected webhook.Map
}

func newSession(o TestOptions) (*session, error) {
	base, err := webhook.ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if len(o.Addresses) == 1 {
		return nil, errors.New("addresses of static backends: one is too few, give two or more, or none")
	}
	closing := func() {}
	if o.HTTP == nil {
		transport, err := driver.NewTransport(driver.TransportOptions{})
		if err != nil {
			return nil, err
		}
		o.HTTP, closing = transport, transport.Close
	}
	if o.Timeout == 0 {
		o.Timeout = webhook.DefaultTimeout
	}
	if o.Within <= 0 {
		o.Within = time.Minute
	}
	timeouts := map[webhook.Name]time.Duration{}
	for _, n := range webhook.Names() {
		timeouts[n] = o.Timeout
	}
	var seed [32]byte
	_, _ = cryptorand.Read(seed[:]) // it never fails
	began := time.Now()
	client, err := driver.New(driver.Options{
		Name: base.String(), URL: o.URL, HTTP: o.HTTP, Token: o.Token, User: o.User, Timeouts: timeouts, Random: rand.NewChaCha8(seed),
		Now: func() time.Duration { return time.Since(began) }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	// A fence newer than that of any test before.
	fence := fsm.Revision{Epoch: 1, Index: fsm.Index(began.UnixMilli())}
	return &session{o: o, base: base.String(), http: o.HTTP, close: closing, client: client, fence: fence, id: cryptorand.Text()}, nil
}

// call is a call with a newer fence than the one before.
func (s *session) call() driver.Call {
	s.fence.Index++
	return driver.Call{Attempt: s.fence}
}

// attempt names an operation on one of the objects that are made up.
func (s *session) attempt(n webhook.Name, object string) webhook.Attempt {
	return webhook.Attempt{RecordID: webhook.RecordID(n, strings.ToLower(s.id)+"-"+object)}
}

// done asks until the answer is Succ, as long as it is Running.
func (s *session) done(ctx context.Context, ask func() (webhook.Answer, error)) error {
	began := time.Now()
	for {
		a, err := ask()
		switch {
		case err != nil:
			return err
		case a.Status == webhook.Succ:
			return nil
		case a.Status == webhook.Fail:
			return fmt.Errorf("it answered Fail: %s", short(a.Msg))
		}
		wait := max(a.RetryAfter(), beat)
		if time.Since(began)+wait > s.o.Within {
			return unfinished{fmt.Errorf("it still answered Running after %v: %s", time.Since(began).Round(time.Second), short(a.Msg))}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// short is a driver's message, for a line.
func short(msg string) string {
	const most = 300
	if len(msg) > most {
		msg = strings.ToValidUTF8(msg[:most], "") + "..."
	}
	if msg == "" {
		return "it did not say why"
	}
	return msg
}

// pod makes up the pod of a number.
func (s *session) pod(n int) json.RawMessage {
	const text = `{"metadata":{"name":"fairlead-test-%[1]d","namespace":"fairlead-test","uid":"%[2]s-%[1]d","labels":{"app":"fairlead-test"}},` +
		`"spec":{"nodeName":"node-1","containers":[{"name":"web","image":"web:1","ports":[{"containerPort":8080,"protocol":"TCP"}]}]},` +
		`"status":{"phase":"Running","hostIP":"198.51.100.1","podIP":"192.0.2.%[3]d","podIPs":[{"ip":"192.0.2.%[3]d"}],"conditions":[{"type":"Ready","status":"True"}]}}`
	return json.RawMessage(fmt.Sprintf(text, n, strings.ToLower(s.id), 10+n))
}
