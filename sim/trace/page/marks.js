// SPDX-License-Identifier: Apache-2.0

import { glyph, head } from 'page/glyphs';

// The events of a picture p, one by one where there is room, by their density where there is not.

const arrowsAtMost = 2500; // above it messages are shown by their density
const marksAtMost = 6000;
const row = 2; // pixels of a row of density

export function drawEvents(p, g) {
  const { trace, view, shown, story } = p;
  const first = trace.after(view.top);
  const last = trace.after(view.bottom);
  let marks = 0;
  let messages = 0;
  for (let i = first; i < last; i++) {
    if (shown && !shown[i]) continue;
    if (trace.kind[i] === p.message) messages++;
    else marks++;
  }
  p.dense = messages > arrowsAtMost || marks > marksAtMost;
  if (p.dense) drawDensity(p, g, first, last);
  else drawArrows(p, g, first, last, messages);
  if (messages <= arrowsAtMost) {
    for (const i of story.slow) {
      if ((i < first || i >= last) && trace.sent[i] < view.bottom && story.landed(i) > view.top && (!shown || shown[i])) {
        drawArrow(p, g, i, 0.6, true);
      }
    }
  }
  drawMarks(p, g, first, last);
}

function drawArrows(p, g, first, last, messages) {
  const { trace, view, shown } = p;
  const alpha = Math.max(0.25, Math.min(0.85, 220 / Math.max(messages, 1)));
  const heads = messages < 900;
  const beyond = trace.after(view.bottom + p.story.quick); // on their way at the lower edge
  for (let i = first; i < beyond; i++) {
    if (trace.kind[i] !== p.message || shown && !shown[i] || i >= last && trace.sent[i] > view.bottom) continue;
    drawArrow(p, g, i, alpha, heads);
  }
}

function drawArrow(p, g, i, alpha, heads) {
  const { trace, view, story, colours } = p;
  const [from, to] = [p.x[story.fromLane[i]], p.x[story.lane[i]]];
  if (Number.isNaN(from) || Number.isNaN(to)) return;
  const lost = trace.arrived[i] === 0;
  const y0 = view.y(trace.sent[i]);
  let y1 = view.y(story.landed(i));
  let end = lost ? from + (to - from) * 0.6 : to;
  const colour = lost ? colours.death : colours.ports[story.portOf.get(trace.port[i]) % colours.ports.length];
  g.strokeStyle = colour;
  g.lineWidth = 1.1;
  g.globalAlpha = lost ? 0.9 : alpha;
  g.setLineDash(lost ? [4, 3] : []);
  g.beginPath();
  g.moveTo(from, y0);
  if (from === to) {
    y1 = Math.max(y1, y0 + 5);
    const out = Math.min(p.laneWidth * 0.4, 22);
    g.bezierCurveTo(from + out, y0, from + out, y1, to, y1);
  } else g.lineTo(end, y1);
  g.stroke();
  g.setLineDash([]);
  if (lost) glyph(g, 'cross', colour, end, y1, colours.paper);
  else if (heads) head(g, end, y1, from === to ? -1 : end - from, from === to ? 0 : y1 - y0, colour);
  g.globalAlpha = 1;
  p.hits.push({ x: from, y: y0, x2: from === to ? from + 14 : end, y2: y1, event: i });
}

// drawDensity shows in each lane how much happens at each height.
function drawDensity(p, g, first, last) {
  const { trace, view, story, shown, colours } = p;
  const rows = Math.ceil(view.height / row);
  const lanes = story.lanes.length;
  const counts = new Uint32Array(rows * lanes * 2); // messages; all others that are many
  const perRow = rows / view.span;
  for (let i = first; i < last; i++) {
    if (shown && !shown[i] || !p.looks[trace.kind[i]].plenty) continue;
    const r = Math.min(rows - 1, Math.max(0, Math.floor((trace.at[i] - view.top) * perRow)));
    counts[(r * lanes + story.lane[i]) * 2 + (trace.kind[i] === p.message ? 0 : 1)]++;
  }
  const half = p.laneWidth / 2 - 5;
  const most = counts.reduce((a, b) => Math.max(a, b), 1);
  for (const side of [0, 1]) {
    g.fillStyle = side === 0 ? colours.message : colours.applied;
    g.globalAlpha = 0.62;
    for (let r = 0; r < rows; r++) {
      for (const lane of p.lanes) {
        const n = counts[(r * lanes + lane.index) * 2 + side];
        if (n === 0) continue;
        const w = (0.1 + 0.9 * Math.sqrt(n / most)) * half;
        g.fillRect(side === 0 ? p.x[lane.index] - 2 - w : p.x[lane.index] + 2, r * row, w, row);
      }
    }
  }
  g.globalAlpha = 1;
}

function drawMarks(p, g, first, last) {
  const { trace, view, story, shown, colours } = p;
  const taken = new Map(); // marks that would hide each other are drawn once
  for (let i = first; i < last; i++) {
    const look = p.looks[trace.kind[i]];
    if (trace.kind[i] === p.message || p.dense && look.plenty || shown && !shown[i]) continue;
    const x = p.markX(i);
    if (Number.isNaN(x)) continue;
    const y = view.y(trace.at[i]);
    const key = (Math.round(y) * 512 + story.lane[i]) * 32 + trace.kind[i];
    if (taken.has(key)) { if (taken.get(key) < 40) p.hits.push({ x, y, event: i }); taken.set(key, taken.get(key) + 1); continue; }
    taken.set(key, 1);
    glyph(g, look.shape, colourOf(p, i, look), x, y, colours.paper);
    p.hits.push({ x, y, event: i });
  }
}

function colourOf(p, i, look) {
  const { trace, colours } = p;
  const name = trace.name(i);
  if (name === 'log') return colours[{ ERROR: 'alarm', WARN: 'fault' }[trace.get(i, 'level').value] ?? 'log'];
  if (name === 'flow') return trace.get(i, 'served').raw ? colours.flow : colours.alarm;
  if (name === 'session' && !trace.get(i, 'up').raw) return colours.death;
  return colours[look.colour];
}

export function drawSelection(p, g) {
  if (p.stripe) {
    g.fillStyle = p.colours.shade;
    g.fillRect(0, p.stripe[0], p.total, p.stripe[1] - p.stripe[0]);
  }
  const i = p.selected;
  if (i < 0) return;
  const { trace, story, view, colours } = p;
  const y = view.y(trace.at[i]);
  const x = p.markX(i);
  if (trace.kind[i] === p.message) {
    g.save();
    g.shadowColor = colours.accent;
    g.shadowBlur = 6;
    drawArrow(p, g, i, 1, true);
    drawArrow(p, g, i, 1, true);
    g.restore();
  }
  if (Number.isNaN(x)) return;
  g.strokeStyle = colours.accent;
  g.lineWidth = 2;
  g.beginPath();
  g.arc(x, trace.kind[i] === p.message ? view.y(story.landed(i)) : y, 10, 0, 7);
  g.stroke();
}
