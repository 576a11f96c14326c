// What the router tells of streams, events and players, as its package fleet has it.
import type {Grade, State} from "./grade-model";

export interface Carried {
  name: string;
  source: boolean;
  from: string;
  bitrate: number;
  viewers: number;
  delay: number;
}

export interface StreamRow {
  name: string;
  source: string;
  ingest?: string;
  epoch: number;
  since?: string;
  bitrate: number;
  viewers: number;
  nodes: number;
  copies: number;
}

export interface Streams {
  total: number;
  matched: number;
  streams: StreamRow[];
}

export interface Stream extends StreamRow {
  known: boolean;
  crosses: number;
  deepest: number;
  tree: StreamNode[];
  events: Event[];
}

export interface StreamNode {
  node: string;
  role: string;
  datacenter: string;
  region: string;
  state: State;
  upstream: string;
  source: boolean;
  ingest?: boolean;
  hops: number;
  hop_delay: number;
  delay: number;
  viewers: number;
  downstream: number;
  bitrate: number;
  cost: number;
  grade: Grade;
  crosses: boolean;
  play?: string;
}

export interface Event {
  number: number;
  id: string;
  at: string;
  node?: string;
  router?: string;
  kind: string;
  stream?: string;
  from?: string;
  to?: string;
  reason?: string;
  detail?: string;
  figures?: Record<string, unknown>;
}

export interface Events {
  events: Event[];
  next: number;
  total: number;
  kinds: string[];
}

export interface Quality {
  region: string;
  isp: string;
  node: string;
  datacenter: string;
  at: string;
  started: number;
  first_byte: number;
  reports: number;
  first_frame: number;
  stalls: number;
  stalled: number;
  played: number;
  delay: number;
  skips: number;
  closes: Record<string, number>;
}
