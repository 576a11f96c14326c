// Nodes and routers as tables: for many of them, and for those who do not see the map.
import {useState} from "preact/hooks";
import {ago, count, many, ms, order, rate, share, span} from "../lib/format";
import {linkGrade, nodeLevel} from "../lib/health";
import {severity, type Level} from "../lib/level";
import type {NodeRow, RouterRow} from "../lib/model";
import {beside, follow, move, nodeAt} from "../lib/route";
import {states} from "../lib/words";
import {arrows} from "../lib/use";
import {Tag} from "../ui/basic";

const step = 200; // rows at a time: they are drawn again each second

export function NodeList({nodes, chosen}: {nodes: NodeRow[]; chosen?: string}) {
  const [most, setMost] = useState(step);
  const sorted = [...nodes].sort((a, b) => severity(nodeLevel(b)) - severity(nodeLevel(a)) || order(a.id, b.id));
  return (
    <>
      <div class="scroll" onKeyDown={(e) => arrows(e, "tbody a")}>
        <table>
          <thead>
            <tr>
              <th>Node</th>
              <th>State</th>
              <th>Datacenter</th>
              <th>Pulls from</th>
              <th class="num">Viewers</th>
              <th class="num">Streams</th>
              <th class="num">Sends</th>
              <th class="num">Use</th>
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, most).map((x) => (
              <tr key={x.id} class={"pick" + (x.id === chosen ? " chosen" : "")} onClick={() => move(nodeAt(x.id))}>
                <td>
                  <a href={beside(nodeAt(x.id))} onClick={(e) => (e.stopPropagation(), follow(e))}>
                    {x.id}
                  </a>{" "}
                  <span class="soft">{x.role}</span>
                </td>
                <td>
                  <Tag level={nodeLevel(x)}>{x.state === "down" ? `down for ${span(x.silent)}` : states[x.state]}</Tag>
                </td>
                <td>{x.datacenter || "–"}</td>
                <td>{x.upstream || (x.role === "center" ? "–" : "nobody")}</td>
                <td class="num">{count(x.viewers)}</td>
                <td class="num">{count(x.streams)}</td>
                <td class="num">{rate(x.load)}</td>
                <td class="num">{x.capacity ? share(x.use) : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {sorted.length > most && (
        <button class="button flat" onClick={() => setMost(most + step)}>
          Show more: {many(sorted.length - most, "node")}
        </button>
      )}
    </>
  );
}

export function RouterList({list}: {list: RouterRow[]}) {
  return (
    <ul class="routers" aria-label="Routers">
      {list.map((r) => (
        <li key={r.id}>
          <strong>{r.url && !r.self ? <a href={r.url}>{r.id}</a> : r.id}</strong>
          <Tag level={r.up ? "good" : "bad"}>{r.up ? "up" : `down, seen ${ago(r.seen)}`}</Tag>
          {r.leader && <Tag level="accent">plans</Tag>}
          <span class="soft small">
            {r.self && "this one · "}hears {many(r.nodes, "node")} · plan {r.plan} · since {ago(r.started)}
            {r.program && ` · ${r.program}`}
          </span>
        </li>
      ))}
    </ul>
  );
}

export function LinkTag({cost, level}: {cost: number; level: Level}) {
  return (
    <Tag level={level} title={linkGrade[level]}>
      {ms(cost)}
    </Tag>
  );
}
