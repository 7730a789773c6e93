// SPDX-License-Identifier: Apache-2.0

import { element } from 'page/details';
import { families, glyph } from 'page/glyphs';

// The lists that switch kinds of marks and lanes on and off; the first one is the legend as well.

// What people call the ports of members, the API server and drivers.
const portNames = { 6443: 'Kubernetes', 7443: 'API', 7444: 'raft', 8080: 'driver', https: 'Kubernetes', api: 'API', bgp: 'BGP', http: 'driver' };

function portName(port) {
  const name = portNames[port];
  if (!name) return port || 'no port';
  return /^\d+$/.test(port) ? `${name} (${port})` : name;
}

const $ = (id) => document.getElementById(id);

export function listFamilies(page) {
  const present = new Map();
  for (const k of page.trace.kind) {
    const { family } = page.picture.looks[k];
    present.set(family, (present.get(family) ?? 0) + 1);
  }
  $('kinds').querySelector('ul').replaceChildren(...families.map((family, f) => {
    const box = element('input', { type: 'checkbox', onchange: (e) => toggle(page, page.picture.hiddenFamilies, f, e.target.checked) });
    box.checked = true;
    const mark = element('canvas', { class: 'mark', width: 40, height: 32, 'aria-hidden': 'true' });
    mark.family = family;
    paintMark(page, mark);
    const n = present.get(f) ?? 0;
    const ports = family.name === 'Messages' ? page.story.ports : [];
    return element('li', n ? {} : { class: 'absent' }, element('label', { title: family.kinds.join(', ') }, box, mark,
      element('span', { class: 'name' }, family.name), element('span', { class: 'n' }, n.toLocaleString('en'))),
    ...(ports.length ? [element('p', { class: 'ports' }, ...ports.map((port, p) => element('span', { class: `port port${p % 6}` }, portName(port))))] : []));
  }));
}

export function paintMark(page, canvas) {
  const g = canvas.getContext('2d');
  g.setTransform(2, 0, 0, 2, 0, 0);
  g.clearRect(0, 0, 20, 16);
  glyph(g, canvas.family.shape, page.colours[canvas.family.colour], 10, 8, page.colours.paper);
}

export function listLanes(page) {
  const items = [];
  let group = '';
  for (const lane of page.story.lanes) {
    if (lane.groupName !== group) {
      group = lane.groupName;
      const of = page.story.lanes.filter((l) => l.groupName === group);
      items.push(element('li', { class: 'group' }, group, element('button', {
        type: 'button', onclick: (e) => onlyGroup(page, of, e),
      }, 'only')));
    }
    const box = element('input', { type: 'checkbox', onchange: (e) => toggle(page, page.picture.hiddenLanes, lane.index, e.target.checked) });
    box.checked = true;
    box.lane = lane.index;
    items.push(element('li', {}, element('label', {}, box, element('span', { class: 'name' }, lane.name))));
  }
  const all = element('li', { class: 'group' }, '', element('button', { type: 'button', onclick: () => onlyGroup(page, page.story.lanes) }, 'all'));
  $('lanes').querySelector('ul').replaceChildren(all, ...items);
}

function onlyGroup(page, lanes) {
  const keep = new Set(lanes.map((l) => l.index));
  keep.add(0);
  for (const box of $('lanes').querySelectorAll('input')) {
    box.checked = keep.has(box.lane);
    page.picture.hiddenLanes[box.checked ? 'delete' : 'add'](box.lane);
  }
  page.refilter();
  page.resize();
}

function toggle(page, hidden, what, on) {
  if (on) hidden.delete(what);
  else hidden.add(what);
  page.refilter();
  page.resize();
}
