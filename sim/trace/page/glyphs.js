// SPDX-License-Identifier: Apache-2.0

// What events look like. A mark differs from others by shape and by colour, never by colour alone.

// families are what the list of marks switches on and off, in its order.
export const families = [
  { name: 'Refusals, foreign changes', kinds: ['refused', 'foreign'], shape: 'alarm', colour: 'alarm' },
  { name: 'Faults', kinds: ['fault-began', 'fault-ended', 'calm'], shape: 'band', colour: 'fault' },
  { name: 'Lives and machines', kinds: ['started', 'ended', 'machine-down', 'machine-up', 'wiped'], shape: 'up', colour: 'life' },
  { name: 'Leaders, contact, snapshots', kinds: ['leading', 'contact', 'restored'], shape: 'star', colour: 'leader' },
  { name: 'Applied entries', kinds: ['applied'], shape: 'tick', colour: 'applied' },
  { name: 'Messages', kinds: ['message'], shape: 'arrow', colour: 'message' },
  { name: 'Calls to the API', kinds: ['call-began', 'call-ended'], shape: 'right', colour: 'call' },
  { name: 'Switches', kinds: ['session', 'forwarding'], shape: 'hex', colour: 'switch' },
  { name: 'Nodes', kinds: ['steered', 'acted'], shape: 'square', colour: 'node' },
  { name: 'Balancers and drivers', kinds: ['drive', 'entry'], shape: 'diamond', colour: 'driver' },
  { name: 'Kubernetes', kinds: ['object', 'viewed'], shape: 'ring', colour: 'object' },
  { name: 'Traffic', kinds: ['flow'], shape: 'dot', colour: 'flow' },
  { name: 'Logs', kinds: ['log'], shape: 'small', colour: 'log' },
];

// special kinds look other than their family.
const special = {
  ended: { shape: 'cross', colour: 'death' },
  'machine-down': { shape: 'block', colour: 'death' },
  'machine-up': { shape: 'square', colour: 'life' },
  wiped: { shape: 'cross', colour: 'death' },
  contact: { shape: 'half', colour: 'leader' },
  restored: { shape: 'double', colour: 'applied' },
  'fault-began': { shape: 'down', colour: 'fault' },
  'fault-ended': { shape: 'up', colour: 'fault' },
  calm: { shape: 'ring', colour: 'life' },
  'call-ended': { shape: 'left', colour: 'call' },
  forwarding: { shape: 'right', colour: 'switch' },
  acted: { shape: 'small', colour: 'node' },
  entry: { shape: 'block', colour: 'driver' },
  viewed: { shape: 'half', colour: 'object' },
};

// plenty are the families that a run is full of: from afar they are shown by their density alone.
const plenty = new Set(['Messages', 'Applied entries', 'Logs', 'Traffic', 'Calls to the API', 'Kubernetes', 'Nodes']);

// looks gives for each number of a kind its family, shape and colour.
export function looks(kinds) {
  return kinds.map((kind) => {
    if (!kind) return null;
    let family = families.findIndex((f) => f.kinds.includes(kind.name));
    if (family < 0) family = families.length - 1;
    const { shape, colour, name } = families[family];
    return { family, plenty: plenty.has(name), shape, colour, ...special[kind.name] };
  });
}

const polygons = {
  up: [[0, -5], [5, 4], [-5, 4]],
  down: [[0, 5], [5, -4], [-5, -4]],
  right: [[5, 0], [-4, -5], [-4, 5]],
  left: [[-5, 0], [4, -5], [4, 5]],
  diamond: [[0, -5.5], [5.5, 0], [0, 5.5], [-5.5, 0]],
  hex: [[-5, 0], [-2.5, -4.5], [2.5, -4.5], [5, 0], [2.5, 4.5], [-2.5, 4.5]],
  alarm: [[0, -7], [7, 6], [-7, 6]],
  block: [[-5, -5], [5, -5], [5, 5], [-5, 5]],
  star: [[0, -6.5], [1.8, -2], [6.5, -2], [2.8, 1.2], [4.2, 6], [0, 3], [-4.2, 6], [-2.8, 1.2], [-6.5, -2], [-1.8, -2]],
};

// glyph draws a mark around x, y.
export function glyph(g, shape, colour, x, y, paper) {
  g.fillStyle = g.strokeStyle = colour;
  g.lineWidth = 1.6;
  const points = polygons[shape];
  if (points) {
    g.beginPath();
    for (const [dx, dy] of points) g.lineTo(x + dx, y + dy);
    g.closePath();
    g.fill();
    g.lineWidth = 1;
    g.strokeStyle = paper;
    g.stroke();
    if (shape === 'alarm') {
      g.fillStyle = paper;
      g.fillRect(x - 1, y - 2.5, 2, 4.5);
      g.fillRect(x - 1, y + 3, 2, 1.8);
    }
    return;
  }
  g.beginPath();
  switch (shape) {
    case 'tick': g.fillRect(x - 7, y - 0.75, 14, 1.5); return;
    case 'double': g.fillRect(x - 8, y - 2.5, 16, 1.5); g.fillRect(x - 8, y + 1, 16, 1.5); return;
    case 'cross': g.lineWidth = 2.4; g.moveTo(x - 4.5, y - 4.5); g.lineTo(x + 4.5, y + 4.5); g.moveTo(x + 4.5, y - 4.5); g.lineTo(x - 4.5, y + 4.5); break;
    case 'square': g.rect(x - 4, y - 4, 8, 8); g.fillStyle = paper; g.fill(); break;
    case 'ring': g.arc(x, y, 4, 0, 7); g.fillStyle = paper; g.fill(); break;
    case 'half': g.arc(x, y, 4.5, 0, 7); g.fillStyle = paper; g.fill(); g.stroke(); g.beginPath(); g.arc(x, y, 4.5, 1.57, 4.71); g.fillStyle = colour; g.fill(); return;
    case 'dot': g.arc(x, y, 3.5, 0, 7); g.fill(); return;
    case 'band': g.globalAlpha = 0.45; g.fillRect(x - 8, y - 6, 16, 12); g.globalAlpha = 1; g.fillRect(x - 8, y - 6, 2, 12); return;
    case 'arrow': g.moveTo(x - 8, y - 3); g.lineTo(x + 4, y + 2); g.stroke(); head(g, x + 8, y + 3.6, 16, 6.6, colour); return;
    default: g.arc(x, y, 2.2, 0, 7); g.fill(); return;
  }
  g.stroke();
}

// head is the tip of an arrow that comes along dx, dy.
export function head(g, x, y, dx, dy, colour) {
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / length, dy / length];
  g.fillStyle = colour;
  g.beginPath();
  g.moveTo(x, y);
  g.lineTo(x - 7 * ux + 3 * uy, y - 7 * uy - 3 * ux);
  g.lineTo(x - 7 * ux - 3 * uy, y - 7 * uy + 3 * ux);
  g.fill();
}
