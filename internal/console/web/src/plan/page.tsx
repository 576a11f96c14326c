import {useMemo, useState} from "preact/hooks";
import {mayEdit, session} from "../lib/api";
import {ago, count, many, ms, rate} from "../lib/format";
import {plan as news} from "../lib/live";
import type {Plan, PoolRow} from "../lib/plan-model";
import {beside, follow, look, move, route, steerAt} from "../lib/route";
import {use} from "../lib/store";
import {reason, states} from "../lib/words";
import {arrows, useAsked, useTick} from "../lib/use";
import {Choose, Empty, Failed, Notice, Search, Tag, Wait} from "../ui/basic";
import {Cost, CostKey} from "../ui/choices";
import {Icon} from "../ui/icon";
import {Nowhere} from "../ui/nowhere";
import {add, draft, held} from "./draft";
import {DraftBar} from "./draft-bar";
import {HeldEdits} from "./edits";
import {EditHistory} from "./history";
import {SteerPanel} from "./steer";

type Tab = "pools" | "edits" | "history";
type Only = "all" | "relay" | "edge" | "trouble" | "edited";

export function PlanPage() {
  const told = use(news);
  const {value: plan, error, again} = useAsked<Plan>("/api/plan", {}, 4000, told);
  const {at} = use(route);
  const [tab, node] = shown(at);
  if (!tab) return <Nowhere />;
  if (!plan) return error ? <Failed error={error} again={again} /> : <Wait what="Asking for the plan" />;
  const close = () => move(["plan"]);
  const edits = held(plan.edits.edits);
  const set = (t: Tab) => move(t === "pools" ? ["plan"] : ["plan", t]);
  return (
    <>
      <Head plan={plan} />
      <div class={"with-panel" + (node ? " open" : "")}>
        <section class="card" aria-label="The plan">
          <div class="head">
            <Choose
              label="Show"
              value={tab}
              onChoose={set}
              options={[
                {value: "pools", label: "Pools"},
                {value: "edits", label: edits.length ? `Edits (${edits.length})` : "Edits"},
                {value: "history", label: "History"},
              ]}
            />
            {tab === "pools" && <PoolFilter />}
          </div>
          {tab === "pools" && <Pools plan={plan} chosen={node} />}
          {tab === "edits" && <HeldEdits plan={plan} />}
          {tab === "history" && <EditHistory plan={plan} done={again} />}
        </section>
        {node && <SteerPanel id={node} plan={plan} close={close} />}
      </div>
      <DraftBar plan={plan} done={again} />
    </>
  );
}

// shown reads what is looked at: a tab, or a node's pool.
function shown(at: string[]): [tab?: Tab, node?: string] {
  const [what, id, ...more] = at;
  if (more.length) return [];
  if (what === "nodes" && id) return ["pools", id];
  if (id) return [];
  return what === undefined ? ["pools"] : what === "edits" || what === "history" ? [what] : [];
}

function Head({plan: p}: {plan: Plan}) {
  useTick();
  const who = use(session);
  const steps = use(draft);
  const drafted = steps.find((s) => s.kind === "freeze" || s.kind === "unfreeze");
  const s = p.stats;
  const cell = (name: string, value: string, under: string, bad = false) => (
    <div class={"total" + (bad ? " is-bad" : "")}>
      <h2>{name}</h2>
      <b>{value}</b>
      <small>{under}</small>
    </div>
  );
  return (
    <>
      {p.frozen && (
        <div style={{marginBottom: "12px"}}>
          <Notice level="warn">
            <div class="row between">
              <span>
                <strong>The plan is frozen.</strong> Pools stay as they are; only dead nodes are left.{" "}
                {p.edits.edits.frozen?.author && `Frozen by ${p.edits.edits.frozen.author} ${ago(p.edits.edits.frozen.at)}${p.edits.edits.frozen.comment ? `: ${p.edits.edits.frozen.comment}` : ""}.`}
              </span>
              {mayEdit(who) && (
                <button class="button small" disabled={drafted?.kind === "unfreeze"} onClick={() => add({kind: "unfreeze"}, p.edits.edits)}>
                  Let it move again
                </button>
              )}
            </div>
          </Notice>
        </div>
      )}
      <section class="totals" aria-label="The plan in figures">
        {cell("Plan", p.version ? String(p.version) : "none yet", p.leader ? `by ${p.leader}, ${ago(p.at)}` : "nobody plans now", !p.leader)}
        {cell("Total cost", ms(s.cost), p.took ? `made in ${ms(p.took)}` : "of first choices")}
        {cell("Crossing", rate(s.backhaul), "regions or ISPs")}
        {cell("Upstreams", `${count(s.placed)} / ${count(s.placed + s.unplaced)}`, s.unplaced ? `${many(s.unplaced, "node")} without` : "all", s.unplaced > 0)}
        {cell("Over capacity", count(s.over_capacity), "no room above", s.over_capacity > 0)}
        <div class="total">
          <h2>Edits</h2>
          <b>{held(p.edits.edits).length}</b>
          {mayEdit(who) && !p.frozen ? (
            <button class="as-link small" disabled={drafted?.kind === "freeze"} onClick={() => add({kind: "freeze"}, p.edits.edits)} title="Keep all pools as they are">
              <Icon name="freeze" /> Freeze
            </button>
          ) : (
            <small>version {p.edits.version}</small>
          )}
        </div>
      </section>
    </>
  );
}

const onlyWords: {value: Only; label: string}[] = [
  {value: "all", label: "All nodes"},
  {value: "relay", label: "Relays"},
  {value: "edge", label: "Edges"},
  {value: "trouble", label: "In trouble"},
  {value: "edited", label: "Edited"},
];

function PoolFilter() {
  const {query} = use(route);
  return (
    <>
      <Search label="Find a node" placeholder="Node, datacenter, region or upstream" value={query.get("find") ?? ""} onInput={(v) => look({find: v}, true)} />
      <select class="input" style={{width: "auto"}} aria-label="Only" value={query.get("only") ?? "all"} onChange={(e) => look({only: e.currentTarget.value === "all" ? undefined : e.currentTarget.value})}>
        {onlyWords.map((o) => (
          <option key={o.value} value={o.value}>
            {o.label}
          </option>
        ))}
      </select>
    </>
  );
}

const step = 100; // rows at a time: a page of 5,000 is no use to anybody

function Pools({plan, chosen}: {plan: Plan; chosen?: string}) {
  const {query} = use(route);
  const [most, setMost] = useState(step);
  const find = (query.get("find") ?? "").toLowerCase();
  const only = (query.get("only") ?? "all") as Only;
  const rows = useMemo(() => plan.pools.filter((r) => fits(r, find, only)), [plan, find, only]);
  const scale = useMemo(() => Math.max(20, ...rows.slice(0, most).map((r) => r.pool?.[0]?.cost ?? 0)), [rows, most]);
  if (!plan.pools.length) return <Empty title="There is nothing to plan yet">The plan has an entry for each relay and edge that is alive.</Empty>;
  if (!rows.length) return <Empty title="No node matches">Try fewer letters, or all nodes.</Empty>;
  return (
    <>
      <div class="scroll" onKeyDown={(e) => arrows(e, "tbody a")}>
        <table class="pools">
          <thead>
            <tr>
              <th>Node</th>
              <th>Pulls from</th>
              <th class="cost-cell">Cost</th>
              <th>Why</th>
              <th>Then</th>
              <th class="num">Pulls</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, most).map((r) => (
              <PoolLine key={r.node} r={r} scale={scale} chosen={r.node === chosen} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > most && (
        <button class="button flat" style={{width: "100%"}} onClick={() => setMost(most + step)}>
          Show more: {many(rows.length - most, "node")}
        </button>
      )}
      <div class="inside">
        <CostKey of={rows.slice(0, most).flatMap((r) => r.pool?.slice(0, 1).map((c) => c.parts) ?? [])} />
      </div>
    </>
  );
}

function PoolLine({r, scale, chosen}: {r: PoolRow; scale: number; chosen: boolean}) {
  const first = r.pool?.[0];
  return (
    <tr class={"pick" + (chosen ? " chosen" : "")} data-node={r.node} onClick={() => move(steerAt(r.node))}>
      <td data-label="Node">
        <a href={beside(steerAt(r.node))} onClick={(e) => (e.stopPropagation(), follow(e))}>
          {r.node}
        </a>{" "}
        <span class="soft small">{[r.role, r.datacenter].filter(Boolean).join(" · ")}</span>{" "}
        {r.state !== "up" && <Tag level={r.state === "down" ? "bad" : r.state === "full" ? "warn" : "off"}>{states[r.state]}</Tag>}
        {r.edited && (
          <Tag level="accent" icon="tune">
            edited
          </Tag>
        )}
        {!r.follows && <Tag level="warn">has not taken it yet</Tag>}
      </td>
      <td data-label="From">{first ? <strong>{first.upstream}</strong> : r.role === "center" ? <span class="soft">publishers</span> : <Tag level="bad">nobody</Tag>}</td>
      <td data-label="Cost" class="cost-cell">
        {first && (
          <div class="cost-line">
            <b class="num">{first.cost > 0 ? ms(first.cost) : "–"}</b>
            <Cost parts={first.parts} most={scale} />
          </div>
        )}
      </td>
      <td data-label="Why" class={"soft reason reason-" + first?.reason} title={first?.reason}>
        {first && reason(first.reason)}
      </td>
      <td data-label="Then" class="soft">
        {r.pool?.slice(1).map((c) => c.upstream).join(", ") || "–"}
      </td>
      <td data-label="Pulls" class="num">
        {rate(r.demand)}
      </td>
    </tr>
  );
}

function fits(r: PoolRow, find: string, only: Only): boolean {
  const well = r.role === "center" || (r.pool?.length && r.pool[0]!.reason !== "over_capacity");
  if (only === "trouble" && well && r.follows && r.state === "up") return false;
  if (only === "edited" && !r.edited) return false;
  if ((only === "relay" || only === "edge") && r.role !== only) return false;
  return !find || [r.node, r.datacenter, r.region, r.role, r.pool?.[0]?.upstream ?? ""].some((s) => s.toLowerCase().includes(find));
}
