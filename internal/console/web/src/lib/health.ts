// What is wrong, in the order in which an operator should look at it.
import {many, ms, share, span} from "./format";
import {severity, type Level} from "./level";
import type {LinkRow, Network, NodeRow} from "./model";
import {linkAt, nodeAt, steerAt, type Place, type Query} from "./route";
import {reason} from "./words";

export interface Problem {
  level: Level;
  text: string;
  detail: string;
  place: Place;
  query?: Query;
}

const busy = 0.85; // share of its capacity from which a node is nearly full
const muchWorse = 200; // ms beyond what the distance promises
const muchLoss = 0.1;

export function nodeLevel(n: NodeRow): Level {
  if (n.state === "down") return "bad";
  if (isBlind(n)) return "bad";
  if (n.state === "full" || n.use >= 1) return "warn";
  if (n.state === "draining") return "off";
  return n.use >= busy ? "warn" : "good";
}

// isBlind tells whether a node is alive and has nobody to pull from.
const isBlind = (n: NodeRow): boolean => n.role !== "center" && n.state !== "down" && !n.upstream;

// hasTwin tells whether another program goes by the name of a node.
export const hasTwin = (n: NodeRow): boolean => n.denied?.reason === "identity_taken";

export function linkLevel(l: LinkRow): Level {
  switch (l.grade) {
    case "good":
      return "good";
    case "fair":
      return "fair";
    case "poor":
      return l.cost - l.promised >= muchWorse || l.loss >= muchLoss ? "bad" : "warn";
    default:
      return "off";
  }
}

export const linkGrade: Record<Level, string> = {good: "good", fair: "fair", warn: "poor", bad: "bad", off: "not measured"};

export const inUse = (l: LinkRow): boolean => l.streams > 0 || l.place === 1;

export function problems(n: Network, frozen = false): Problem[] {
  const all: Problem[] = [];
  const add = (level: Level, text: string, detail: string, place: Place = ["network"], query?: Query) => all.push({level, text, detail, place, query});

  if (!n.store) add("bad", "The store cannot be reached", "routers serve the last plan; edits are refused until it is back");
  if (n.routers.length && !n.routers.some((r) => r.leader && r.up)) add("bad", "No router plans", "nodes go on with the last plan");
  for (const r of n.routers) if (!r.up) add("warn", `Router ${r.id} is down`, "others serve its nodes");

  if (n.store && !n.domains && n.nodes.some((x) => x.role === "edge"))
    add("warn", "No domain is served", "players are sent nowhere: write the names that they ask for into the document “domains”", ["documents", "domains"]);

  if (frozen) add("warn", "The plan is frozen", "pools stay as they are; only dead nodes are left", ["plan"]);

  const down = n.nodes.filter((x) => x.state === "down");
  const dark = new Set(n.datacenters.filter((d) => d.name && d.nodes > 1 && d.up === 0).map((d) => d.name));
  for (const dc of dark) add("bad", `Datacenter ${dc} is down`, `none of its ${many(down.filter((x) => x.datacenter === dc).length, "node")} is heard`, ["network"], {find: dc});
  for (const x of down) {
    if (dark.has(x.datacenter)) continue;
    add("bad", `${x.id} is down`, `${x.denied ? `refused, ${reason(x.denied.reason)}: ` : ""}${x.role} in ${x.datacenter || "no datacenter"}, silent for ${span(x.silent)}`, nodeAt(x.id));
  }
  for (const x of n.nodes) {
    if (hasTwin(x)) add("warn", `Two programs go by the name ${x.id}`, `the one at ${x.denied!.from} is refused: give it an id of its own`, nodeAt(x.id));
    if (x.state === "down") continue;
    if (x.left_out) add(n.domains ? "bad" : "warn", `Players are not sent to ${x.id}`, x.left_out, nodeAt(x.id));
    if (isBlind(x)) add("bad", `${x.id} has no upstream`, "it has those of its own settings alone, if any", steerAt(x.id));
    else if (x.state === "full" || x.use >= 1) add("warn", `${x.id} is full`, `it sends ${share(x.use)} of its capacity`, nodeAt(x.id));
    else if (x.use >= busy) add("warn", `${x.id} is nearly full`, `it sends ${share(x.use)} of its capacity`, nodeAt(x.id));
  }
  const alive = new Set(n.nodes.filter((x) => x.state !== "down").map((x) => x.id));
  for (const l of n.links) {
    const level = linkLevel(l);
    if (!inUse(l) || severity(level) < severity("warn") || !alive.has(l.from) || !alive.has(l.to)) continue;
    const why = [`costs ${ms(l.cost)}, ${ms(l.promised)} promised`];
    if (l.loss >= 0.005) why.push(`${share(l.loss)} lost`);
    add(level, `${l.from} → ${l.to} is ${linkGrade[level]}`, why.join(", "), linkAt(l.from, l.to));
  }
  return all.sort((a, b) => severity(b.level) - severity(a.level));
}
