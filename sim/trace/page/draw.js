// SPDX-License-Identifier: Apache-2.0

import { glyph, head, looks } from 'page/glyphs';
import { timeLabel } from 'page/view';

const narrowest = 32; // a lane
const headLow = 46; // the names of lanes above both canvases, written across
const headHigh = 94; // and upright, where one of them is too long for its lane
const faultWidth = 120; // the lane of faults
const arrowsAtMost = 2500; // above it messages are shown by their density
const marksAtMost = 6000;
const row = 2; // pixels of a row of density

// Picture draws a view of a story on a canvas: only what is in sight, and never more than a few thousand marks.
export class Picture {
  constructor(trace, story, view, canvas, times) {
    Object.assign(this, { trace, story, view, canvas, times });
    this.looks = looks(trace.kinds);
    this.message = trace.kindNumber('message');
    this.shown = null; // by event: 1 when it is to be seen; null means all
    this.hiddenLanes = new Set();
    this.selected = -1;
    this.hits = [];
    this.width = this.height = 0;
    this.scroll = 0;
  }

  // layout places the lanes that are shown; it gives the width that they need.
  layout(width) {
    const lanes = this.story.lanes.filter((l) => !this.hiddenLanes.has(l.index));
    const others = lanes.filter((l) => l.index !== 0).length;
    const first = lanes.length > others ? faultWidth : 0;
    const each = others === 0 ? 0 : Math.min(140, Math.max(narrowest, (width - first - 8) / others));
    this.x = new Float64Array(this.story.lanes.length).fill(NaN);
    this.laneWidth = each;
    let x = 0;
    for (const lane of lanes) {
      const w = lane.index === 0 ? first : each;
      this.x[lane.index] = x + w / 2;
      x += w;
    }
    this.lanes = lanes;
    const g = this.canvas.getContext('2d');
    g.font = this.font(11.5, 500);
    this.upright = lanes.some((l) => l.index !== 0 && g.measureText(l.name).width > each - 6);
    this.head = this.upright ? headHigh : headLow;
    this.total = Math.max(x, 1);
    return this.total;
  }

  resize(width, height, timesWidth, scale) {
    Object.assign(this, { width, height, timesWidth, scale });
    for (const [canvas, w] of [[this.canvas, width], [this.times, timesWidth]]) {
      canvas.width = Math.round(w * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = `${w}px`;
      canvas.style.height = `${height}px`;
    }
    this.view.height = Math.max(height - this.head, 1);
  }

  draw() {
    const g = this.canvas.getContext('2d');
    const { colours } = this;
    this.hits = [];
    g.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    g.fillStyle = colours.paper;
    g.fillRect(0, 0, this.width, this.height);
    g.save();
    g.beginPath();
    g.rect(0, this.head, this.width, this.height - this.head);
    g.clip();
    g.translate(-this.scroll, this.head);
    this.drawGround(g);
    this.drawFaults(g);
    this.drawSpans(g);
    this.drawEvents(g);
    this.drawLabels(g);
    this.drawViolation(g);
    this.drawSelection(g);
    g.restore();
    this.drawHead(g);
    this.drawTimes();
  }

  drawGround(g) {
    const { colours, view } = this;
    for (const lane of this.lanes) {
      if (lane.index !== 0 && lane.group % 2 === 0) {
        g.fillStyle = colours.stripe;
        g.fillRect(this.x[lane.index] - this.laneWidth / 2, 0, this.laneWidth, view.height);
      }
    }
    g.fillStyle = colours.grid;
    for (const t of view.ticks().times) g.fillRect(0, Math.round(view.y(t)), this.total, 1);
    for (const lane of this.lanes.slice(1)) {
      g.fillRect(Math.round(this.x[lane.index]), 0, 1, view.height);
    }
  }

  drawFaults(g) {
    const { colours, story, view } = this;
    const columns = Math.min(story.faultColumns, 6);
    const wide = (faultWidth - 8) / columns;
    for (const fault of story.faults) {
      if (fault.to < view.top || fault.from > view.bottom) continue;
      const [y0, y1] = this.stretch(fault);
      for (const lane of fault.lanes) {
        const x = this.x[lane] - this.laneWidth / 2;
        g.fillStyle = colours.faultBand;
        g.fillRect(x + 1, y0, this.laneWidth - 2, y1 - y0);
        g.fillStyle = colours.fault;
        g.globalAlpha = 0.5;
        g.fillRect(x + 1, y0, 1.5, y1 - y0);
        g.fillRect(x + this.laneWidth - 2.5, y0, 1.5, y1 - y0);
        g.globalAlpha = 1;
      }
      if (!(this.x[0] >= 0)) continue;
      const x = 4 + Math.min(fault.column, columns - 1) * wide;
      g.fillStyle = colours.faultBand;
      g.fillRect(x, y0, wide - 2, Math.max(y1 - y0, 2));
      g.fillStyle = colours.fault;
      g.fillRect(x, y0, 2.5, Math.max(y1 - y0, 2));
      this.hits.push({ x, y: y0, w: wide - 2, h: Math.max(y1 - y0, 4), event: fault.event, area: true });
      this.label(g, fault.label, x + 6, y0, y1, wide - 10, colours.ink);
    }
  }

  // stretch is where a span begins and ends in the view.
  stretch(span) {
    const { view } = this;
    return [Math.max(view.y(span.from), -4), Math.min(Math.max(view.y(span.to), view.y(span.from) + 1), view.height + 4)];
  }

  // label writes into a band, wrapped to its width, at the upper end of what is seen of it.
  label(g, text, x, y0, y1, width, colour) {
    const top = Math.max(y0, 0);
    let room = Math.floor((y1 - top - 3) / 12);
    if (room < 1 || width < 14) return;
    g.font = this.font(10.5);
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

  font(size, weight = 400) { return `${weight} ${size}px ${this.colours.font}`; }

  drawSpans(g) {
    const { colours, story, view } = this;
    for (const span of story.spans) {
      const x = this.x[span.lane];
      if (span.to < view.top || span.from > view.bottom || Number.isNaN(x)) continue;
      const [y0, y1] = this.stretch(span);
      const half = this.laneWidth / 2 - 3;
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
  drawLabels(g) {
    const { colours, story, view } = this;
    g.font = this.font(10.5, 600);
    for (const span of story.spans) {
      const x = this.x[span.lane];
      if (span.type !== 'term' && span.type !== 'off' || span.to < view.top || span.from > view.bottom || Number.isNaN(x)) continue;
      const [y0, y1] = this.stretch(span);
      const top = Math.max(y0, 0) + 9;
      const long = g.measureText(span.label).width;
      if (y1 - top < long + 6) continue;
      const left = x - this.laneWidth / 2 + 6;
      g.fillStyle = colours.paper;
      g.globalAlpha = 0.85;
      g.fillRect(left, top, 13, long + 6);
      g.globalAlpha = 1;
      g.save();
      g.translate(left + 7, top + 3);
      g.rotate(Math.PI / 2);
      g.textAlign = 'left';
      g.textBaseline = 'middle';
      g.fillStyle = span.type === 'term' ? colours.leader : colours.death;
      g.fillText(span.label, 0, 0);
      g.restore();
    }
  }

  drawEvents(g) {
    const { trace, view, shown, story } = this;
    const first = trace.after(view.top);
    const last = trace.after(view.bottom);
    let marks = 0;
    let messages = 0;
    for (let i = first; i < last; i++) {
      if (shown && !shown[i]) continue;
      if (trace.kind[i] === this.message) messages++;
      else marks++;
    }
    this.dense = messages > arrowsAtMost || marks > marksAtMost;
    if (this.dense) this.drawDensity(g, first, last);
    else this.drawArrows(g, first, last, messages);
    if (messages <= arrowsAtMost) {
      for (const i of story.slow) {
        if ((i < first || i >= last) && trace.sent[i] < view.bottom && story.landed(i) > view.top && (!shown || shown[i])) {
          this.drawArrow(g, i, 0.6, true);
        }
      }
    }
    this.drawMarks(g, first, last);
  }

  drawArrows(g, first, last, messages) {
    const { trace, view, shown } = this;
    const alpha = Math.max(0.25, Math.min(0.85, 220 / Math.max(messages, 1)));
    const heads = messages < 900;
    const beyond = trace.after(view.bottom + this.story.quick); // on their way at the lower edge
    for (let i = first; i < beyond; i++) {
      if (trace.kind[i] !== this.message || shown && !shown[i] || i >= last && trace.sent[i] > view.bottom) continue;
      this.drawArrow(g, i, alpha, heads);
    }
  }

  drawArrow(g, i, alpha, heads) {
    const { trace, view, story, colours } = this;
    const [from, to] = [this.x[story.fromLane[i]], this.x[story.lane[i]]];
    if (Number.isNaN(from) || Number.isNaN(to)) return;
    const lost = trace.arrived[i] === 0;
    const y0 = view.y(trace.sent[i]);
    let y1 = view.y(story.landed(i));
    let end = lost ? from + (to - from) * 0.6 : to;
    const colour = lost ? colours.death : colours.message;
    g.strokeStyle = colour;
    g.lineWidth = 1.1;
    g.globalAlpha = lost ? 0.9 : alpha;
    g.setLineDash(lost ? [4, 3] : []);
    g.beginPath();
    g.moveTo(from, y0);
    if (from === to) {
      y1 = Math.max(y1, y0 + 5);
      const out = Math.min(this.laneWidth * 0.4, 22);
      g.bezierCurveTo(from + out, y0, from + out, y1, to, y1);
    } else g.lineTo(end, y1);
    g.stroke();
    g.setLineDash([]);
    if (lost) glyph(g, 'cross', colour, end, y1, colours.paper);
    else if (heads) head(g, end, y1, from === to ? -1 : end - from, from === to ? 0 : y1 - y0, colour);
    g.globalAlpha = 1;
    this.hits.push({ x: from, y: y0, x2: from === to ? from + 14 : end, y2: y1, event: i });
  }

  // drawDensity shows in each lane how much happens at each height.
  drawDensity(g, first, last) {
    const { trace, view, story, shown, colours } = this;
    const rows = Math.ceil(view.height / row);
    const lanes = story.lanes.length;
    const counts = new Uint32Array(rows * lanes * 2); // messages; all others that are many
    const perRow = rows / view.span;
    for (let i = first; i < last; i++) {
      if (shown && !shown[i] || !this.looks[trace.kind[i]].plenty) continue;
      const r = Math.min(rows - 1, Math.max(0, Math.floor((trace.at[i] - view.top) * perRow)));
      counts[(r * lanes + story.lane[i]) * 2 + (trace.kind[i] === this.message ? 0 : 1)]++;
    }
    const half = this.laneWidth / 2 - 5;
    const most = counts.reduce((a, b) => Math.max(a, b), 1);
    for (const side of [0, 1]) {
      g.fillStyle = side === 0 ? colours.message : colours.applied;
      g.globalAlpha = 0.62;
      for (let r = 0; r < rows; r++) {
        for (const lane of this.lanes) {
          const n = counts[(r * lanes + lane.index) * 2 + side];
          if (n === 0) continue;
          const w = (0.1 + 0.9 * Math.sqrt(n / most)) * half;
          g.fillRect(side === 0 ? this.x[lane.index] - 2 - w : this.x[lane.index] + 2, r * row, w, row);
        }
      }
    }
    g.globalAlpha = 1;
  }

  drawMarks(g, first, last) {
    const { trace, view, story, shown, colours } = this;
    const taken = new Map(); // marks that would hide each other are drawn once
    for (let i = first; i < last; i++) {
      const look = this.looks[trace.kind[i]];
      if (trace.kind[i] === this.message || this.dense && look.plenty || shown && !shown[i]) continue;
      const x = this.markX(i);
      if (Number.isNaN(x)) continue;
      const y = view.y(trace.at[i]);
      const key = (Math.round(y) * 512 + story.lane[i]) * 32 + trace.kind[i];
      if (taken.has(key)) { if (taken.get(key) < 40) this.hits.push({ x, y, event: i }); taken.set(key, taken.get(key) + 1); continue; }
      taken.set(key, 1);
      glyph(g, look.shape, this.colourOf(i, look), x, y, colours.paper);
      this.hits.push({ x, y, event: i });
    }
  }

  // markX is where in its lane an event is marked: kinds that come together stand beside each other.
  markX(i) {
    const look = this.looks[this.trace.kind[i]];
    const x = this.x[this.story.lane[i]];
    if (this.story.lane[i] === 0) return x + faultWidth / 2 - 10;
    const aside = Math.min(this.laneWidth / 4, 14);
    if (look.shape === 'small' && look.colour === 'log') return x + aside;
    return x;
  }

  colourOf(i, look) {
    const { trace, colours } = this;
    const name = trace.name(i);
    if (name === 'log') return colours[{ ERROR: 'alarm', WARN: 'fault' }[trace.get(i, 'level').value] ?? 'log'];
    if (name === 'flow') return trace.get(i, 'served').raw ? colours.flow : colours.alarm;
    if (name === 'session' && !trace.get(i, 'up').raw) return colours.death;
    return colours[look.colour];
  }

  drawViolation(g) {
    const broken = this.trace.head.about.violation;
    if (!broken) return;
    const y = Math.round(this.view.y(broken.at));
    g.fillStyle = this.colours.alarm;
    g.fillRect(0, y - 1, this.total, 2);
  }

  drawSelection(g) {
    const i = this.selected;
    if (i < 0) return;
    const { trace, story, view, colours } = this;
    const y = view.y(trace.at[i]);
    const x = this.markX(i);
    if (trace.kind[i] === this.message) {
      g.save();
      g.shadowColor = colours.accent;
      g.shadowBlur = 6;
      this.drawArrow(g, i, 1, true);
      this.drawArrow(g, i, 1, true);
      g.restore();
    }
    if (Number.isNaN(x)) return;
    g.strokeStyle = colours.accent;
    g.lineWidth = 2;
    g.beginPath();
    g.arc(x, trace.kind[i] === this.message ? view.y(story.landed(i)) : y, 10, 0, 7);
    g.stroke();
  }

  drawHead(g) {
    const { colours } = this;
    g.fillStyle = colours.panel;
    g.fillRect(0, 0, this.width, this.head);
    g.fillStyle = colours.line;
    g.fillRect(0, this.head - 1, this.width, 1);
    g.save();
    g.translate(-this.scroll, 0);
    this.drawGroups(g);
    g.fillStyle = colours.ink;
    g.textBaseline = 'alphabetic';
    for (const lane of this.lanes) {
      const x = this.x[lane.index];
      const width = lane.index === 0 ? faultWidth : this.laneWidth;
      if (lane.index === 0) continue;
      g.font = this.font(11.5, 500);
      if (g.measureText(lane.name).width <= width - 6) {
        g.textAlign = 'center';
        g.fillText(lane.name, x, this.head - 9);
        continue;
      }
      g.save();
      g.translate(x + 4, this.head - 6);
      g.rotate(-Math.PI / 2);
      g.textAlign = 'left';
      g.fillText(fitted(g, lane.name, this.head - 26), 0, 0);
      g.restore();
    }
    g.restore();
  }

  // drawGroups writes what the lanes below are.
  drawGroups(g) {
    const { colours } = this;
    g.font = this.font(10.5);
    g.textBaseline = 'top';
    for (let i = 0; i < this.lanes.length;) {
      let j = i;
      while (j < this.lanes.length && this.lanes[j].group === this.lanes[i].group) j++;
      const half = (lane) => (lane.index === 0 ? faultWidth : this.laneWidth) / 2;
      const left = this.x[this.lanes[i].index] - half(this.lanes[i]);
      const right = this.x[this.lanes[j - 1].index] + half(this.lanes[j - 1]);
      g.fillStyle = colours.line;
      g.fillRect(left + 3, 17, right - left - 6, 1);
      g.fillStyle = colours.soft;
      const name = this.lanes[i].groupName;
      const alone = j === i + 1 && this.lanes[i].index !== 0;
      if (!(alone && name === this.lanes[i].name)) {
        g.textAlign = 'center';
        g.fillText(fitted(g, name, right - left - 2), (left + right) / 2, 4);
      }
      i = j;
    }
  }

  drawTimes() {
    const g = this.times.getContext('2d');
    const { colours, view, timesWidth } = this;
    g.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    g.fillStyle = colours.panel;
    g.fillRect(0, 0, timesWidth, this.height);
    g.fillStyle = colours.line;
    g.fillRect(timesWidth - 1, 0, 1, this.height);
    g.fillRect(0, this.head - 1, timesWidth, 1);
    g.font = this.font(11);
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    const { step, times } = view.ticks();
    const broken = this.trace.head.about.violation;
    const flag = broken ? this.head + view.y(broken.at) : NaN;
    g.fillStyle = colours.soft;
    for (const t of times) {
      const y = this.head + view.y(t);
      if (y < this.head + 4 || Math.abs(y - flag) < 16) continue;
      g.fillText(timeLabel(t, step), timesWidth - 8, y);
    }
    if (flag > this.head - 1 && flag < this.height + 1) {
      const y = Math.min(Math.max(flag, this.head + 10), this.height - 10);
      g.fillStyle = colours.alarm;
      g.fillRect(4, y - 9, timesWidth - 4, 18);
      g.fillStyle = colours.onAlarm;
      g.font = this.font(11, 700);
      g.fillText(fitted(g, `${broken.rule} broken`, timesWidth - 14), timesWidth - 8, y + 0.5);
    }
  }

  // near lists events that are drawn near a place of the canvas, nearest first.
  near(px, py, reach = 7) {
    const [x, y] = [px + this.scroll, py - this.head];
    if (y < 0) return [];
    const found = [];
    for (const hit of this.hits) {
      let away;
      if (hit.area) away = x >= hit.x && x <= hit.x + hit.w && y >= hit.y && y <= hit.y + hit.h ? reach : Infinity;
      else if (hit.x2 === undefined) away = Math.hypot(hit.x - x, hit.y - y) - 2;
      else away = distance(x, y, hit);
      if (away <= reach) found.push({ away, event: hit.event });
    }
    found.sort((a, b) => a.away - b.away || a.event - b.event);
    return [...new Set(found.map((f) => f.event))];
  }

  // laneAt is the lane at a place of the canvas.
  laneAt(px) {
    const x = px + this.scroll;
    return this.lanes.find((l) => Math.abs(this.x[l.index] - x) <= (l.index === 0 ? faultWidth : this.laneWidth) / 2);
  }
}

// distance of a point from the line of an arrow.
function distance(x, y, { x: x1, y: y1, x2, y2 }) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const along = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x1 + along * dx - x, y1 + along * dy - y);
}

// fitted cuts a text to a width.
function fitted(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  let n = text.length;
  while (n > 1 && g.measureText(`${text.slice(0, n)}…`).width > width) n--;
  return `${text.slice(0, n)}…`;
}
