// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"fairlead.io/fairlead/fsm/world"
)

// stage is what was being asked when trouble arose. It ends when the same is asked with success.
type stage string

const (
	stageLocate stage = "locate"
	stageList   stage = "list"
	stageWatch  stage = "watch"
	stageGet    stage = "get"
)

// trouble is why something could not be asked. Equal troubles are one: nothing in it differs from try to try.
type trouble struct {
	reason string // for metrics
	why    string
	remedy string
}

func (t trouble) problem() world.Problem {
	return world.Problem{Severity: world.Failed, Why: t.why, Remedy: t.remedy}
}

// note takes in an error of the API server, or of the way to it.
func (l *line) note(at stage, err error) {
	s := l.source
	t, ok := s.diagnose(at, l.resource, err)
	if !ok {
		return
	}
	t.remedy += l.unconverted(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.reason == reasonMissing && l.versions != nil {
		l.restartLocked() // its definition was removed, or moved to another version
		return
	}
	l.noteLocked(at, t)
}

func (l *line) noteLocked(at stage, t trouble) {
	s := l.source
	s.metrics.errors.WithLabelValues(string(l.kind), t.reason).Inc()
	if t.reason == reasonExpired || l.troubles[at] == t {
		return // an old version is how watches end: a list follows
	}
	l.troubles[at] = t
	s.notes = true
	s.poke()
}

// fine takes in that things were asked with success.
func (l *line) fine(stages ...stage) {
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	for _, at := range stages {
		if _, ok := l.troubles[at]; ok {
			delete(l.troubles, at)
			l.source.notes = true
			l.source.poke()
		}
	}
}

// problems adds what troubles this line. Connections that ended are left out where the server could not be dialled either.
func (l *line) problems(all []world.Problem, away bool) []world.Problem {
	for _, t := range l.troubles {
		if t.tells(away) {
			all = append(all, t.problem())
		}
	}
	return all
}

// tells is false for a connection that ended, once the server is known to be away.
func (t trouble) tells(away bool) bool { return t.reason != reasonClosed || !away }

// awayLocked tells whether somebody could not dial the server: lines find out one after the other.
func (s *Source) awayLocked() bool {
	if t := s.identity.trouble; t != nil && t.reason == reasonUnreachable {
		return true
	}
	for _, l := range s.lines {
		for _, t := range l.troubles {
			if t.reason == reasonUnreachable {
				return true
			}
		}
	}
	return false
}

// Reasons of trouble, as metrics name them.
const (
	reasonForbidden    = "forbidden"
	reasonUnauthorized = "unauthorized"
	reasonExpired      = "expired"
	reasonTimeout      = "timeout"
	reasonBusy         = "busy"
	reasonServer       = "server"
	reasonUnreachable  = "unreachable"
	reasonClosed       = "closed" // a connection ended that had been there
	reasonUntrusted    = "untrusted"
	reasonMissing      = "missing"
	reasonMalformed    = "malformed"
	reasonSilent       = "silent"
	reasonOther        = "other"
)

// diagnose puts an error into words, with a remedy. It gives false for the end of our own asking.
func (s *Source) diagnose(at stage, resource string, err error) (trouble, bool) {
	what := fmt.Sprintf("%s %s", at, resource)
	server := "the API server at " + s.api.Config.Host
	var status apierrors.APIStatus
	answer := ""
	if errors.As(err, &status) {
		answer = strings.Join(strings.Fields(status.Status().Message), " ")
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, errOtherCluster):
		return trouble{}, false
	case errors.Is(err, errTimeout), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return trouble{reasonTimeout, fmt.Sprintf("%s: %s does not answer in time", what, server), "see whether it is overloaded or the network to it drops packets"}, true
	case errors.Is(err, errSilent):
		return trouble{reasonSilent, fmt.Sprintf("%s: the watch fell silent", what), "see whether something between us and " + server + " drops idle connections"}, true
	case errors.Is(err, errMalformed):
		return trouble{reasonMalformed, fmt.Sprintf("%s: the answer of %s %v", what, server, err), "see whether a proxy answers in its place"}, true
	case apierrors.IsForbidden(err):
		if _, who, ok := strings.Cut(answer, " is forbidden: "); ok {
			answer = who
		}
		return trouble{reasonForbidden, fmt.Sprintf("%s is forbidden: %s", what, answer),
			fmt.Sprintf("allow %s of %s to this account, as deploy/ does; until then nothing is removed for what cannot be seen", verbsOf(at), resource)}, true
	case apierrors.IsUnauthorized(err):
		return trouble{reasonUnauthorized, server + " does not accept our credentials", "renew the token or certificate in the kubeconfig, or the ServiceAccount"}, true
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return trouble{reason: reasonExpired}, true
	case apierrors.IsNotFound(err):
		return trouble{reasonMissing, fmt.Sprintf("%s: %s does not know the resource", what, server), "see whether the address is that of a Kubernetes API server of a supported version"}, true
	case apierrors.IsTooManyRequests(err) && strings.Contains(answer, "initializing"):
		return trouble{reasonBusy, fmt.Sprintf("%s: %s has not read its own storage: %s", what, server, answer), "if it lasts, its log says why"}, true
	case apierrors.IsTooManyRequests(err):
		return trouble{reasonBusy, server + " asks us to come back later", "see whether it is overloaded, or its priority levels leave us too little"}, true
	case status != nil && status.Status().Code >= http.StatusInternalServerError:
		return trouble{reasonServer, fmt.Sprintf("%s: %s failed: %s", what, server, answer), "see its log"}, true
	case isUntrusted(err):
		return trouble{reasonUntrusted, fmt.Sprintf("%s is not trusted: %v", server, innermost(err)), "put the CA that signed its certificate, and a name that it bears, into the kubeconfig"}, true
	case isUnreachable(err):
		reason := reasonUnreachable
		if !isDial(err) {
			reason = reasonClosed
		}
		return trouble{reason, fmt.Sprintf("%s cannot be reached: %v", server, innermost(err)), "see whether it runs, and whether the address in the kubeconfig is right"}, true
	}
	return trouble{reasonOther, fmt.Sprintf("%s: %s", what, oneLine(err)), "see the log of " + server}, true
}

// unconverted is what else may help where the server cannot give out objects that it has in several versions, most often since nobody converts them any
// more. It says so in its own log alone, and answers that its storage is initialized, or not at all. Versions of one kind are read alike here.
func (l *line) unconverted(t trouble) string {
	if len(l.versions) < 2 || !slices.Contains([]string{reasonBusy, reasonTimeout, reasonServer}, t.reason) {
		return ""
	}
	group := l.versions[0].Group
	return "; if what served the conversion webhook of " + group + " was taken away for good, as with MetalLB, have the definition do without: " +
		withoutConversion(l.resource+"."+group)
}

// withoutConversion is the command that has a definition hand objects out as they are stored, with the version that is asked for.
func withoutConversion(definition string) string {
	return "kubectl patch crd " + definition + ` --type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'`
}

// verbsOf tells which permissions a stage needs.
func verbsOf(at stage) string {
	switch at {
	case stageGet:
		return "get"
	case stageLocate:
		return "discovery"
	}
	return "list and watch"
}

func isUntrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	return errors.As(err, &verification) || errors.As(err, &unknown) || errors.As(err, &record)
}

func isUnreachable(err error) bool {
	var network net.Error
	var request *url.Error
	return errors.As(err, &network) || errors.As(err, &request) || errors.Is(err, errClosed) || utilnet.IsProbableEOF(err)
}

// isDial tells whether there was no connection at all.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// innermost is the reason without the addresses and ports around it, which differ from try to try.
func innermost(err error) string {
	for {
		var op *net.OpError
		var request *url.Error
		switch {
		case errors.As(err, &op):
			err = op.Err
		case errors.As(err, &request):
			err = request.Err
		default:
			return oneLine(err)
		}
	}
}

var ephemeral = regexp.MustCompile(`(\d+\.\d+\.\d+\.\d+|\[[0-9a-f:]+\]):\d+->`)

func oneLine(err error) string {
	return ephemeral.ReplaceAllString(strings.Join(strings.Fields(err.Error()), " "), "")
}
