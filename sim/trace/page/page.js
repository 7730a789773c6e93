// SPDX-License-Identifier: Apache-2.0

import { open } from 'page/trace';
import { Story } from 'page/story';
import { View } from 'page/view';
import { Picture } from 'page/draw';
import { Overview } from 'page/overview';
import { Details, element } from 'page/details';
import { families, glyph } from 'page/glyphs';
import { matching } from 'page/filter';
import { sentence } from 'page/sentence';

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
    this.details = new Details(trace, this.story, $('details'), (i) => this.choose(i, true));
    this.broken = trace.head.about.violation;
    this.hiddenFamilies = new Set();
    this.taken = null; // by the filter
    this.theme();
    this.listFamilies();
    this.listLanes();
    this.listen();
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
    this.colours.font = getComputedStyle(document.body).fontFamily;
    this.picture.colours = this.colours;
    for (const canvas of document.querySelectorAll('canvas.mark')) this.paintMark(canvas);
    this.later();
  }

  resize() {
    const scale = window.devicePixelRatio || 1;
    const stage = $('stage').getBoundingClientRect();
    const scroller = $('scroller');
    this.picture.layout(scroller.clientWidth);
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
    empty.textContent = total === 0 ? 'This trace holds no events: the run was only digested.' : 'No event matches. Change the filter, or switch marks and lanes on again.';
    this.later();
  }

  choosing() {
    const { trace, story, picture, taken } = this;
    if (!taken && this.hiddenFamilies.size === 0 && picture.hiddenLanes.size === 0) {
      picture.shown = null;
      return;
    }
    const seen = picture.looks.map((l) => l && !this.hiddenFamilies.has(l.family));
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

  hover(x, y) {
    const tip = $('tip');
    const [i] = this.picture.near(x, y, 5);
    $('picture').style.cursor = i === undefined ? '' : 'pointer';
    tip.hidden = i === undefined;
    if (i === undefined) return;
    const text = sentence(this.trace, i);
    tip.textContent = text.length > 200 ? `${text.slice(0, 200)}…` : text;
    const stage = $('stage').getBoundingClientRect();
    const left = Math.min(x + timesWidth + 14, stage.width - tip.offsetWidth - 4);
    tip.style.left = `${Math.max(left, 4)}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > stage.height ? y - tip.offsetHeight - 8 : y + 18}px`;
  }

  listFamilies() {
    const present = new Map();
    for (const k of this.trace.kind) {
      const { family } = this.picture.looks[k];
      present.set(family, (present.get(family) ?? 0) + 1);
    }
    $('kinds').querySelector('ul').replaceChildren(...families.map((family, f) => {
      const box = element('input', { type: 'checkbox', onchange: (e) => this.toggle(this.hiddenFamilies, f, e.target.checked) });
      box.checked = true;
      const mark = element('canvas', { class: 'mark', width: 40, height: 32, 'aria-hidden': 'true' });
      mark.family = family;
      this.paintMark(mark);
      const n = present.get(f) ?? 0;
      return element('li', n ? {} : { class: 'absent' }, element('label', { title: family.kinds.join(', ') }, box, mark,
        element('span', { class: 'name' }, family.name), element('span', { class: 'n' }, n.toLocaleString('en'))));
    }));
  }

  paintMark(canvas) {
    const g = canvas.getContext('2d');
    g.setTransform(2, 0, 0, 2, 0, 0);
    g.clearRect(0, 0, 20, 16);
    glyph(g, canvas.family.shape, this.colours[canvas.family.colour], 10, 8, this.colours.paper);
  }

  listLanes() {
    const items = [];
    let group = '';
    for (const lane of this.story.lanes) {
      if (lane.groupName !== group) {
        group = lane.groupName;
        const of = this.story.lanes.filter((l) => l.groupName === group);
        items.push(element('li', { class: 'group' }, group, element('button', {
          type: 'button', onclick: (e) => this.onlyGroup(of, e),
        }, 'only')));
      }
      const box = element('input', { type: 'checkbox', onchange: (e) => this.toggle(this.picture.hiddenLanes, lane.index, e.target.checked) });
      box.checked = true;
      box.lane = lane.index;
      items.push(element('li', {}, element('label', {}, box, element('span', { class: 'name' }, lane.name))));
    }
    const all = element('li', { class: 'group' }, '', element('button', { type: 'button', onclick: () => this.onlyGroup(this.story.lanes) }, 'all'));
    $('lanes').querySelector('ul').replaceChildren(all, ...items);
  }

  onlyGroup(lanes) {
    const keep = new Set(lanes.map((l) => l.index));
    keep.add(0);
    for (const box of $('lanes').querySelectorAll('input')) {
      box.checked = keep.has(box.lane);
      this.picture.hiddenLanes[box.checked ? 'delete' : 'add'](box.lane);
    }
    this.refilter();
    this.resize();
  }

  toggle(hidden, what, on) {
    if (on) hidden.delete(what);
    else hidden.add(what);
    this.refilter();
    this.resize();
  }

  listen() {
    const { view } = this;
    const picture = $('picture');
    const scroller = $('scroller');
    new ResizeObserver(() => this.resize()).observe($('stage'));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.theme());
    matchMedia('print').addEventListener('change', () => { this.theme(); this.resize(); this.draw(); });
    scroller.addEventListener('scroll', () => { this.picture.scroll = scroller.scrollLeft; this.later(); });
    this.listenPointer(picture);
    picture.addEventListener('wheel', (e) => {
      if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) return;
      e.preventDefault();
      if (e.ctrlKey || e.metaKey) view.zoom(1.0018 ** e.deltaY, e.offsetY - this.picture.head);
      else view.move(e.deltaY);
    }, { passive: false });
    $('closer').onclick = () => view.zoom(0.5);
    $('wider').onclick = () => view.zoom(2);
    $('whole').onclick = () => view.whole();
    $('next').onclick = () => this.step(1);
    $('previous').onclick = () => this.step(-1);
    if ($('broken')) $('broken').onclick = () => this.jump();
    $('tools').addEventListener('submit', (e) => { e.preventDefault(); this.step(1); });
    $('filter').addEventListener('input', () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.refilter(), 120);
    });
    $('copy')?.addEventListener('click', () => this.copy());
    document.addEventListener('keydown', (e) => this.key(e));
  }

  listenPointer(picture) {
    let start;
    picture.addEventListener('pointerdown', (e) => {
      start = { x: e.offsetX, y: e.offsetY, top: this.view.top, left: $('scroller').scrollLeft, zoom: e.shiftKey };
      picture.setPointerCapture(e.pointerId);
    });
    picture.addEventListener('pointermove', (e) => {
      if (!start) { this.hover(e.offsetX, e.offsetY); return; }
      $('tip').hidden = true;
      start.moved ||= Math.hypot(e.offsetX - start.x, e.offsetY - start.y) > 4;
      if (!start.moved || start.zoom) return;
      this.view.set(start.top - (e.offsetY - start.y) / this.view.height * this.view.span, this.view.span);
      $('scroller').scrollLeft = start.left - (e.offsetX - start.x);
    });
    picture.addEventListener('pointerup', (e) => {
      if (start && !start.moved) this.click(e.offsetX, e.offsetY);
      else if (start?.zoom) {
        const [a, b] = [start.y, e.offsetY].sort((p, q) => p - q).map((y) => this.view.time(y - this.picture.head));
        this.view.set(a, b - a);
      }
      start = undefined;
    });
    picture.addEventListener('pointerleave', () => { $('tip').hidden = true; });
  }

  async copy() {
    try {
      await navigator.clipboard.writeText($('command').textContent);
      $('copy').textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren($('command'));
      $('copy').textContent = 'Selected';
    }
    setTimeout(() => { $('copy').textContent = 'Copy'; }, 1500);
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = e.target === $('filter');
    if (e.key === 'Escape') {
      if (this.picture.selected >= 0 && !typing) this.choose(-1);
      else if ($('filter').value) { $('filter').value = ''; this.refilter(); }
      else $('filter').blur();
      return;
    }
    if (typing) return;
    const { view } = this;
    const page = view.height * 0.85;
    const does = {
      ArrowDown: () => view.move(60), ArrowUp: () => view.move(-60),
      ArrowRight: () => { $('scroller').scrollLeft += 60; }, ArrowLeft: () => { $('scroller').scrollLeft -= 60; },
      PageDown: () => view.move(page), PageUp: () => view.move(-page),
      Home: () => view.set(-view.margin, view.span), End: () => view.set(view.end, view.span),
      '+': () => view.zoom(0.5), '=': () => view.zoom(0.5), '-': () => view.zoom(2), 0: () => view.whole(),
      n: () => this.step(1), p: () => this.step(-1), v: () => this.jump(), '/': () => $('filter').focus(),
    }[e.key];
    if (!does) return;
    e.preventDefault();
    does();
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
  $('empty').textContent = `The trace cannot be shown: ${err.message}`;
  throw err;
});
