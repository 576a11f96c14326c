// A node's pool, why it is so, and what an operator can do about it.
import {useState} from "preact/hooks";
import {mayEdit, Refused, session} from "../lib/api";
import {many, ms, rate} from "../lib/format";
import type {Node} from "../lib/model";
import type {Choice, Plan} from "../lib/plan-model";
import {address, follow, nodeAt} from "../lib/route";
import {use} from "../lib/store";
import {reason, states} from "../lib/words";
import {useAsked} from "../lib/use";
import {Empty, Failed, Tag, Wait} from "../ui/basic";
import {Cost, CostKey} from "../ui/choices";
import {Panel} from "../ui/dialog";
import {Icon} from "../ui/icon";
import {add, apply, draft, held} from "./draft";
import {HeldList} from "./edits";

export function SteerPanel({id, plan, close}: {id: string; plan: Plan; close: () => void}) {
  const {value: n, error, again} = useAsked<Node>("/api/nodes/" + encodeURIComponent(id), {}, 3000);
  const gone = error instanceof Refused && error.status === 404;
  return (
    <Panel
      name={id}
      title={id}
      close={close}
      under={
        n && (
          <span>
            {n.role} · {n.datacenter || "no datacenter"} ·{" "}
            <a href={address(nodeAt(id))} onClick={follow}>
              on the map
            </a>
          </span>
        )
      }
    >
      {n ? <Steer n={n} plan={plan} /> : <section>{gone ? <Empty title="No such node" /> : error ? <Failed error={error} again={again} /> : <Wait what="Asking the router" />}</section>}
    </Panel>
  );
}

function Steer({n, plan}: {n: Node; plan: Plan}) {
  const who = use(session);
  const steps = use(draft);
  const edits = apply(steps, plan.edits.edits); // as they are drafted
  const pool = n.why.pool ?? [];
  const open = (n.why.candidates ?? []).filter((c) => !pool.some((p) => p.upstream === c.upstream));
  const [all, setAll] = useState(false);
  const rows: (Choice & {place: number})[] = [...pool.map((c, i) => ({...c, place: i + 1})), ...(all ? open : open.slice(0, 5)).map((c) => ({...c, place: 0}))];
  const most = Math.max(20, ...rows.map((c) => c.cost));
  const may = mayEdit(who);
  const pins = edits.pins?.find((p) => p.node === n.id && !p.stream)?.upstreams ?? [];
  const naming = held(plan.edits.edits).filter((h) => h.nodes.includes(n.id) || h.nodes.includes("dc:" + n.datacenter));
  return (
    <>
      {n.role !== "center" && (
        <section>
          <div class="row between">
            <h2>Pool</h2>
            {n.orders_due && <Tag level="warn">has not taken it yet</Tag>}
          </div>
          {rows.length === 0 && <Empty title="No upstream">Nothing above this node is known.</Empty>}
          <ol class="steer">
            {rows.map((c) => {
              const pinned = pins.includes(c.upstream);
              const ban = edits.bans?.some((b) => b.from === c.upstream && b.to === n.id);
              const weight = edits.weights?.find((w) => w.from === c.upstream && w.to === n.id)?.weight;
              return (
                <li key={c.upstream} class={c.place ? "" : "unused"}>
                  <div class="row">
                    <span class="place">{c.place || "·"}</span>
                    <strong class="grow clip">{c.upstream}</strong>
                    <b class="num">{c.cost > 0 ? ms(c.cost) : "–"}</b>
                  </div>
                  <Cost parts={c.parts} most={most} />
                  <div class="row between">
                    <span class={"small soft reason-" + c.reason}>{reason(c.reason)}</span>
                    {may && (
                      <span class="row tight">
                        <Toggle icon="pin" on={pinned} name={pinned ? `Unpin ${c.upstream}` : `Pin ${c.upstream} first`} onClick={() => pin(n.id, c.upstream, pins, plan)} />
                        <Toggle icon="ban" on={!!ban} name={ban ? `Allow ${c.upstream} again` : `Ban ${c.upstream}`} onClick={() => add({kind: ban ? "unban" : "ban", from: c.upstream, to: n.id}, plan.edits.edits)} />
                        <WeightField value={weight} name={`Weight of ${c.upstream}: 2 attracts, 0.5 repels`} set={(w) => add({kind: "weight", from: c.upstream, to: n.id, weight: w}, plan.edits.edits)} />
                      </span>
                    )}
                  </div>
                </li>
              );
            })}
          </ol>
          {open.length > 5 && (
            <button class="as-link small" onClick={() => setAll(!all)}>
              {all ? "Show fewer" : `Show ${many(open.length - 5, "more candidate")}`}
            </button>
          )}
          <CostKey of={rows.map((c) => c.parts)} />
        </section>
      )}
      {may && <Own n={n} plan={plan} />}
      <section>
        <h2>Edits that name it</h2>
        {naming.length ? <HeldList list={naming} plan={plan} /> : <p class="soft small">None.</p>}
      </section>
      <section>
        <h2>Who pulls from it</h2>
        <p class="small">
          {n.why.downstream?.length ? n.why.downstream.slice(0, 30).join(", ") : "Nobody has it as the first choice."}
          {(n.why.downstream?.length ?? 0) > 30 && ` and ${n.why.downstream.length - 30} more`}
        </p>
        {n.why.upstream && n.why.upstream !== "none" && <p class="small soft">It is not chosen: {reason(n.why.upstream)}.</p>}
      </section>
    </>
  );
}

// pin puts an upstream before those that are pinned, or takes its pin away.
function pin(node: string, upstream: string, pins: string[], plan: Plan): void {
  const rest = pins.filter((u) => u !== upstream);
  const next = rest.length < pins.length ? rest : [upstream, ...rest];
  add(next.length ? {kind: "pin", node, upstreams: next} : {kind: "unpin", node}, plan.edits.edits);
}

function Toggle({icon, on, name, onClick}: {icon: "pin" | "ban"; on: boolean; name: string; onClick: () => void}) {
  return (
    <button class={"round tiny" + (on ? " on" : "")} aria-pressed={on} aria-label={name} title={name} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

function WeightField({value, name, set}: {value?: number; name: string; set: (w?: number) => void}) {
  const change = (text: string) => {
    const w = Number(text);
    if (text === "" || w === 1) set(undefined);
    else if (w >= 0.01 && w <= 100) set(w);
  };
  return <input class="input narrow" type="number" min="0.01" max="100" step="any" placeholder="×1" aria-label={name} title={name} value={value ?? ""} onChange={(e) => change(e.currentTarget.value)} />;
}

// Own are the edits of the node itself.
function Own({n, plan}: {n: Node; plan: Plan}) {
  use(draft);
  const base = plan.edits.edits;
  const edits = apply(draft.get(), base);
  const drains = !!edits.drains?.some((d) => d.node === n.id);
  const capacity = edits.capacities?.find((c) => c.node === n.id)?.capacity;
  const price = edits.prices?.find((p) => p.node === n.id)?.price;
  const number = (text: string, least: number) => (text === "" || !(Number(text) >= least) ? undefined : Number(text));
  return (
    <section>
      <h2>The node itself</h2>
      <div class="row between">
        <span class="small">{drains ? "It takes no new work." : `It is ${states[n.state]}.`}</span>
        <button class="button small" aria-pressed={drains} onClick={() => add({kind: drains ? "undrain" : "drain", node: n.id}, base)}>
          <Icon name="drain" /> {drains ? "Let it take work again" : "Drain"}
        </button>
      </div>
      <div class="two">
        <label class="field">
          <span>Capacity, Mbit/s</span>
          <input
            class="input"
            type="number"
            min="0"
            step="any"
            placeholder={n.capacity ? rate(n.capacity) : "not known"}
            value={capacity === undefined ? "" : (capacity * 8) / 1e6}
            onChange={(e) => {
              const mbit = number(e.currentTarget.value, 0);
              add({kind: "capacity", node: n.id, capacity: mbit === undefined ? undefined : Math.round((mbit * 1e6) / 8)}, base);
            }}
          />
        </label>
        <label class="field">
          <span>Price per GB</span>
          <input class="input" type="number" min="0" step="any" placeholder={String(n.price || 0)} value={price ?? ""} onChange={(e) => add({kind: "price", node: n.id, price: number(e.currentTarget.value, 0)}, base)} />
        </label>
      </div>
    </section>
  );
}
