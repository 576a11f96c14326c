// A network that is made up, for work on the page without a cluster. It lives: figures
// move with time. SCENARIO is well, trouble (the default), large or empty.

const start = Date.now();
const wave = (seed, period = 60) => Math.sin((Date.now() - start) / 1000 / period * 6.28 + seed * 1.7);
const iso = (ago = 0) => new Date(Date.now() - ago * 1000).toISOString();
const noParts = {delay: 0, loss: 0, stall: 0, first_frame: 0, failure: 0, money: 0, load: 0, tier: 0, behind: 0, weight: 1};

export class World {
  constructor(scenario = "trouble") {
    this.scenario = scenario;
    this.version = 42;
    this.documents = {};
    this.log = [];
    this.number = Date.now() * 1000;
    this.nodes = scenario === "empty" ? [] : scenario === "large" ? large() : small();
    this.dead = new Set(scenario === "trouble" ? ["edge-b2"] : []);
    this.edit("edits", {pins: [{node: "edge-a2", upstreams: ["relay-b1"], author: "ada", comment: "relay-a1 is being moved", at: iso(5400)}]}, "ada", "relay-a1 is being moved");
    this.edit("network", "regions:\n  - name: east\n    lat: 31.2\n    lon: 121.5\n  - name: north\n    lat: 39.9\n    lon: 116.4\n    near: {east: 14}\n", "ada", "first");
    this.edit("domains", "domains:\n  - name: play.cdn.example.com\n    ttl: 30s\n    recheck: 20\n", "ada", "first");
    this.edit("coverage", "10.1.0.0/16 east telecom\n10.2.0.0/16 north unicom\n", "ada", "first");
    if (this.nodes.length) for (let i = 0; i < 40; i++) this.happen(40 - i);
  }

  get edits() { return JSON.parse(this.documents.edits.at(-1).body); }

  edit(key, body, author, comment) {
    const list = this.documents[key] ??= [];
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const d = {key, version: list.length + 1, at: iso(list.length ? 0 : 5400), author, comment, body: text, size: text.length};
    list.push(d);
    if (key === "edits") this.version++;
    return {...d, body: undefined};
  }

  happen(ago = 0) {
    const edges = this.nodes.filter((n) => n.role === "edge");
    const n = edges[Math.floor(Math.random() * edges.length)];
    const [a, b] = this.upstreams(n);
    const kinds = [
      {kind: "switched", node: n.id, stream: "live/show", from: a, to: b, reason: "upstream_slow"},
      {kind: "spliced", node: n.id, stream: "live/show", from: a, to: b, figures: {duplicates: 12, missing: 0, offset_ms: -40}},
      {kind: "plan", router: "r1", detail: `version ${this.version}, 1 node moved`, figures: {moved: 1}},
      {kind: "gave_up", node: n.id, stream: "live/news", to: b, reason: "not_better"},
      {kind: "node_down", router: "r1", node: "edge-b2", detail: "silent for 3 s"},
      {kind: "heartbeat_refused", router: "r1", node: "edge-x9", reason: "identity_taken"},
    ];
    const e = {number: ++this.number, id: "e" + this.number, at: iso(ago * 9), ...kinds[Math.floor(Math.random() * kinds.length)]};
    this.log.unshift(e);
    return e;
  }

  upstreams(n) {
    const pinned = this.edits.pins?.find((p) => p.node === n.id && !p.stream)?.upstreams ?? [];
    const tier = n.role === "edge" ? "relay" : "center";
    const all = this.nodes.filter((u) => u.role === tier && !this.dead.has(u.id));
    const banned = (u) => this.edits.bans?.some((b) => b.from === u.id && (b.to === n.id || b.to === "*"));
    const drained = (u) => this.edits.drains?.some((d) => d.node === u.id);
    const near = all.filter((u) => !banned(u) && !drained(u)).sort((x, y) => this.far(x, n) - this.far(y, n) || hash(x.id + n.id) - hash(y.id + n.id));
    return [...pinned, ...near.map((u) => u.id).filter((id) => !pinned.includes(id))].slice(0, 3);
  }

  far(a, b) { return a.datacenter === b.datacenter ? 1 : a.region === b.region ? 6 : 22; }

  node(id) { return this.nodes.find((n) => n.id === id); }

  row(n) {
    const down = this.dead.has(n.id);
    const viewers = n.role === "edge" && !down ? Math.round(n.viewers * (1 + 0.1 * wave(hash(n.id)))) : 0;
    const busy = this.scenario === "trouble" && n.id === "edge-a2" ? 0.93 : 0.25 + 0.2 * (hash(n.id) % 10) / 10 + 0.05 * wave(hash(n.id), 40);
    const drain = this.edits.drains?.some((d) => d.node === n.id);
    const capacity = this.edits.capacities?.find((c) => c.node === n.id)?.capacity ?? n.capacity;
    return {
      id: n.id, role: n.role, datacenter: n.datacenter, region: n.region, isps: n.isps, state: down ? "down" : drain ? "draining" : "up",
      heard: iso(down ? 95 : 0.4), silent: down ? 95 : 0.4, router: "r1", load: down ? 0 : Math.round(capacity * busy), capacity,
      use: down ? 0 : busy, pulled: n.role === "center" || down ? 0 : 900_000, viewers, streams: down ? 0 : n.role === "center" ? 6 : 4, sources: n.role === "center" ? 3 : 0,
      upstream: n.role === "center" ? "" : this.upstreams(n)[0] ?? "", edited: JSON.stringify(this.edits).includes(`"${n.id}"`), program: "0.5.0",
    };
  }

  cost(from, to) {
    const bad = this.scenario === "trouble" && (from.id === "relay-a1" && to.id === "edge-a1");
    const poor = this.scenario === "trouble" && from.id === "center-1" && to.id === "relay-b1";
    const far = this.far(from, to);
    const p = {...noParts, delay: far + wave(hash(from.id + to.id), 20) * 0.4, load: 2.5, money: from.region === to.region ? 0 : 4, behind: from.role === "relay" ? 24 : 0};
    if (bad) Object.assign(p, {loss: 240 + 30 * wave(3, 15), stall: 20, delay: 38});
    if (poor) Object.assign(p, {loss: 45, delay: 30});
    if (from.role === "center" && to.role === "edge") p.tier = 30;
    const cost = Object.entries(p).reduce((s, [k, v]) => (k === "weight" ? s : s + v), 0);
    return {parts: p, cost, promised: far, loss: bad ? 0.084 : poor ? 0.021 : 0, grade: bad || poor ? "poor" : hash(from.id + to.id) % 9 === 0 ? "fair" : "good"};
  }

  link(from, to, place, streams) {
    const c = this.cost(from, to);
    return {
      from: from.id, to: to.id, streams, rate: streams * 260_000, place, cost: c.cost - c.parts.behind, promised: c.promised,
      rtt: c.promised * 1.9, loss: c.loss, grade: c.grade, crosses: from.region !== to.region,
    };
  }

  links() {
    const out = [];
    for (const n of this.nodes) {
      if (n.role === "center" || this.dead.has(n.id)) continue;
      this.upstreams(n).forEach((u, i) => out.push(this.link(this.node(u), n, i + 1, i === 0 ? 4 : 0)));
    }
    return out;
  }

  network() {
    const nodes = this.nodes.map((n) => this.row(n));
    const links = this.links();
    const dcs = new Map();
    for (const n of nodes) {
      const d = dcs.get(n.datacenter) ?? {name: n.datacenter, region: n.region, nodes: 0, up: 0, viewers: 0, load: 0, capacity: 0};
      d.nodes++; d.up += n.state === "down" ? 0 : 1; d.viewers += n.viewers; d.load += n.load; d.capacity += n.capacity;
      dcs.set(n.datacenter, d);
    }
    const sum = (list, f) => list.reduce((a, x) => a + f(x), 0);
    return {
      at: iso(), router: "r1", plan: this.version, store: true, nodes, links, links_left: 0, datacenters: [...dcs.values()], regions: [], domains: 1,
      routers: [
        {id: "r1", leader: true, self: true, up: true, seen: iso(), started: iso(86000), nodes: nodes.length, plan: this.version, program: "0.5.0"},
        {id: "r2", leader: false, self: false, up: this.scenario !== "trouble", seen: iso(40), started: iso(86000), nodes: 0, plan: this.version, program: "0.5.0"},
      ],
      totals: {
        nodes: nodes.length, up: nodes.filter((n) => n.state !== "down").length, viewers: sum(nodes, (n) => n.viewers), streams: nodes.length ? 6 : 0,
        load: sum(nodes, (n) => n.load), backhaul: sum(links, (l) => l.rate), crossing: sum(links.filter((l) => l.crosses), (l) => l.rate),
      },
    };
  }

  choices(n) {
    return this.upstreams(n).map((u, i) => {
      const c = this.cost(this.node(u), n);
      const pinned = this.edits.pins?.some((p) => p.node === n.id && p.upstreams.includes(u));
      return {upstream: u, cost: c.cost, parts: c.parts, reason: pinned ? "pinned" : i === 0 ? "cheapest" : i === 1 ? "other_domain" : "spilled"};
    });
  }

  nodeModel(id) {
    const n = this.node(id);
    if (!n) return undefined;
    const row = this.row(n), links = this.links(), pool = n.role === "center" ? [] : this.choices(n);
    const in_pool = new Map(pool.map((c, i) => [c.upstream, i + 1]));
    const open = this.nodes.filter((u) => u.role === (n.role === "edge" ? "relay" : "center") && n.role !== "center" && !in_pool.has(u.id)).slice(0, 8);
    return {
      ...row, domain: "", groups: n.role === "edge" ? ["public"] : [], addresses: ["127.0.0.1"], http_port: 8080, https_port: 0, host: "", url: `http://10.0.0.${hash(id) % 200}:8080`,
      push: n.role === "center" ? "rtmp://10.0.0.5:1935" : "", probe: "", price: 0.02, weight: 1, started: iso(72000), refused: 0, orders_due: false, samples: {},
      why: {
        node: id, known: true, upstream: this.dead.has(id) ? "dead" : "none", use: row.use, demand: 900_000, version: this.version, frozen: !!this.edits.frozen, pool,
        candidates: [...pool.map((c) => ({...c, place: in_pool.get(c.upstream)})), ...open.map((u) => ({upstream: u.id, place: 0, ...pick(this.cost(u, n)), reason: this.dead.has(u.id) ? "dead" : "dearer"}))],
        downstream: links.filter((l) => l.from === id && l.place === 1).map((l) => l.to), edits: [],
      },
      in: links.filter((l) => l.to === id && l.streams), out: links.filter((l) => l.from === id && l.streams),
      carried: ["live/show", "live/news", "live/match", "radio/jazz"].map((name, i) => ({name, source: n.role === "center" && i < 3, from: row.upstream, bitrate: 260_000, viewers: Math.round(row.viewers / (i + 2)), delay: row.upstream ? 4.2 : 0})),
      carried_all: 4, quality: n.role === "edge" ? [{region: n.region, isp: n.isps[0], node: id, datacenter: n.datacenter, at: iso(), started: 120, first_byte: 18, reports: 90, first_frame: 310, stalls: 0.4, stalled: 0.001, played: 9000, delay: 1200, skips: 2, closes: {}}] : [],
      events: this.log.filter((e) => [e.node, e.from, e.to].includes(id)).slice(0, 10),
      trend: Array.from({length: 120}, (_, i) => ({at: iso((120 - i) * 5), load: Math.round(row.load * (1 + 0.2 * Math.sin(i / 9))), pulled: row.pulled, viewers: row.viewers})),
    };
  }

  linkModel(from, to) {
    const [a, b] = [this.node(from), this.node(to)];
    if (!a || !b) return undefined;
    const place = this.upstreams(b).indexOf(from) + 1, l = this.link(a, b, place, place === 1 ? 4 : 0), c = this.cost(a, b);
    return {
      ...l,
      why: {from, to, reason: "none", promised: c.promised, measured: true, cost: c.cost, parts: c.parts, place, crosses: l.crosses, edits: [],
        figures: {rtt: l.rtt, connect: l.rtt + 1, delay: 12, first_frame: 80, loss: c.loss, retransmits: c.loss / 2, stalls: c.loss ? 2 : 0, switches: 0, failed: 0, rate: 4e6, trust: 0.94, samples: 812, at: iso(1)}},
      trend: Array.from({length: 120}, (_, i) => ({at: iso((120 - i) * 5), cost: i < 80 ? 12 + Math.sin(i / 5) : l.cost * (0.7 + 0.3 * Math.sin(i / 3)), rtt: l.rtt, loss: i < 80 ? 0 : c.loss, rate: l.rate})),
      carried: place === 1 ? [{name: "live/show", source: false, from, bitrate: 260_000, viewers: 10, delay: 4}] : [], events: this.log.filter((e) => e.from === from || e.to === to).slice(0, 6),
    };
  }

  stats() {
    const links = this.links().filter((l) => l.place === 1);
    return {cost: links.reduce((s, l) => s + l.cost, 0), backhaul: links.filter((l) => l.crosses).reduce((s, l) => s + l.rate, 0), placed: links.length, unplaced: 0, over_capacity: 0, moved: 0};
  }

  plan() {
    const links = this.links();
    const d = this.documents.edits.at(-1);
    return {
      version: this.version, origin: "mock", leader: "r1", at: iso(4), frozen: !!this.edits.frozen, stats: this.stats(), centers: this.nodes.filter((n) => n.role === "center").map((n) => n.id), took: 3.2,
      pools: this.nodes.filter((n) => n.role !== "center" && !this.dead.has(n.id)).sort((a, b) => b.role.localeCompare(a.role)).map((n) => {
        const row = this.row(n);
        return {node: n.id, role: n.role, datacenter: n.datacenter, region: n.region, state: row.state, demand: 900_000, follows: n.id !== "edge-b3", pool: this.choices(n), downstream: links.filter((l) => l.from === n.id && l.place === 1).length, edited: row.edited};
      }),
      edits: {version: d.version, at: d.at, author: d.author, comment: d.comment, edits: this.edits},
    };
  }

  dryRun(edits) {
    const before = this.stats(), old = new Map(this.nodes.filter((n) => n.role !== "center").map((n) => [n.id, this.choices(n)]));
    const list = this.documents.edits;
    list.push({body: JSON.stringify(edits)});
    const after = this.stats(), changes = [];
    for (const n of this.nodes) {
      if (n.role === "center" || this.dead.has(n.id)) continue;
      const [a, b] = [old.get(n.id), this.choices(n)];
      if (a.map((c) => c.upstream).join() !== b.map((c) => c.upstream).join()) changes.push({node: n.id, before: a, after: b, cost_before: a[0]?.cost ?? 0, cost_after: b[0]?.cost ?? 0, moved: a[0]?.upstream === b[0]?.upstream ? 0 : 900_000});
    }
    list.pop();
    return {changes, before, after, moved: changes.reduce((s, c) => s + c.moved, 0), empty: changes.filter((c) => !c.after.length).map((c) => c.node), over: []};
  }

  streams(q) {
    const all = ["live/show", "live/news", "live/match", "radio/jazz", "live/concert-of-the-new-year", "test/bars"].map((name, i) => this.streamRow(name, i));
    const hit = all.filter((s) => s.name.includes(q) || s.source.includes(q));
    return {total: this.nodes.length ? all.length : 0, matched: this.nodes.length ? hit.length : 0, streams: this.nodes.length ? hit : []};
  }

  streamRow(name, i = 0) {
    return {name, source: i === 5 ? "" : i % 2 ? "center-2" : "center-1", epoch: 1, since: iso(4000 * (i + 1)), bitrate: 260_000, viewers: [5210, 380, 42, 3, 1, 0][i] ?? 9, nodes: this.nodes.length - 1, copies: this.nodes.length - 2};
  }

  stream(name) {
    const row = this.streamRow(name, ["live/show", "live/news", "live/match", "radio/jazz"].indexOf(name));
    const tree = [], live = this.nodes.filter((n) => !this.dead.has(n.id));
    for (const n of live) {
      if (n.role === "center" && n.id !== row.source) continue;
      const up = n.role === "center" ? "" : n.role === "relay" ? row.source : this.upstreams(n)[0] ?? "";
      const c = up ? this.cost(this.node(up), n) : {cost: 0, grade: "unknown"};
      const hops = n.role === "center" ? 0 : n.role === "relay" ? 1 : 2;
      tree.push({node: n.id, role: n.role, datacenter: n.datacenter, region: n.region, state: "up", upstream: up, source: hops === 0, hops, hop_delay: up ? c.promised + 2 : 0, delay: hops * 7 + (hops ? c.promised : 0), viewers: n.role === "edge" ? this.row(n).viewers : 0, downstream: 0, bitrate: 260_000, cost: c.cost, grade: c.grade, crosses: !!up && this.node(up).region !== n.region, play: n.role === "edge" ? `${process.env.PLAY ?? "http://127.0.0.1:9/"}${name}.flv` : ""});
    }
    for (const t of tree) t.downstream = tree.filter((x) => x.upstream === t.node).length;
    return {...row, known: true, crosses: tree.filter((t) => t.crosses).length, deepest: 2, tree, events: this.log.filter((e) => e.stream === name).slice(0, 8)};
  }

  path(node, stream) {
    const n = this.node(node);
    if (!n) return undefined;
    const choices = n.role === "center" ? [] : this.choices(n).map((c) => ({...c, hops: [c.upstream]}));
    return {
      answer: {node, stream, source: "center-1", version: this.version, reason: choices.length ? "between" : "source", choices}, near: false, same: true,
      ways: [{over: "center-1", kind: "straight", cost: 52, reason: "dearer"}, ...choices.map((c) => ({over: c.upstream, kind: "other", cost: c.cost, reason: c.reason}))],
    };
  }

  scheduling() {
    const edges = this.nodes.filter((n) => n.role === "edge" && !this.dead.has(n.id));
    const rows = [];
    for (const [region, isp] of [["east", "telecom"], ["east", "unicom"], ["north", "unicom"], ["north", "telecom"], ["", ""]]) {
      const c = edges.map((n) => ({node: n.id, datacenter: n.datacenter, region: n.region, cost: (n.region === region ? 4 : 22) + (n.isps.includes(isp) ? 0 : 40) + 3, coverage: (n.region === region ? 4 : 22) + (n.isps.includes(isp) ? 0 : 40), quality: 0, stream: 0, load: 3, health: 0, weight: 50, reason: "placed"})).sort((a, b) => a.cost - b.cost).slice(0, 4);
      rows.push({region, isp, reason: edges.length ? "placed" : "no_edges", ttl: 30, near: Math.min(2, c.length), candidates: c});
    }
    const recheck = (region, isp, way, outcome, count) => ({region, isp, way, outcome, count});
    return {
      at: iso(), version: 17, state_at: iso(1), domain: "play.cdn.example.com", domains: ["play.cdn.example.com", "*.live.example.com"], rows, rows_left: 0,
      rechecks: [recheck("east", "telecom", "name", "here", 9120), recheck("east", "telecom", "name", "sent_on", 71), recheck("east", "telecom", "ticket", "ticketed", 66), recheck("north", "unicom", "name", "here", 4100), recheck("north", "unicom", "name", "near", 380), recheck("north", "unicom", "name", "sent_on", 610), recheck("", "", "address", "unknown_place", 12)],
      quality: edges.map((n) => ({region: n.region, isp: n.isps[0], node: n.id, datacenter: n.datacenter, at: iso(2), started: 100, first_byte: 17, reports: 60, first_frame: 300 + (hash(n.id) % 400), stalls: (hash(n.id) % 30) / 10, stalled: 0.002, played: 5400, delay: 1100, skips: 0, closes: {}})),
    };
  }

  explain(client) {
    const s = this.scheduling();
    const c = s.rows[0].candidates;
    return {
      now: iso(), version: 17, state_at: iso(1), client: client + "/32", domain: s.domain, access: "unknown", place: {region: "east", isp: "telecom", source: "coverage", bits: 16},
      rules: [
        {name: "overrides", did: "no override is for this query"}, {name: "eligible", did: "5 edges are well", dropped: [{reason: "unhealthy", count: 1, nodes: ["edge-b2"]}, {reason: "not_edge", count: 4, nodes: ["center-1", "center-2", "relay-a1", "relay-b1"]}]},
        {name: "coverage", did: "east/telecom by coverage"}, {name: "spreading", did: "2 edges within 8 ms of the best share the clients"},
      ],
      candidates: c.map((x) => ({...x, addr4: "192.0.2.10"})), reason: "placed", ttl: "30s", bits: 24,
    };
  }

  documentsList() { return Object.values(this.documents).map((l) => ({...l.at(-1), body: undefined, size: 0})); }
}

const pick = ({cost, parts}) => ({cost, parts});

function hash(s) {
  let h = 7;
  for (const c of s) h = (h * 31 + c.charCodeAt(0)) % 1_000_003;
  return h;
}

function small() {
  const n = (id, role, datacenter, region, isps, viewers = 0) => ({id, role, datacenter, region, isps, viewers, capacity: 125_000_000});
  return [
    n("center-1", "center", "core-1", "east", ["*"]), n("center-2", "center", "core-2", "north", ["*"]),
    n("relay-a1", "relay", "dc-a", "east", ["telecom"]), n("relay-b1", "relay", "dc-b", "north", ["unicom"]),
    n("edge-a1", "edge", "dc-a", "east", ["telecom"], 1800), n("edge-a2", "edge", "dc-a", "east", ["telecom"], 2100),
    n("edge-b1", "edge", "dc-b", "north", ["unicom"], 900), n("edge-b2", "edge", "dc-b", "north", ["unicom"], 800), n("edge-b3", "edge", "dc-b", "north", ["unicom", "telecom"], 640),
  ];
}

function large() {
  const out = [], regions = ["east", "north", "south", "west"];
  for (let r = 0; r < 4; r++) {
    for (let i = 0; i < 3; i++) out.push({id: `c-${regions[r]}-${i}`, role: "center", datacenter: `core-${regions[r]}`, region: regions[r], isps: ["*"], viewers: 0, capacity: 1_250_000_000});
    for (let d = 0; d < 3; d++) {
      for (let i = 0; i < 4; i++) out.push({id: `r-${regions[r]}${d}-${i}`, role: "relay", datacenter: `${regions[r]}-${d}`, region: regions[r], isps: ["telecom"], viewers: 0, capacity: 1_250_000_000});
      for (let i = 0; i < 12; i++) out.push({id: `e-${regions[r]}${d}-${i}`, role: "edge", datacenter: `${regions[r]}-${d}`, region: regions[r], isps: ["telecom"], viewers: 500 + i * 40, capacity: 1_250_000_000});
    }
  }
  return out;
}
