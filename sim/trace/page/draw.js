// SPDX-License-Identifier: Apache-2.0

import { drawFaults, drawGround, drawLabels, drawSpans, drawViolation } from 'page/bands';
import { looks } from 'page/glyphs';
import { drawHead, drawTimes } from 'page/margins';
import { drawEvents, drawSelection } from 'page/marks';
import { faultWidth } from 'page/measure';

const narrowest = 32; // a lane
const headLow = 46; // the names of lanes above both canvases, written across
const headHigh = 94; // and upright, where one of them is too long for its lane

// Picture draws a view of a story on a canvas: only what is in sight, and never more than a few thousand marks.
export class Picture {
  constructor(trace, story, view, canvas, times) {
    Object.assign(this, { trace, story, view, canvas, times });
    this.looks = looks(trace.kinds);
    this.message = trace.kindNumber('message');
    this.shown = null; // by event: 1 when it is to be seen; null means all
    this.hiddenLanes = new Set();
    this.hiddenFamilies = new Set();
    this.selected = -1;
    this.stripe = null; // from and to a height: what is being marked to be zoomed into
    this.hits = [];
    this.width = this.height = 0;
    this.scroll = 0;
  }

  // layout places the lanes that are shown; it gives the width that they need. On paper they have to fit.
  layout(width, paper = false) {
    const lanes = this.story.lanes.filter((l) => !this.hiddenLanes.has(l.index));
    const others = lanes.filter((l) => l.index !== 0).length;
    this.faultWidth = faultWidth(this.story.faultColumns);
    const first = lanes.length > others ? this.faultWidth : 0;
    const each = others === 0 ? 0 : Math.min(140, Math.max(paper ? 1 : narrowest, (width - first - 8) / others));
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
    drawGround(this, g);
    drawFaults(this, g);
    drawSpans(this, g);
    drawEvents(this, g);
    drawLabels(this, g);
    drawViolation(this, g);
    drawSelection(this, g);
    g.restore();
    drawHead(this, g);
    drawTimes(this);
  }

  font(size, weight = 400) { return `${weight} ${size}px ${this.colours.font}`; }

  // markX is where in its lane an event is marked: kinds that come together stand beside each other.
  markX(i) {
    const look = this.looks[this.trace.kind[i]];
    const x = this.x[this.story.lane[i]];
    if (this.story.lane[i] === 0) return x + this.faultWidth / 2 - 10;
    const aside = Math.min(this.laneWidth / 4, 14);
    if (look.shape === 'small' && look.colour === 'log') return x + aside;
    return x;
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
    return this.lanes.find((l) => Math.abs(this.x[l.index] - x) <= (l.index === 0 ? this.faultWidth : this.laneWidth) / 2);
  }
}

// distance of a point from the line of an arrow.
function distance(x, y, { x: x1, y: y1, x2, y2 }) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const along = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x1 + along * dx - x, y1 + along * dy - y);
}
