// Where clients are sent, as the router's packages console and sched have it.
import type {Quality} from "./stream-model";

export interface Scheduling {
  at: string;
  version: number;
  state_at?: string;
  domain: string;
  domains: string[];
  rows: Placed[];
  rows_left: number;
  rechecks: Recheck[];
  quality: Quality[];
}

export interface Placed {
  region: string;
  isp: string;
  reason: string;
  ttl: number; // s
  near: number;
  candidates: Destination[];
}

// Costs are what an edge costs a client, in ms; cost is the sum of the others.
interface Costs {
  cost: number;
  coverage: number;
  quality: number;
  stream: number;
  load: number;
  health: number;
}

interface Destination extends Costs {
  node: string;
  datacenter: string;
  region: string;
  weight: number;
  reason: string;
}

export interface Recheck {
  region: string;
  isp: string;
  way: string;
  outcome: string;
  count: number;
}

export interface Explanation {
  version: number;
  state_at?: string;
  client?: string;
  domain: string;
  stream?: string;
  access: string;
  place: {region: string; isp: string; source: string; bits: number};
  rules: {name: string; did: string; dropped?: {reason: string; count: number; nodes: string[]}[]}[];
  candidates: ({node: string; addr4?: string; addr6?: string; weight: number; reason: string} & Costs)[];
  reason: string;
  ttl: string;
  bits: number;
}
