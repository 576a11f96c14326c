// What an operator is about to change. It is kept as steps, not as the document that they
// lead to: so it can be put on a newer version if somebody else was faster.
import {rate} from "../lib/format";
import type {By, Edits} from "../lib/plan-model";
import {Value} from "../lib/store";

type Step =
  | {kind: "pin"; node: string; stream?: string; upstreams: string[]}
  | {kind: "unpin"; node: string; stream?: string}
  | {kind: "ban"; from: string; to: string}
  | {kind: "unban"; from: string; to: string}
  | {kind: "weight"; from: string; to: string; weight?: number} // without: as it was
  | {kind: "price"; node: string; price?: number}
  | {kind: "capacity"; node: string; capacity?: number}
  | {kind: "drain"; node: string}
  | {kind: "undrain"; node: string}
  | {kind: "freeze"}
  | {kind: "unfreeze"};

const kept = "draft of the plan";

function load(): Step[] {
  try {
    const steps: unknown = JSON.parse(sessionStorage.getItem(kept) ?? "[]");
    return Array.isArray(steps) ? (steps as Step[]) : [];
  } catch {
    return [];
  }
}

export const draft = new Value<Step[]>(load());

draft.subscribe((steps) => sessionStorage.setItem(kept, JSON.stringify(steps)));

// about says what a step is about: a later one about the same thing takes its place.
function about(s: Step): string {
  switch (s.kind) {
    case "pin":
    case "unpin":
      return `pin ${s.node} ${s.stream ?? ""}`;
    case "ban":
    case "unban":
      return `ban ${s.from} ${s.to}`;
    case "weight":
      return `weight ${s.from} ${s.to}`;
    case "price":
    case "capacity":
      return `${s.kind} ${s.node}`;
    case "drain":
    case "undrain":
      return `drain ${s.node}`;
    default:
      return "freeze";
  }
}

// add drafts a step. One that leads back to what holds is no change, and only takes the
// other away.
export function add(s: Step, base: Edits): void {
  const others = draft.get().filter((x) => about(x) !== about(s));
  const same = JSON.stringify(bare(apply([s], base))) === JSON.stringify(bare(base));
  draft.set(same ? others : [...others, s]);
}

export const remove = (s: Step): void => draft.set(draft.get().filter((x) => x !== s));

export const clear = (): void => draft.set([]);

// apply returns what e becomes by the steps. What is new is signed with by.
export function apply(steps: Step[], e: Edits, by: By = {}): Edits {
  const out = structuredClone(e);
  for (const s of steps) {
    switch (s.kind) {
      case "pin":
      case "unpin":
        out.pins = (out.pins ?? []).filter((p) => !(p.node === s.node && (p.stream ?? "") === (s.stream ?? "")));
        if (s.kind === "pin") out.pins.push({node: s.node, ...(s.stream ? {stream: s.stream} : {}), upstreams: s.upstreams, ...by});
        break;
      case "ban":
      case "unban":
        out.bans = (out.bans ?? []).filter((b) => !(b.from === s.from && b.to === s.to));
        if (s.kind === "ban") out.bans.push({from: s.from, to: s.to, ...by});
        break;
      case "weight":
        out.weights = (out.weights ?? []).filter((w) => !(w.from === s.from && w.to === s.to));
        if (s.weight !== undefined) out.weights.push({from: s.from, to: s.to, weight: s.weight, ...by});
        break;
      case "price":
        out.prices = (out.prices ?? []).filter((p) => p.node !== s.node);
        if (s.price !== undefined) out.prices.push({node: s.node, price: s.price, ...by});
        break;
      case "capacity":
        out.capacities = (out.capacities ?? []).filter((c) => c.node !== s.node);
        if (s.capacity !== undefined) out.capacities.push({node: s.node, capacity: s.capacity, ...by});
        break;
      case "drain":
      case "undrain":
        out.drains = (out.drains ?? []).filter((d) => d.node !== s.node);
        if (s.kind === "drain") out.drains.push({node: s.node, ...by});
        break;
      case "freeze":
        out.frozen = {...by};
        break;
      case "unfreeze":
        delete out.frozen;
    }
  }
  return out;
}

// bare leaves out empty lists and signatures, to compare what holds.
function bare(e: Edits): unknown {
  const unsigned = ({author: _a, comment: _c, at: _t, until: _u, ...rest}: Record<string, unknown>) => rest;
  return Object.entries(e)
    .filter(([, v]) => (Array.isArray(v) ? v.length : v !== undefined && v !== null))
    .map(([key, v]) => [key, Array.isArray(v) ? v.map((x) => JSON.stringify(unsigned(x as Record<string, unknown>))).sort() : "set"])
    .sort();
}

export function sayStep(s: Step): string {
  switch (s.kind) {
    case "pin":
      return `Pin ${s.node} to ${s.upstreams.join(", then ")}${s.stream ? ` for ${s.stream}` : ""}`;
    case "unpin":
      return `Unpin ${s.node}${s.stream ? ` for ${s.stream}` : ""}`;
    case "ban":
      return `Ban ${s.from} as an upstream of ${s.to}`;
    case "unban":
      return `Allow ${s.from} as an upstream of ${s.to} again`;
    case "weight":
      return s.weight === undefined ? `No weight for ${s.from} → ${s.to}` : `Weight ${s.weight} for ${s.from} → ${s.to}`;
    case "price":
      return s.price === undefined ? `The price of ${s.node} as it says itself` : `Price of ${s.node}: ${s.price} per GB`;
    case "capacity":
      return s.capacity === undefined ? `The capacity of ${s.node} as it says itself` : `Capacity of ${s.node}: ${rate(s.capacity)}`;
    case "drain":
      return `Drain ${s.node}`;
    case "undrain":
      return `Let ${s.node} take work again`;
    case "freeze":
      return "Freeze the plan";
    case "unfreeze":
      return "Let the plan move again";
  }
}

// Held is an edit that holds, in words, with the step that takes it back.
export interface Held {
  text: string;
  by: By;
  nodes: string[]; // that it names
  undo: Step;
}

export function held(e: Edits): Held[] {
  return [
    ...(e.frozen ? [{text: "The plan is frozen", by: e.frozen, nodes: [], undo: {kind: "unfreeze"} as Step}] : []),
    ...(e.drains ?? []).map((d) => ({text: `${d.node} drains`, by: d, nodes: [d.node], undo: {kind: "undrain", node: d.node} as Step})),
    ...(e.pins ?? []).map((p) => ({
      text: `${p.node} is pinned to ${p.upstreams.join(", then ")}${p.stream ? ` for ${p.stream}` : ""}`,
      by: p,
      nodes: [p.node, ...p.upstreams],
      undo: {kind: "unpin", node: p.node, stream: p.stream} as Step,
    })),
    ...(e.bans ?? []).map((b) => ({text: `${b.from} is banned as an upstream of ${b.to}`, by: b, nodes: [b.from, b.to], undo: {kind: "unban", from: b.from, to: b.to} as Step})),
    ...(e.weights ?? []).map((w) => ({text: `${w.from} → ${w.to} has weight ${w.weight}`, by: w, nodes: [w.from, w.to], undo: {kind: "weight", from: w.from, to: w.to} as Step})),
    ...(e.prices ?? []).map((p) => ({text: `${p.node} costs ${p.price} per GB`, by: p, nodes: [p.node], undo: {kind: "price", node: p.node} as Step})),
    ...(e.capacities ?? []).map((c) => ({text: `${c.node} has a capacity of ${rate(c.capacity)}`, by: c, nodes: [c.node], undo: {kind: "capacity", node: c.node} as Step})),
  ];
}
