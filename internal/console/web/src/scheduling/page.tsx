import {useMemo, useState} from "preact/hooks";
import {Refused} from "../lib/api";
import {ago, count, many, ms, share} from "../lib/format";
import type {Level} from "../lib/level";
import {address, follow, look, nodeAt, route} from "../lib/route";
import type {Placed, Recheck, Scheduling} from "../lib/scheduling-model";
import {use} from "../lib/store";
import type {Quality} from "../lib/stream-model";
import {outcome, reason, ways} from "../lib/words";
import {useAsked} from "../lib/use";
import {Empty, Failed, Notice, Search, Tag, Wait} from "../ui/basic";
import {Nowhere} from "../ui/nowhere";
import {TryAddress} from "./try";

export function SchedulingPage() {
  const {at, query} = use(route);
  const domain = query.get("domain") ?? "";
  const find = query.get("find") ?? "";
  const {value: s, error, again} = useAsked<Scheduling>("/api/scheduling", {domain}, 3000);
  if (at.length) return <Nowhere />;
  if (!s && error instanceof Refused && error.status === 404) {
    return (
      <section class="card">
        <Empty title={`The domain ${domain} is not served`}>
          <a href={address(["scheduling"])} onClick={follow}>
            To those that are
          </a>
        </Empty>
      </section>
    );
  }
  if (!s) return error ? <Failed error={error} again={again} /> : <Wait what="Asking where clients go" />;
  if (!s.domains?.length) {
    return (
      <section class="card">
        <Empty title="No domain is served">
          Write the names that players ask for into the document “domains”, and regions into “network”:{" "}
          <a href={address(["documents", "domains"])} onClick={follow}>
            to the documents
          </a>
          .
        </Empty>
      </section>
    );
  }
  return (
    <div class="scheduling">
      <div class="stack">
        <Accuracy list={s.rechecks ?? []} />
        <section class="card" aria-label="Where clients go">
          <div class="head">
            <h2>Where clients go</h2>
            <select class="input" style={{width: "auto", maxWidth: "100%"}} aria-label="Domain" value={s.domain} onChange={(e) => look({domain: e.currentTarget.value})}>
              {s.domains.map((d) => (
                <option key={d} value={d}>
                  {d}
                </option>
              ))}
            </select>
            <Search label="Find a region, ISP or edge" placeholder="Region, ISP or edge" value={find} onInput={(v) => look({find: v}, true)} />
          </div>
          {!s.state_at && (
            <div class="inside">
              <Notice level="warn">Nothing is known of the health of edges yet: the least bad are given.</Notice>
            </div>
          )}
          <Rows s={s} find={find.toLowerCase()} />
          <p class="inside soft small">
            Snapshot {s.version}, health as of {ago(s.state_at)}.{s.rows_left > 0 && ` ${many(s.rows_left, "place")} more are not shown.`}
          </p>
        </section>
      </div>
      <TryAddress domain={s.domain} />
    </div>
  );
}

interface Judged {
  right: number;
  wrong: number;
}

// judge counts what edges found of players that DNS had sent: here and near are right.
function judge(list: Recheck[]): Judged {
  const sum = (...words: string[]) => list.filter((r) => r.way === "name" && words.includes(r.outcome)).reduce((a, r) => a + r.count, 0);
  return {right: sum("here", "near"), wrong: sum("sent_on")};
}

const accuracy = (j: Judged): number | undefined => (j.right + j.wrong ? j.right / (j.right + j.wrong) : undefined);
const accuracyLevel = (a: number): Level => (a >= 0.97 ? "good" : a >= 0.9 ? "fair" : a >= 0.75 ? "warn" : "bad");

function Accuracy({list}: {list: Recheck[]}) {
  const [open, setOpen] = useState(false);
  const all = judge(list);
  const a = accuracy(all);
  const by = new Map<string, {way: string; outcome: string; count: number}>();
  for (const r of list) {
    const key = r.way + r.outcome;
    const row = by.get(key);
    if (row) row.count += r.count;
    else by.set(key, {way: r.way, outcome: r.outcome, count: r.count});
  }
  const rows = [...by.values()].sort((x, y) => y.count - x.count);
  return (
    <section class="card" aria-label="Re-check accuracy">
      <div class="inside accuracy">
        <div class="big-figures">
          <div>
            <b class={a === undefined ? "" : "is-" + accuracyLevel(a)}>{a === undefined ? "–" : share(a)}</b>
            <small>sent to the right edge</small>
          </div>
          <div>
            <b>{count(all.right + all.wrong)}</b>
            <small>players looked at again</small>
          </div>
          <div>
            <b>{count(all.wrong)}</b>
            <small>sent on by the edge</small>
          </div>
        </div>
        {rows.length > 0 ? (
          <button class="as-link small" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? "Fewer details" : "What edges found"}
          </button>
        ) : (
          <p class="soft small">No edge has looked at a player again yet.</p>
        )}
      </div>
      {open && (
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th>How they came</th>
                <th>What the edge found</th>
                <th class="num">Players</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((r) => (
                <tr key={r.way + r.outcome}>
                  <td>{ways[r.way] ?? r.way}</td>
                  <td title={r.outcome}>{outcome(r.outcome)}</td>
                  <td class="num">{count(r.count)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Rows({s, find}: {s: Scheduling; find: string}) {
  const rows = useMemo(() => (s.rows ?? []).filter((r) => !find || [r.region, r.isp, ...r.candidates.map((c) => c.node)].some((t) => t.toLowerCase().includes(find))), [s, find]);
  if (!rows.length) return <Empty title={find ? `Nothing matches “${find}”` : "No place is known"} />;
  return (
    <div class="scroll">
      <table class="places">
        <thead>
          <tr>
            <th>Clients of</th>
            <th>Go to</th>
            <th>Why</th>
            <th class="num">Right edge</th>
            <th class="num">First frame</th>
            <th class="num">Stalls</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <Row key={r.region + "/" + r.isp} r={r} s={s} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

const fine = new Set(["placed", "pinned"]);

function Row({r, s}: {r: Placed; s: Scheduling}) {
  const here = (x: {region: string; isp: string}) => x.region === r.region && x.isp === r.isp;
  const a = accuracy(judge((s.rechecks ?? []).filter(here)));
  const q = sum((s.quality ?? []).filter(here));
  const near = r.candidates.slice(0, r.near);
  const rest = r.candidates.slice(r.near);
  return (
    <tr data-region={r.region} data-isp={r.isp}>
      <td data-label="Clients of">
        <strong>{r.region || "an unknown place"}</strong> {r.isp && <span class="soft">{r.isp}</span>}
      </td>
      <td data-label="Go to">
        {r.candidates.length === 0 ? (
          <Tag level="bad">nowhere</Tag>
        ) : (
          <span class="chips">
            {near.map((c) => (
              <a key={c.node} class="chip" href={address(nodeAt(c.node))} onClick={follow} title={`${c.datacenter}, ${c.region}: coverage ${ms(c.coverage)}, quality ${ms(c.quality)}, load ${ms(c.load)}, health ${ms(c.health)}; weight ${c.weight}`}>
                {c.node} <span>{ms(c.cost)}</span>
              </a>
            ))}
            {rest.length > 0 && (
              <span class="soft small" title={rest.map((c) => `${c.node} ${ms(c.cost)}`).join("\n")}>
                else {rest.map((c) => c.node).slice(0, 2).join(", ")}
                {rest.length > 2 && "…"}
              </span>
            )}
          </span>
        )}
      </td>
      <td data-label="Why">{fine.has(r.reason) ? <span class="soft small">{reason(r.reason)}</span> : <Tag level={r.reason === "no_edges" ? "bad" : "warn"}>{reason(r.reason)}</Tag>}</td>
      <td data-label="Right edge" class="num">
        {a === undefined ? <span class="soft">–</span> : <span class={"is-" + accuracyLevel(a)}>{share(a)}</span>}
      </td>
      <td data-label="First frame" class="num">
        {ms(q?.first)}
      </td>
      <td data-label="Stalls" class="num">
        {q ? q.stalls.toFixed(1) + " /h" : "–"}
      </td>
    </tr>
  );
}

// sum joins what players told of several edges, weighted by how many told it.
function sum(list: Quality[]): {first: number | undefined; stalls: number} | undefined {
  const reports = list.reduce((a, q) => a + q.reports, 0);
  const played = list.reduce((a, q) => a + q.played, 0);
  if (!reports) return undefined;
  return {
    first: list.reduce((a, q) => a + q.first_frame * q.reports, 0) / reports || undefined,
    stalls: played ? list.reduce((a, q) => a + q.stalls * q.played, 0) / played : 0,
  };
}
