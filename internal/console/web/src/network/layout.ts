// Where things stand on the map: tiers are columns, datacenters are frames in them. Only
// names decide, never figures, so that nothing jumps while it lives.
import {order} from "../lib/format";
import {inUse, linkLevel, nodeLevel} from "../lib/health";
import {severity, worst, type Level} from "../lib/level";
import type {LinkRow, Network, NodeRow} from "../lib/model";
import {roles} from "../lib/words";

export interface Box {
  key: string; // of a node its id; of several dc:ROLE/NAME
  frame: string;
  column: number;
  nodes: NodeRow[];
  level: Level;
  x: number;
  y: number;
}

export interface Frame {
  key: string; // ROLE/NAME
  column: number;
  name: string;
  region: string;
  x: number;
  y: number;
  height: number;
  folded: boolean;
  many: boolean; // it has so many nodes that it can be folded
}

export interface Wire {
  key: string;
  links: LinkRow[]; // the worst first
  level: Level;
  standby: boolean;
  from: string; // keys of boxes
  to: string;
  rate: number;
  path: string;
  point: (t: number) => [x: number, y: number]; // t goes from 0 to 1
  label: number; // where on the way its figure stands best
}

export interface Plot {
  width: number;
  height: number;
  frameWidth: number;
  boxWidth: number;
  boxHeight: number;
  compact: boolean;
  columns: {x: number; role: string; nodes: number}[];
  boxes: Box[];
  frames: Frame[];
  wires: Wire[];
}

const gapBox = 6;
const gapFrame = 12;
const top = 30; // for the names of the tiers
const foldFrom = 2; // nodes in a frame
const foldAll = 60; // nodes on the map

export function plot(n: Network, width: number, open: ReadonlySet<string>): Plot {
  const compact = width < 620;
  const frameHead = compact ? 17 : 20;
  const boxHeight = compact ? 40 : 46;
  const pad = compact ? 3 : 6; // between a frame and its boxes
  const side = compact ? 12 : 26; // at the right, for links within the last tier
  const frameWidth = compact ? (width - side - 2 * 20) / 3 : Math.min(250, (width - side - 2 * 110) / 3);
  const gap = (width - side - 3 * frameWidth) / 2;
  const boxWidth = frameWidth - 2 * pad;

  const fold = n.nodes.length > foldAll;
  const boxes: Box[] = [];
  const frames: Frame[] = [];
  const at = new Map<string, Box>();
  const heights: number[] = [];
  roles.forEach((role, column) => {
    const x = column * (frameWidth + gap);
    let y = top;
    for (const [dc, nodes] of groups(n.nodes, role)) {
      const key = `${role}/${dc}`;
      const foldable = fold && nodes.length >= foldFrom;
      const folded = foldable && !open.has(key);
      const rows = folded ? [nodes] : nodes.map((node) => [node]);
      const f: Frame = {key, column, name: dc, region: nodes[0]!.region, x, y, height: frameHead + rows.length * (boxHeight + gapBox) - gapBox + 2 * pad, folded, many: foldable};
      rows.forEach((row, i) => {
        const box: Box = {
          key: folded ? "dc:" + key : row[0]!.id,
          frame: key,
          column,
          nodes: row,
          level: worst(row.map(nodeLevel)),
          x: x + pad,
          y: y + frameHead + pad + i * (boxHeight + gapBox),
        };
        boxes.push(box);
        for (const node of row) at.set(node.id, box);
      });
      frames.push(f);
      y += f.height + gapFrame;
    }
    heights.push(y - gapFrame);
  });

  // Shorter columns are spread over the height of the longest.
  const height = Math.max(...heights, top + 120);
  const seen = [0, 0, 0];
  const step = roles.map((_, i) => (height - heights[i]!) / (frames.filter((f) => f.column === i).length + 1));
  for (const f of frames) {
    const down = step[f.column]! * ++seen[f.column]!;
    f.y += down;
    for (const b of boxes) if (b.frame === f.key) b.y += down;
  }

  const columns = roles.map((role, i) => ({x: i * (frameWidth + gap), role, nodes: n.nodes.filter((x) => x.role === role).length}));
  return {width, height, frameWidth, boxWidth, boxHeight, compact, columns, boxes, frames, wires: wires(n.links, at, boxWidth, boxHeight, compact)};
}

// groups returns the nodes of a role by datacenter, in the order of names.
function groups(nodes: NodeRow[], role: string): [string, NodeRow[]][] {
  const by = new Map<string, NodeRow[]>();
  for (const n of nodes) {
    if (n.role !== role) continue;
    const list = by.get(n.datacenter);
    if (list) list.push(n);
    else by.set(n.datacenter, [n]);
  }
  for (const list of by.values()) list.sort((a, b) => order(a.id, b.id));
  return [...by].sort((a, b) => order(a[1][0]!.region + "\0" + a[0], b[1][0]!.region + "\0" + b[0]));
}

function wires(links: LinkRow[], at: Map<string, Box>, width: number, height: number, compact: boolean): Wire[] {
  const by = new Map<string, Wire>();
  for (const l of links) {
    const [from, to] = [at.get(l.from), at.get(l.to)];
    if (!from || !to || from === to) continue;
    const standby = !inUse(l);
    const key = `${from.key}>${to.key}` + (standby ? "?" : "");
    const w = by.get(key);
    if (w) {
      w.links.push(l);
      w.rate += l.rate;
    } else by.set(key, {key, links: [l], level: "off", standby, from: from.key, to: to.key, rate: l.rate, path: "", point: () => [0, 0], label: 0.5});
  }
  const find = new Map([...at.values()].map((b) => [b.key, b]));
  for (const w of by.values()) {
    w.links.sort((a, b) => severity(linkLevel(b)) - severity(linkLevel(a)) || b.rate - a.rate);
    w.level = w.standby ? "off" : worst(w.links.map(linkLevel));
    Object.assign(w, curve(find.get(w.from)!, find.get(w.to)!, width, height, compact));
  }
  // What is worst lies on top.
  return [...by.values()].sort((a, b) => Number(b.standby) - Number(a.standby) || severity(a.level) - severity(b.level));
}

type Curve = Pick<Wire, "path" | "point" | "label">;

function curve(from: Box, to: Box, width: number, height: number, compact: boolean): Curve {
  const [y1, y2] = [from.y + height / 2, to.y + height / 2];
  if (from.column === to.column) {
    const x = from.x + width;
    const out = x + (compact ? 14 : 30);
    return bezier(x, out, out, x, y1, y2, 0.5);
  }
  const right = to.column > from.column;
  const x1 = right ? from.x + width : from.x;
  const x2 = right ? to.x : to.x + width;
  const bend = Math.max(Math.abs(x2 - x1) * 0.45, 16) * (right ? 1 : -1);
  // A long way is labelled before it passes behind the tier between.
  return bezier(x1, x1 + bend, x2 - bend, x2, y1, y2, Math.abs(to.column - from.column) > 1 ? 0.14 : 0.5);
}

// bezier is a cubic curve that leaves and arrives level.
function bezier(xa: number, xb: number, xc: number, xd: number, ya: number, yd: number, label: number): Curve {
  const mix = (t: number, a: number, b: number, c: number, d: number) => (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t ** 2 * c + t ** 3 * d;
  return {path: `M${xa} ${ya}C${xb} ${ya} ${xc} ${yd} ${xd} ${yd}`, point: (t) => [mix(t, xa, xb, xc, xd), mix(t, ya, ya, yd, yd)], label};
}

interface Label {
  wire: Wire;
  x: number;
  y: number;
}

const tries = [0, -0.12, 0.12, -0.22, 0.22, -0.3, 0.3]; // along the way, beside the best place
const mostLabels = 60;

// labels finds places for the figures of wires where none hides another, the worst first.
export function labels(wires: Wire[], p: Plot): Label[] {
  const [w, h] = p.compact ? [48, 16] : [78, 20];
  const out: Label[] = [];
  const free = ([x, y]: [number, number]) => out.every((l) => Math.abs(l.x - x) > w || Math.abs(l.y - y) > h);
  const order = [...wires].sort((a, b) => severity(b.level) - severity(a.level));
  for (const wire of order.slice(0, mostLabels)) {
    const at = tries.map((d) => wire.point(Math.min(0.9, Math.max(0.1, wire.label + d))));
    const [x, y] = at.find(free) ?? at[0]!;
    out.push({wire, x: Math.min(x, p.width - w / 2 + 6), y});
  }
  return out;
}
