// What the router tells of its plan, as its packages fleet and plan have it.
import type {State} from "./grade-model";

export interface Parts {
  delay: number;
  loss: number;
  stall: number;
  first_frame: number;
  failure: number;
  money: number;
  load: number;
  tier: number;
  behind: number;
  weight: number;
}

export interface Choice {
  upstream: string;
  cost: number;
  parts: Parts;
  reason: string;
}

export interface NodeWhy {
  node: string;
  known: boolean;
  upstream: string; // a reason, why others do not pull from it
  use: number;
  demand: number;
  version: number;
  frozen: boolean;
  pool: Choice[];
  candidates: (Choice & {place: number})[];
  downstream: string[];
  edits: string[];
}

export interface Plan {
  version: number;
  origin: string;
  leader: string;
  at?: string;
  frozen: boolean;
  stats: Stats;
  pools: PoolRow[];
  centers: string[];
  edits: Versioned;
  took?: number;
}

interface Stats {
  cost: number;
  backhaul: number;
  placed: number;
  unplaced: number;
  over_capacity: number;
  moved: number;
}

export interface PoolRow {
  node: string;
  role: string;
  datacenter: string;
  region: string;
  state: State;
  demand: number;
  follows: boolean;
  pool: Choice[];
  downstream: number;
  edited: boolean;
}

interface Versioned {
  version: number;
  at?: string;
  author: string;
  comment: string;
  edits: Edits;
}

export interface By {
  author?: string;
  comment?: string;
  at?: string;
  until?: string;
}

export interface Edits {
  pins?: ({node: string; stream?: string; upstreams: string[]} & By)[];
  bans?: ({from: string; to: string} & By)[];
  weights?: ({from: string; to: string; weight: number} & By)[];
  prices?: ({node: string; price: number} & By)[];
  capacities?: ({node: string; capacity: number} & By)[];
  drains?: ({node: string} & By)[];
  frozen?: By;
}

export interface Diff {
  changes: {node: string; before: Choice[]; after: Choice[]; cost_before: number; cost_after: number; moved: number}[];
  before: Stats;
  after: Stats;
  moved: number;
  empty: string[];
  over: string[];
}

