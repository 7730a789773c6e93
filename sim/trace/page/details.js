// SPDX-License-Identifier: Apache-2.0

import { sentence } from 'page/sentence';
import { clock } from 'page/trace';
import { lasting } from 'page/view';

// relatives says which fields two events share that belong together.
const relatives = [
  { kinds: ['applied', 'restored'], by: ['index'], title: 'Same index' },
  { kinds: ['call-began', 'call-ended'], by: ['client', 'id'], title: 'Same call' },
  { kinds: ['drive'], by: ['driver', 'call'], title: 'Same call' },
  { kinds: ['fault-began', 'fault-ended'], by: ['id'], title: 'Same fault' },
  { kinds: ['session'], by: ['switch', 'member'], title: 'Same session' },
  { kinds: ['forwarding'], by: ['switch', 'prefix'], title: 'Same prefix' },
  { kinds: ['object'], by: ['kind', 'namespace', 'name'], title: 'Same object' },
];
const mostRelatives = 12;
const address = /^(\d+\.){3}\d+(\/\d+)?(:\d+)?$|^[0-9a-f]*:[0-9a-f:.]*:[0-9a-f]*(\/\d+)?$/;
const mostListed = 60;

export function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
}

// Details shows one event with all that it has, or a list of events.
export class Details {
  // choose selects an event, filter shows only what mentions a word.
  constructor(trace, story, place, choose, filter) {
    Object.assign(this, { trace, story, place, choose, filter });
  }

  // none says what can be done.
  none() {
    const broken = this.trace.head.about.violation;
    this.place.replaceChildren(
      element('p', { class: 'hint' }, `Click a mark or a bar for details.${broken ? ' Press v for the violation.' : ''} Drag or turn the wheel to move,`
        + ' with Ctrl to zoom, / to filter; all keys are below.'),
      element('p', { class: 'hint' }, 'Bars stand for what is too much to draw: messages to the left of a lane\u2019s line, other events to the right.'),
      ...(broken ? this.about(broken.sentence) : []),
    );
  }

  // about offers to show only what is about the lanes and addresses that a sentence names.
  about(text) {
    const words = new Set(text.split(/[^\w.:-]+/).map((w) => w.replace(/[.:]+$/, '')).filter((w) => this.story.laneOf(w) !== undefined || address.test(w)));
    if (words.size === 0) return [];
    return [element('h3', {}, 'Show only what is about'), element('p', { class: 'words' }, ...[...words].flatMap((w) => [this.mention(w, w), ' ']))];
  }

  // mention is a text that shows only what mentions a word when it is clicked.
  mention(text, word) {
    return element('button', { type: 'button', class: 'mention', title: `Show only what mentions ${word}`, onclick: () => this.filter(word) }, text);
  }

  // event shows one event; of are the others at the same place.
  event(i, of = []) {
    const { trace } = this;
    const rows = trace.fields(i).map((f) => this.row(f));
    const body = [
      element('p', { class: 'when' }, element('strong', {}, trace.name(i)), ` ${clock(trace.at[i])} · number ${trace.number[i]}`),
      element('p', { class: 'words' }, sentence(trace, i)),
      element('table', { class: 'fields' }, ...rows.filter((r) => r)),
    ];
    if (of.length > 1) {
      body.splice(1, 0, element('p', { class: 'hint' }, `${of.indexOf(i) + 1} of ${of.length} at this place: click again for the next`));
    }
    const broken = trace.head.about.violation;
    if (broken?.number > 0 && broken.number === trace.number[i]) body.unshift(...this.rule(broken));
    const took = this.took(i);
    if (took) body.at(-1).append(element('tr', {}, element('th', {}, 'took'), element('td', {}, took)));
    body.push(...this.related(i));
    this.place.replaceChildren(...body);
    this.place.parentElement.scrollTop = 0;
  }

  row(field) {
    const th = element('th', { scope: 'row' }, field.name);
    if (field.type === 'bytes') {
      if (field.size === 0) return element('tr', {}, th, element('td', { class: 'none' }, 'none'));
      const shown = field.more || hex(this.trace.bytes.subarray(field.start, field.start + Math.min(field.size, 256))) + (field.size > 256 ? ' …' : '');
      return element('tr', { class: 'long' }, element('td', { colspan: 2 },
        element('span', { class: 'name' }, `${field.name}, ${field.value}`), element('pre', {}, shown)));
    }
    if (field.type === 'paths' && field.list.length > 0) {
      return element('tr', { class: 'long' }, element('td', { colspan: 2 },
        element('span', { class: 'name' }, field.name), element('pre', {}, field.list.join('\n'))));
    }
    if (field.value === '') return element('tr', {}, th, element('td', { class: 'none' }, 'none'));
    if (field.name === 'arrived' && field.empty) return element('tr', {}, th, element('td', {}, 'never: it was lost'));
    const subject = this.story.laneOf(field.value) !== undefined || address.test(field.value);
    return element('tr', {}, th, element('td', {}, subject ? this.mention(field.value, field.value.replace(/\/(32|128)$/, '')) : field.value));
  }

  took(i) {
    if (this.trace.from[i] < 0 || this.trace.arrived[i] === 0) return '';
    return lasting(this.trace.arrived[i] - this.trace.sent[i]);
  }

  // related lists what belongs to an event: how other members applied the same index, how a call went on.
  related(i) {
    const { trace } = this;
    const family = relatives.find((r) => r.kinds.includes(trace.name(i)));
    if (!family) return [];
    const key = (j) => { const fields = trace.fields(j); return family.by.map((name) => fields.find((f) => f.name === name).value).join(' '); };
    const wanted = key(i);
    const kinds = family.kinds.map((name) => trace.kindNumber(name));
    const found = [];
    for (let j = 0; j < trace.count; j++) {
      if (j !== i && kinds.includes(trace.kind[j]) && key(j) === wanted) found.push(j);
    }
    if (found.length === 0) return [];
    const nearest = found.sort((a, b) => Math.abs(a - i) - Math.abs(b - i)).slice(0, mostRelatives).sort((a, b) => a - b);
    const digest = trace.name(i) === 'applied' ? trace.get(i, 'digest').value : undefined;
    const more = found.length > nearest.length ? `, nearest ${nearest.length} of ${found.length}` : '';
    return [element('h3', {}, family.title + more), this.list(nearest, trace.at[i], digest)];
  }

  // list is events as lines that choose them; since makes times relative.
  list(events, since, digest) {
    const { trace } = this;
    return element('ul', { class: 'events' }, ...events.map((j) => {
      const differs = digest !== undefined && trace.get(j, 'digest').value !== digest;
      const when = since === undefined ? clock(trace.at[j]) : `${trace.at[j] >= since ? '+' : ''}${lasting(trace.at[j] - since)}`;
      return element('li', differs ? { class: 'differs' } : {}, element('button', { type: 'button', onclick: () => this.choose(j) },
        element('span', { class: 'time' }, when), differs ? element('strong', {}, 'other digest: ') : '', sentence(trace, j)));
    }));
  }

  // crowd shows events of which there are too many to be drawn one by one.
  crowd(lane, from, to, events, closer) {
    const { trace } = this;
    const counts = new Map();
    for (const i of events) counts.set(trace.name(i), (counts.get(trace.name(i)) ?? 0) + 1);
    const summary = [...counts].sort((a, b) => b[1] - a[1]).map(([name, n]) => `${n} ${name}`).join(', ');
    this.place.replaceChildren(
      element('p', { class: 'when' }, element('strong', {}, lane), ` ${clock(from)} to ${clock(to)}`),
      element('p', { class: 'words' }, `${events.length} events: ${summary}`),
      element('p', {}, element('button', { type: 'button', onclick: closer }, 'Zoom in here')),
      this.list(events.slice(0, mostListed)),
      ...(events.length > mostListed ? [element('p', { class: 'hint' }, `and ${events.length - mostListed} more`)] : []),
    );
    this.place.parentElement.scrollTop = 0;
  }

  // rule says which rule was broken, and offers what it is about.
  rule(broken) {
    return [
      element('p', { class: 'when' }, element('strong', { class: 'alarm' }, `${broken.rule} broken`), ` ${clock(broken.at)}`),
      element('p', { class: 'words' }, broken.sentence),
      ...this.about(broken.sentence),
    ];
  }

  // violation shows the broken rule where no event is marked as its cause.
  violation(broken, events) {
    this.place.replaceChildren(
      ...this.rule(broken),
      ...(events.length ? [element('h3', {}, 'Last events before'), this.list(events, broken.at)] : []),
    );
  }
}

function hex(bytes) { return Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join(' '); }
