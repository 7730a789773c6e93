// SPDX-License-Identifier: Apache-2.0

import { faultMarks, fitted, mostColumns } from 'page/measure';

// What lies behind the marks of a picture p: the grid, faults across lanes, lives, terms, outages.

export function drawGround(p, g) {
  const { colours, view } = p;
  for (const lane of p.lanes) {
    if (lane.index !== 0 && lane.group % 2 === 0) {
      g.fillStyle = colours.stripe;
      g.fillRect(p.x[lane.index] - p.laneWidth / 2, 0, p.laneWidth, view.height);
    }
  }
  g.fillStyle = colours.grid;
  for (const t of view.ticks().times) g.fillRect(0, Math.round(view.y(t)), p.total, 1);
  for (const lane of p.lanes.slice(1)) {
    g.fillRect(Math.round(p.x[lane.index]), 0, 1, view.height);
  }
}

export function drawFaults(p, g) {
  const { colours, story, view } = p;
  if (p.hiddenFamilies.has(p.looks[p.trace.kindNumber('fault-began')].family)) return;
  const columns = Math.min(story.faultColumns, mostColumns);
  const wide = (p.faultWidth - 8 - faultMarks) / columns;
  for (const fault of story.faults) {
    if (fault.to < view.top || fault.from > view.bottom) continue;
    const [y0, y1] = stretch(p, fault);
    for (const lane of fault.lanes) {
      const x = p.x[lane] - p.laneWidth / 2;
      g.fillStyle = colours.faultBand;
      g.fillRect(x + 1, y0, p.laneWidth - 2, y1 - y0);
      g.fillStyle = colours.fault;
      g.globalAlpha = 0.5;
      g.fillRect(x + 1, y0, 1.5, y1 - y0);
      g.fillRect(x + p.laneWidth - 2.5, y0, 1.5, y1 - y0);
      g.globalAlpha = 1;
    }
    if (!(p.x[0] >= 0)) continue;
    const x = 4 + Math.min(fault.column, columns - 1) * wide;
    g.fillStyle = colours.faultBand;
    g.fillRect(x, y0, wide - 2, Math.max(y1 - y0, 2));
    g.fillStyle = colours.fault;
    g.fillRect(x, y0, 2.5, Math.max(y1 - y0, 2));
    p.hits.push({ x, y: y0, w: wide - 2, h: Math.max(y1 - y0, 4), event: fault.event, area: true });
    if (wide < upright) along(p, g, fault.label, x, y0, y1, wide - 2);
    else label(p, g, fault.label, x + 6, y0, y1, wide - 10, colours.ink);
  }
}

// stretch is where a span begins and ends in the view.
function stretch(p, span) {
  const { view } = p;
  return [Math.max(view.y(span.from), -4), Math.min(Math.max(view.y(span.to), view.y(span.from) + 1), view.height + 4)];
}

const upright = 40; // pixels of a column that words fit into

// along writes downwards into a narrow band, at the upper end of what is seen of it.
function along(p, g, text, x, y0, y1, wide) {
  const top = Math.max(y0, 0);
  g.save();
  g.translate(x + wide, top);
  g.rotate(Math.PI / 2);
  label(p, g, text, 4, -3, wide - 4, y1 - top - 6, p.colours.ink);
  g.restore();
}

// label writes into a band, wrapped to its width, at the upper end of what is seen of it.
function label(p, g, text, x, y0, y1, width, colour) {
  const top = Math.max(y0, 0);
  let room = Math.floor((y1 - top - 3) / 12);
  if (room < 1 || width < 14) return;
  g.font = p.font(10.5);
  g.fillStyle = colour;
  g.textAlign = 'left';
  g.textBaseline = 'top';
  let y = top + 3;
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && g.measureText(longer).width > width) {
      if (--room < 1) { g.fillText(fitted(g, longer, width), x, y); return; }
      g.fillText(fitted(g, line, width), x, y);
      y += 12;
      line = word;
    } else line = longer;
  }
  g.fillText(fitted(g, line, width), x, y);
}

export function drawSpans(p, g) {
  const { colours, story, view } = p;
  for (const span of story.spans) {
    const x = p.x[span.lane];
    if (span.to < view.top || span.from > view.bottom || Number.isNaN(x)) continue;
    const [y0, y1] = stretch(p, span);
    const half = p.laneWidth / 2 - 3;
    switch (span.type) {
      case 'life':
        g.fillStyle = colours.life;
        g.fillRect(x - 1, y0, 2, y1 - y0);
        break;
      case 'off':
        g.fillStyle = colours.off;
        g.fillRect(x - half, y0, 2 * half, y1 - y0);
        break;
      case 'term':
        g.fillStyle = colours.terms[span.term % colours.terms.length];
        g.globalAlpha = 0.32;
        g.fillRect(x - half, y0, 2 * half, y1 - y0);
        g.globalAlpha = 1;
        g.fillRect(x - half, y0, 2.5, y1 - y0);
        g.fillStyle = colours.life;
        g.fillRect(x - 1, y0, 2, y1 - y0);
        break;
      case 'alone':
        g.fillStyle = colours.fault;
        for (let y = Math.max(y0, 0); y < y1; y += 6) g.fillRect(x + half - 2, y, 2.5, Math.min(3, y1 - y));
        break;
    }
  }
}

// drawLabels writes terms and outages along their bands, over what is drawn there, at the upper end of what is seen.
export function drawLabels(p, g) {
  const { colours, story, view } = p;
  g.font = p.font(10.5, 600);
  for (const span of story.spans) {
    const x = p.x[span.lane];
    if (!['term', 'off', 'alone'].includes(span.type) || span.to < view.top || span.from > view.bottom || Number.isNaN(x)) continue;
    const [y0, y1] = stretch(p, span);
    const top = Math.max(y0, 0) + 9;
    const long = g.measureText(span.label).width;
    if (y1 - top < long + 6) continue;
    const left = span.type === 'alone' ? x + p.laneWidth / 2 - 16 : x - p.laneWidth / 2 + 6;
    g.fillStyle = colours.paper;
    g.globalAlpha = 0.85;
    g.fillRect(left, top, 13, long + 6);
    g.globalAlpha = 1;
    g.save();
    g.translate(left + 7, top + 3);
    g.rotate(Math.PI / 2);
    g.textAlign = 'left';
    g.textBaseline = 'middle';
    g.fillStyle = { term: colours.leader, off: colours.death, alone: colours.fault }[span.type];
    g.fillText(span.label, 0, 0);
    g.restore();
  }
}

export function drawViolation(p, g) {
  const broken = p.trace.head.about.violation;
  if (!broken) return;
  const y = Math.round(p.view.y(broken.at));
  g.fillStyle = p.colours.alarm;
  g.fillRect(0, y - 1, p.total, 2);
}
