// SPDX-License-Identifier: Apache-2.0

import { open } from 'page/trace';
import { Story } from 'page/story';
import { View } from 'page/view';
import { Picture } from 'page/draw';
import { Overview } from 'page/overview';
import { Details } from 'page/details';
import { matching } from 'page/filter';
import { listen } from 'page/input';
import { listFamilies, listLanes, paintMark } from 'page/switches';

const $ = (id) => document.getElementById(id);
const timesWidth = 84;
const overviewWidth = 48;
const clear = 500; // events in a view in which marks can be told apart

// Page joins the parts: what is chosen, what is shown, and what keys and pointers do.
class Page {
  constructor(trace) {
    this.trace = trace;
    this.story = new Story(trace);
    this.view = new View(this.story.end, () => this.later());
    this.picture = new Picture(trace, this.story, this.view, $('picture'), $('times'));
    this.overview = new Overview(trace, this.story, this.view, $('overview'));
    this.details = new Details(trace, this.story, $('details'), (i) => this.choose(i, true), (word) => this.only(word));
    this.broken = trace.head.about.violation;
    this.taken = null; // by the filter
    this.theme();
    listFamilies(this);
    listLanes(this);
    listen(this);
    this.details.none();
    this.resize();
    this.restore();
  }

  // later draws once before the next frame, however often it is asked to.
  later() {
    this.planned ??= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.planned = undefined;
    this.picture.draw();
    this.overview.draw(this.colours, this.picture.shown);
    this.remember();
    document.documentElement.dataset.drawn ??= String(Math.round(performance.now()));
  }

  theme() {
    const style = getComputedStyle(document.documentElement);
    const names = ['paper', 'panel', 'ink', 'soft', 'line', 'grid', 'stripe', 'accent', 'shade', 'alarm', 'onAlarm', 'fault', 'faultBand',
      'life', 'death', 'off', 'leader', 'applied', 'message', 'call', 'switch', 'node', 'driver', 'object', 'flow', 'log'];
    this.colours = Object.fromEntries(names.map((n) => [n, style.getPropertyValue(`--${n}`).trim()]));
    this.colours.terms = [0, 1, 2, 3].map((n) => style.getPropertyValue(`--term${n}`).trim());
    this.colours.ports = [0, 1, 2, 3, 4, 5].map((n) => style.getPropertyValue(`--port${n}`).trim());
    this.colours.font = getComputedStyle(document.body).fontFamily;
    this.picture.colours = this.colours;
    for (const canvas of document.querySelectorAll('canvas.mark')) paintMark(this, canvas);
    this.later();
  }

  resize() {
    const scale = window.devicePixelRatio || 1;
    const stage = $('stage').getBoundingClientRect();
    const scroller = $('scroller');
    $('picture').style.width = 0; // so that only the lanes decide about a scroll bar
    this.picture.layout(scroller.clientWidth, matchMedia('print').matches);
    $('extent').style.width = `${this.picture.total}px`;
    const height = Math.floor(scroller.clientHeight || stage.height);
    this.picture.resize(scroller.clientWidth, height, timesWidth, scale);
    this.overview.resize(overviewWidth, Math.floor(stage.height), scale);
    this.later();
  }

  // Which events are seen: those that the filter takes, of the kinds and lanes that are switched on.

  refilter() {
    const query = $('filter').value.trim();
    this.taken = matching(this.trace, query);
    this.choosing();
    const total = this.trace.count;
    const all = this.picture.shown ? this.marks().length : total;
    $('count').textContent = all === total ? `${total.toLocaleString('en')} events` : `${all.toLocaleString('en')} of ${total.toLocaleString('en')} events`;
    const empty = $('empty');
    empty.hidden = all > 0;
    empty.firstChild.textContent = total === 0 ? 'This trace holds no events: the run was only digested.' : 'No event matches. Change the filter, or switch marks and lanes on again.';
    this.later();
  }

  // only shows what mentions a word, and nothing else.
  only(word) {
    $('filter').value = word;
    this.refilter();
    this.view.whole(); // it may be nowhere in what was seen
  }

  choosing() {
    const { trace, story, picture, taken } = this;
    if (!taken && this.picture.hiddenFamilies.size === 0 && picture.hiddenLanes.size === 0) {
      picture.shown = null;
      return;
    }
    const seen = picture.looks.map((l) => l && !this.picture.hiddenFamilies.has(l.family));
    const lanes = story.lanes.map((l) => !picture.hiddenLanes.has(l.index));
    const shown = new Uint8Array(trace.count);
    for (let i = 0; i < trace.count; i++) {
      shown[i] = (!taken || taken[i]) && seen[trace.kind[i]] && lanes[story.lane[i]] && (story.fromLane[i] < 0 || lanes[story.fromLane[i]]) ? 1 : 0;
    }
    picture.shown = shown;
    this.listed = null;
  }

  // marks lists what is shown, for going from one to the next.
  marks() {
    const { shown } = this.picture;
    if (!shown) return this.every ??= range(0, this.trace.count);
    if (!this.listed) {
      this.listed = [];
      for (let i = 0; i < shown.length; i++) if (shown[i]) this.listed.push(i);
    }
    return this.listed;
  }

  // choose shows the details of an event, and moves the view to it if asked to.
  choose(i, move = false, of = []) {
    this.picture.selected = i;
    if (i < 0) this.details.none();
    else this.details.event(i, of);
    if (i >= 0 && move) {
      this.view.show(this.trace.at[i]);
      this.across(this.picture.markX(i));
    }
    this.later();
  }

  // across scrolls until a place among the lanes is seen.
  across(x) {
    const scroller = $('scroller');
    if (Number.isNaN(x)) return;
    if (x < scroller.scrollLeft + 20 || x > scroller.scrollLeft + scroller.clientWidth - 20) scroller.scrollLeft = x - scroller.clientWidth / 2;
  }

  // zoom keeps what is selected in its place, or else the middle of the view.
  zoom(factor) {
    const { view, trace, picture } = this;
    const y = picture.selected < 0 ? -1 : view.y(trace.at[picture.selected]);
    view.zoom(factor, y >= 0 && y <= view.height ? y : undefined);
  }

  // step goes to the next mark (1) or the previous one (-1), from the selected one or from the middle of the view.
  step(direction) {
    const marks = this.marks();
    const { selected } = this.picture;
    const from = selected >= 0 ? selected : this.trace.after(this.view.top + this.view.span / 2) - (direction > 0 ? 1 : 0);
    let low = 0;
    let high = marks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (direction > 0 ? marks[middle] <= from : marks[middle] < from) low = middle + 1;
      else high = middle;
    }
    const next = marks[direction > 0 ? low : low - 1];
    if (next !== undefined) this.choose(next, true);
  }

  // jump goes to the violation, close enough to tell marks apart.
  jump() {
    if (!this.broken) return;
    const { at: time } = this.broken;
    let span = Math.min(this.view.span, 2e9);
    while (this.trace.after(time + 0.3 * span) - this.trace.after(time - 0.7 * span) > clear) span /= 2;
    this.view.set(time - span * 0.7, span);
    const at = this.broken.number ? this.trace.number.indexOf(this.broken.number) : -1;
    if (at >= 0) {
      this.choose(at, true);
      return;
    }
    const last = this.trace.after(time + 1);
    this.picture.selected = -1;
    this.details.violation(this.broken, range(Math.max(0, last - 12), last));
  }

  click(x, y) {
    const near = this.picture.near(x, y);
    if (near.length > 0) {
      const now = near.indexOf(this.picture.selected);
      this.choose(near[now < 0 ? 0 : (now + 1) % near.length], false, near);
      return;
    }
    if (this.picture.dense && this.crowd(x, y)) return;
    this.choose(-1);
  }

  // crowd lists what happens around a place where only density is drawn.
  crowd(x, y) {
    const lane = this.picture.laneAt(x);
    if (!lane || y < this.picture.head) return false;
    const { trace, story, view, picture } = this;
    const [from, to] = [view.time(y - this.picture.head - 3), view.time(y - this.picture.head + 3)];
    const events = [];
    const last = trace.after(to);
    for (let i = trace.after(from); i < last; i++) {
      if ((story.lane[i] === lane.index || story.fromLane[i] === lane.index) && (!picture.shown || picture.shown[i])) events.push(i);
    }
    if (events.length === 0) return false;
    picture.selected = -1;
    this.details.crowd(lane.name, from, to, events, () => this.view.set(from - (to - from), (to - from) * 3));
    this.later();
    return true;
  }

  // The address of the page says what is seen, so that it can be sent to others.

  remember() {
    clearTimeout(this.saving);
    this.saving = setTimeout(() => {
      const { view, picture, trace } = this;
      const parts = new URLSearchParams({ from: (view.top / 1e9).toFixed(6), for: (view.span / 1e9).toFixed(6) });
      if ($('filter').value) parts.set('filter', $('filter').value);
      if (picture.selected >= 0) parts.set('event', trace.number[picture.selected]);
      history.replaceState(null, '', `#${parts}`);
    }, 250);
  }

  restore() {
    const parts = new URLSearchParams(location.hash.slice(1));
    $('filter').value = parts.get('filter') ?? '';
    this.refilter();
    const [from, long] = [Number(parts.get('from')), Number(parts.get('for'))];
    if (long > 0) this.view.set(from * 1e9, long * 1e9);
    const chosen = parts.has('event') ? this.trace.number.indexOf(Number(parts.get('event'))) : -1;
    if (chosen >= 0) this.choose(chosen, !(long > 0));
  }
}

function range(from, to) { return Array.from({ length: to - from }, (_, n) => from + n); }

async function start() {
  if (!('DecompressionStream' in window)) throw new Error('this browser is too old: it cannot unpack the trace');
  const trace = await open($('trace').textContent, $('texts').textContent);
  window.fairlead = new Page(trace); // for the console of the browser, and for tests
}

start().catch((err) => {
  $('empty').hidden = false;
  $('empty').firstChild.textContent = `The trace cannot be shown: ${err.message}`;
  throw err;
});
