// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/fsm/world"
)

// court answers questions as a test says, and remembers them.
type court struct {
	mu      sync.Mutex
	answer  func(pods []string) ([]string, error)
	asked   []string
	flying  int
	highest int
}

func (c *court) judge(ctx context.Context, driver string, pods []balancers.PodRef) ([]string, error) {
	var uids []string
	for _, p := range pods {
		uids = append(uids, p.UID)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, driver+" "+strings.Join(uids, ","))
	c.flying++
	c.highest = max(c.highest, c.flying)
	defer func() { c.flying-- }()
	c.mu.Unlock()
	time.Sleep(time.Second)
	c.mu.Lock()
	return c.answer(uids)
}

func (c *court) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

func (c *court) set(answer func([]string) ([]string, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = answer
}

// sitting runs a judging over a court until f returns.
func sitting(t *testing.T, c *court, f func(*judging)) {
	synctest.Test(t, func(t *testing.T) {
		j := newJudging(Config{Clock: newWall(), Judge: c.judge, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			j.run(ctx)
		}()
		f(j)
		cancel()
		<-done
		if len(j.judged()) > 0 {
			t.Error("the next term begins with answers")
		}
	})
}

func questionOf(owner string, uids ...string) balancers.Question {
	q := balancers.Question{Owner: owner, Driver: world.ID{Namespace: "shop", Name: "drv"}}
	for _, u := range uids {
		q.Pods = append(q.Pods, balancers.PodRef{ID: world.ID{Namespace: "shop", Name: "pod-" + u}, UID: u})
	}
	return q
}

// news tells whether there was a token.
func news(j *judging) bool {
	select {
	case <-j.changed:
		return true
	default:
		return false
	}
}

// lbcf §3.12: asked when the pods change and each minute while the question stands; what stands no more is forgotten.
func TestAQuestionIsAskedWhenItsPodsChangeAndEachMinute(t *testing.T) {
	c := &court{answer: func(pods []string) ([]string, error) { return pods[:1], nil }}
	sitting(t, c, func(j *judging) {
		j.ask([]balancers.Question{questionOf("a", "1", "2")})
		time.Sleep(2 * time.Second)
		if have := j.judged()["a"]; have.Failed || !slices.Equal(have.Keep, []string{"1"}) || len(have.Pods) != 2 || !news(j) {
			t.Errorf("answer %+v", have)
		}
		for range 10 { // plans come and go
			j.ask([]balancers.Question{questionOf("a", "1", "2")})
			time.Sleep(time.Second)
		}
		if n := len(c.all()); n != 1 || news(j) {
			t.Errorf("asked %v", c.all())
		}
		j.ask([]balancers.Question{questionOf("a", "2", "3")})
		time.Sleep(2 * time.Second)
		if have := j.judged()["a"]; !slices.Equal(have.Keep, []string{"2"}) || !news(j) {
			t.Errorf("other pods: answer %+v, asked %v", have, c.all())
		}
		before := len(c.all())
		time.Sleep(3 * time.Minute)
		if n := len(c.all()) - before; n < 2 || n > 3 || news(j) {
			t.Errorf("asked %d times in three minutes", n)
		}
		j.ask(nil)
		if len(j.judged()) > 0 {
			t.Errorf("answers %v of a question that does not stand", j.judged())
		}
		before = len(c.all())
		time.Sleep(3 * time.Minute)
		if n := len(c.all()) - before; n > 0 {
			t.Errorf("asked %d times more", n)
		}
	})
}

// What a driver says now counts, and that it says nothing: the failure policy holds then (lbcf §5.2).
func TestAFailureTakesThePlaceOfAnAnswer(t *testing.T) {
	c := &court{answer: func(pods []string) ([]string, error) { return pods, nil }}
	sitting(t, c, func(j *judging) {
		j.ask([]balancers.Question{questionOf("a", "1")})
		time.Sleep(2 * time.Second)
		c.set(func([]string) ([]string, error) { return nil, errors.New("away") })
		time.Sleep(62 * time.Second)
		if have := j.judged()["a"]; !have.Failed || len(have.Keep) > 0 {
			t.Errorf("answer %+v", have)
		}
		c.set(func([]string) ([]string, error) { return nil, nil })
		time.Sleep(62 * time.Second)
		if have := j.judged()["a"]; have.Failed {
			t.Errorf("answer %+v", have)
		}
	})
}

// An answer to a question about other pods comes too late.
func TestAnAnswerAboutOtherPodsIsNotTaken(t *testing.T) {
	c := &court{answer: func(pods []string) ([]string, error) { return pods, nil }}
	sitting(t, c, func(j *judging) {
		j.ask([]balancers.Question{questionOf("a", "1")})
		time.Sleep(500 * time.Millisecond)
		j.ask([]balancers.Question{questionOf("a", "2")})
		time.Sleep(700 * time.Millisecond)
		if have, ok := j.judged()["a"]; ok {
			t.Errorf("answer %+v", have)
		}
		time.Sleep(time.Second)
		if have := j.judged()["a"]; !slices.Equal(have.Keep, []string{"2"}) {
			t.Errorf("answer %+v", have)
		}
	})
}

func TestQuestionsWaitForAPlace(t *testing.T) {
	c := &court{answer: func(pods []string) ([]string, error) { return pods, nil }}
	sitting(t, c, func(j *judging) {
		var qs []balancers.Question
		for i := range 3 * judgeTogether {
			qs = append(qs, questionOf(fmt.Sprintf("g%02d", i), "1"))
		}
		j.ask(qs)
		time.Sleep(4 * time.Second)
		if n := len(j.judged()); n != len(qs) || c.highest != judgeTogether {
			t.Errorf("%d answers, %d calls at once", n, c.highest)
		}
	})
}
