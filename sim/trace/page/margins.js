// SPDX-License-Identifier: Apache-2.0

import { fitted } from 'page/measure';
import { timeLabel } from 'page/view';

// The margins of a picture p: names of lanes above, times at the left.

export function drawHead(p, g) {
  const { colours } = p;
  g.fillStyle = colours.panel;
  g.fillRect(0, 0, p.width, p.head);
  g.fillStyle = colours.line;
  g.fillRect(0, p.head - 1, p.width, 1);
  g.save();
  g.translate(-p.scroll, 0);
  drawGroups(p, g);
  g.fillStyle = colours.ink;
  g.textBaseline = 'alphabetic';
  for (const lane of p.lanes) {
    const x = p.x[lane.index];
    const width = lane.index === 0 ? p.faultWidth : p.laneWidth;
    if (lane.index === 0) continue;
    g.font = p.font(11.5, 500);
    if (g.measureText(lane.name).width <= width - 6) {
      g.textAlign = 'center';
      g.fillText(lane.name, x, p.head - 9);
      continue;
    }
    g.save();
    g.translate(x + 4, p.head - 6);
    g.rotate(-Math.PI / 2);
    g.textAlign = 'left';
    g.fillText(fitted(g, lane.name, p.head - 26), 0, 0);
    g.restore();
  }
  g.restore();
}

// drawGroups writes what the lanes below are.
function drawGroups(p, g) {
  const { colours } = p;
  g.font = p.font(10.5);
  g.textBaseline = 'top';
  for (let i = 0; i < p.lanes.length;) {
    let j = i;
    while (j < p.lanes.length && p.lanes[j].group === p.lanes[i].group) j++;
    const half = (lane) => (lane.index === 0 ? p.faultWidth : p.laneWidth) / 2;
    const left = p.x[p.lanes[i].index] - half(p.lanes[i]);
    const right = p.x[p.lanes[j - 1].index] + half(p.lanes[j - 1]);
    g.fillStyle = colours.line;
    g.fillRect(left + 3, 17, right - left - 6, 1);
    g.fillStyle = colours.soft;
    const name = p.lanes[i].groupName;
    const alone = j === i + 1 && p.lanes[i].index !== 0;
    if (!(alone && name === p.lanes[i].name)) {
      g.textAlign = 'center';
      g.fillText(fitted(g, name, right - left - 2), (left + right) / 2, 4);
    }
    i = j;
  }
}

export function drawTimes(p) {
  const g = p.times.getContext('2d');
  const { colours, view, timesWidth } = p;
  g.setTransform(p.scale, 0, 0, p.scale, 0, 0);
  g.fillStyle = colours.panel;
  g.fillRect(0, 0, timesWidth, p.height);
  g.fillStyle = colours.line;
  g.fillRect(timesWidth - 1, 0, 1, p.height);
  g.fillRect(0, p.head - 1, timesWidth, 1);
  g.font = p.font(11);
  g.textAlign = 'right';
  g.textBaseline = 'middle';
  const { step, times } = view.ticks();
  const broken = p.trace.head.about.violation;
  const flag = broken ? p.head + view.y(broken.at) : NaN;
  g.fillStyle = colours.soft;
  for (const t of times) {
    const y = p.head + view.y(t);
    if (y < p.head + 4 || Math.abs(y - flag) < 16) continue;
    g.fillText(timeLabel(t, step), timesWidth - 8, y);
  }
  if (flag > p.head - 1 && flag < p.height + 1) {
    const y = Math.min(Math.max(flag, p.head + 10), p.height - 10);
    g.fillStyle = colours.alarm;
    g.fillRect(4, y - 9, timesWidth - 4, 18);
    g.fillStyle = colours.onAlarm;
    g.font = p.font(11, 700);
    g.fillText(fitted(g, `${broken.rule} broken`, timesWidth - 14), timesWidth - 8, y + 0.5);
  }
}
