import {useMemo, useState} from "preact/hooks";
import {inUse, problems, type Problem} from "../lib/health";
import {count, many, rate, share} from "../lib/format";
import {network as live, plan} from "../lib/live";
import type {Network, NodeRow} from "../lib/model";
import {address, follow, linkAt, look, move, nodeAt, route} from "../lib/route";
import {use} from "../lib/store";
import {arrows} from "../lib/use";
import {Choose, Empty, Search, Wait, signs} from "../ui/basic";
import {Icon} from "../ui/icon";
import {Nowhere} from "../ui/nowhere";
import {NodeList, RouterList} from "./lists";
import {LinkPanel} from "./link-panel";
import {NetworkMap} from "./map";
import {NodePanel} from "./node-panel";

type Shape = "map" | "list";

export function NetworkPage() {
  const n = use(live);
  const {at, query} = use(route);
  const [shape, setShape] = useState<Shape>(() => (localStorage.getItem("network") === "list" ? "list" : "map"));
  const node = at[0] === "nodes" && at.length === 2 ? at[1] : undefined;
  const [from, to] = at[0] === "links" && at.length === 3 ? at.slice(1) : [];
  const find = query.get("find") ?? "";
  if (at.length && !node && !to) return <Nowhere />;
  if (!n) return <Wait what="Waiting for the network" />;

  const choose = (s: Shape) => {
    localStorage.setItem("network", s);
    setShape(s);
  };
  const close = () => move(["network"]);
  const shown = find ? only(n, find) : n;
  return (
    <>
      <Totals n={n} />
      <Problems n={n} />
      <div class={"with-panel" + (at.length ? " open" : "")}>
        <section class="card" aria-label="Map of the network">
          <div class="head">
            <Search label="Find a node" placeholder="Find a node, datacenter, region or ISP" value={find} onInput={(v) => look({find: v}, true)} />
            <Choose label="Show as" value={shape} onChoose={choose} options={[{value: "map", label: "Map"}, {value: "list", label: "List"}]} />
          </div>
          <div class="inside">
            {!n.nodes.length ? (
              <Empty title="No node has been heard yet">Start a node with --router and the address of this router, and it appears here within a second.</Empty>
            ) : !shown.nodes.length ? (
              <Empty title={`Nothing matches “${find}”`}>The search looks at names of nodes, datacenters, regions and ISPs.</Empty>
            ) : shape === "list" ? (
              <NodeList nodes={shown.nodes} chosen={node} />
            ) : (
              <>
                <NetworkMap network={shown} node={node} link={to && `${from}>${to}`} onNode={(id) => move(nodeAt(id))} onLink={(a, b) => move(linkAt(a, b))} />
                <Key />
              </>
            )}
            {n.links_left > 0 && <p class="soft small">{many(n.links_left, "link")} more in use; a node's panel has all of its own.</p>}
          </div>
          <RouterList list={n.routers} />
        </section>
        {node && <NodePanel id={node} close={close} />}
        {from && to && <LinkPanel from={from} to={to} close={close} />}
      </div>
    </>
  );
}

// only leaves what matches, and whom it pulls from, so that it does not hang in the air.
function only(n: Network, find: string): Network {
  const f = find.toLowerCase();
  const hit = (x: NodeRow) => [x.id, x.datacenter, x.region, x.role, ...(x.isps ?? [])].some((s) => s.toLowerCase().includes(f));
  const hits = new Set(n.nodes.filter(hit).map((x) => x.id));
  const keep = new Set(hits);
  const links = n.links.filter((l) => hits.has(l.from) || hits.has(l.to));
  for (const l of links) {
    if (!inUse(l)) continue;
    keep.add(l.from);
    keep.add(l.to);
  }
  return {...n, nodes: n.nodes.filter((x) => keep.has(x.id)), links};
}

function Totals({n}: {n: Network}) {
  const t = n.totals;
  const leader = n.routers.find((r) => r.leader && r.up);
  const up = n.routers.filter((r) => r.up).length;
  const cell = (name: string, value: string, under: string, bad = false, title?: string) => (
    <div class={"total" + (bad ? " is-bad" : "")} title={title}>
      <h2>{name}</h2>
      <b>{value}</b>
      <small>{under}</small>
    </div>
  );
  const carried = n.nodes.reduce((sum, x) => sum + x.capacity, 0);
  return (
    <section class="totals" aria-label="The network in figures">
      {cell("Nodes", `${count(t.up)} / ${count(t.nodes)}`, !t.nodes ? "none heard yet" : t.up === t.nodes ? "all up" : `${count(t.nodes - t.up)} down`, t.up < t.nodes)}
      {cell("Viewers", count(t.viewers), many(t.streams, "stream"))}
      {cell("Sent", rate(t.load), carried ? `${share(t.load / carried)} of capacity` : "by all nodes")}
      {cell("Backhaul", rate(t.backhaul), "between nodes")}
      {cell("Crossing", rate(t.crossing), "regions or ISPs")}
      {cell("Planned by", leader ? leader.id : "nobody", up < n.routers.length ? `${up} of ${many(n.routers.length, "router")}` : `plan ${n.plan}`, !leader, n.routers.map((r) => `${r.id}: ${r.up ? "up" : "down"}${r.leader ? ", plans" : ""}, hears ${r.nodes} nodes, plan ${r.plan}`).join("\n"))}
    </section>
  );
}

const some = 5;

function Problems({n}: {n: Network}) {
  const [all, setAll] = useState(false);
  const frozen = use(plan)?.frozen;
  const list = useMemo(() => problems(n, frozen), [n, frozen]);
  if (!list.length) return null;
  const shown = all ? list : list.slice(0, some);
  return (
    <section class={"problems is-" + list[0]!.level} aria-label="What is wrong">
      <ul onKeyDown={(e) => arrows(e, "a")}>
        {shown.map((p) => (
          <li key={p.text}>
            <ProblemLine p={p} />
          </li>
        ))}
      </ul>
      {list.length > some && (
        <button class="more" onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show ${many(list.length - some, "more problem")}`}
        </button>
      )}
    </section>
  );
}

function ProblemLine({p}: {p: Problem}) {
  return (
    <a href={address(p.place, p.query)} onClick={follow}>
      <span class={"is-" + p.level}>
        <Icon name={signs[p.level]} label={p.level === "bad" ? "bad" : "warning"} />
      </span>
      <strong>{p.text}</strong>
      <span class="detail">{p.detail}</span>
      <Icon name="right" />
    </a>
  );
}

function Key() {
  const line = (level: string, word: string) => (
    <span class={"is-" + level}>
      <svg viewBox="0 0 34 8" aria-hidden="true">
        <path d="M0 4h34" />
      </svg>
      {word}
    </span>
  );
  return (
    <div class="key">
      {line("good", "as the distance promises")}
      {line("fair", "fair")}
      {line("warn", "poor")}
      {line("bad", "bad")}
      {line("off", "not measured")}
      <span>thicker carries more</span>
    </div>
  );
}
