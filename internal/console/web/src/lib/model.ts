// What the router tells of the network, as its package fleet has it. Rates are bytes a
// second; times without another unit are ms.
import type {Grade, State} from "./grade-model";
import type {Carried, Event, Quality} from "./stream-model";
import type {NodeWhy, Parts} from "./plan-model";

export interface Network {
  at: string;
  router: string;
  plan: number;
  store: boolean;
  nodes: NodeRow[];
  links: LinkRow[];
  links_left: number;
  datacenters: Datacenter[];
  regions: {name: string; lat?: number; lon?: number}[];
  domains: number; // names of players that operators have written down
  routers: RouterRow[];
  totals: {nodes: number; up: number; viewers: number; streams: number; load: number; backhaul: number; crossing: number};
}

export interface NodeRow {
  id: string;
  role: string;
  datacenter: string;
  region: string;
  isps: string[];
  state: State;
  heard?: string;
  silent: number; // s
  router: string;
  load: number;
  capacity: number;
  use: number;
  pulled: number;
  viewers: number;
  streams: number;
  sources: number;
  upstream: string;
  edited: boolean;
  program: string;
  left_out?: string; // why players are not sent to it
  denied?: {reason: string; from: string};
}

export interface LinkRow {
  from: string;
  to: string;
  streams: number;
  rate: number;
  place: number;
  cost: number;
  promised: number;
  rtt: number;
  loss: number;
  grade: Grade;
  crosses: boolean;
}

interface Datacenter {
  name: string;
  region: string;
  nodes: number;
  up: number;
  viewers: number;
  load: number;
  capacity: number;
}

export interface RouterRow {
  id: string;
  leader: boolean;
  self: boolean;
  up: boolean;
  seen: string;
  started: string;
  nodes: number;
  plan: number;
  program: string;
  url?: string;
}

export interface Node extends NodeRow {
  domain: string;
  groups: string[];
  addresses: string[];
  http_port: number;
  https_port: number;
  host: string;
  url: string;
  push: string;
  probe: string;
  price: number;
  weight: number;
  started?: string;
  refused: number;
  orders_due: boolean;
  samples: Record<string, number>;
  why: NodeWhy;
  in: LinkRow[];
  out: LinkRow[];
  carried: Carried[];
  carried_all: number;
  quality: Quality[];
  events: Event[];
  trend: {at: string; load: number; pulled: number; viewers: number}[];
}

export interface Link extends LinkRow {
  why: {
    reason: string;
    promised: number;
    measured: boolean;
    figures: Figures;
    cost: number;
    parts: Parts;
    place: number;
    crosses: boolean;
    edits: string[];
  };
  trend: {at: string; cost: number; rtt: number; loss: number; rate: number}[];
  carried: Carried[];
  events: Event[];
}

interface Figures {
  rtt: number;
  connect: number;
  delay: number;
  first_frame: number;
  loss: number;
  retransmits: number;
  stalls: number;
  switches: number;
  failed: number;
  rate: number;
  trust: number;
  samples: number;
  at: string;
}
