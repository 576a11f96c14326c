import {useMemo} from "preact/hooks";
import {Refused} from "../lib/api";
import {ago, count, many, ms, perHour, rate, share, span, visible} from "../lib/format";
import {hasTwin, linkLevel, nodeLevel} from "../lib/health";
import type {LinkRow, Node} from "../lib/model";
import {address, follow, linkAt, move, steerAt, streamAt} from "../lib/route";
import {reason, states} from "../lib/words";
import {useAsked} from "../lib/use";
import {Empty, Facts, Failed, Meter, Tag, Wait} from "../ui/basic";
import {Chart} from "../ui/chart";
import {Choices, CostKey} from "../ui/choices";
import {Panel} from "../ui/dialog";
import {EventLines} from "../ui/events";
import {Icon} from "../ui/icon";
import {LinkTag} from "./lists";

export function NodePanel({id, close}: {id: string; close: () => void}) {
  const {value: n, error, again} = useAsked<Node>("/api/nodes/" + encodeURIComponent(id), {}, 2000);
  const gone = error instanceof Refused && error.status === 404;
  return (
    <Panel
      name={id}
      title={id}
      close={close}
      under={
        n && (
          <>
            <span>
              {n.role} · {n.datacenter || "no datacenter"}
              {n.region && n.region !== n.datacenter && ` · ${n.region}`} · {n.isps?.length ? n.isps.map((i) => (i === "*" ? "all ISPs" : i)).join(", ") : "no ISP named"}
            </span>
          </>
        )
      }
    >
      {n ? (
        <About n={n} />
      ) : (
        <section>{gone ? <Empty title="No such node">It was forgotten, or never was.</Empty> : error ? <Failed error={error} again={again} /> : <Wait what="Asking the router" />}</section>
      )}
    </Panel>
  );
}

function About({n}: {n: Node}) {
  const level = nodeLevel(n);
  const why = n.why;
  const open = why.candidates?.filter((c) => !c.place) ?? [];
  const most = Math.max(1, ...(why.pool ?? []).map((c) => c.cost), ...open.slice(0, 6).map((c) => c.cost));
  const {times, lines} = useMemo(() => trend(n), [n]);
  return (
    <>
      <section>
        <div class="row">
          <Tag level={level}>{states[n.state]}</Tag>
          {n.edited && (
            <Tag level="accent" icon="tune">
              edited
            </Tag>
          )}
          {hasTwin(n) ? <Tag level="warn">two go by this name</Tag> : n.state === "down" && n.denied && <Tag level="bad">refused: {reason(n.denied.reason)}</Tag>}
          {n.orders_due && <Tag level="warn">has not taken the newest plan yet</Tag>}
          <a class="button small" style={{marginLeft: "auto"}} href={address(steerAt(n.id))} onClick={follow}>
            <Icon name="plan" /> Steer
          </a>
        </div>
        <div>
          <div class="row between small">
            <span>
              sends {rate(n.load)} of {n.capacity ? rate(n.capacity) : "an unknown capacity"}
            </span>
            <b>{share(n.use)}</b>
          </div>
          <Meter value={n.use} level={n.use >= 1 ? "bad" : n.use >= 0.85 ? "warn" : undefined} />
        </div>
        <Facts
          rows={[
            ["Viewers", count(n.viewers)],
            ["Streams", n.sources ? `${count(n.streams)}, of them ${count(n.sources)} published here` : count(n.streams)],
            ["Pulls", rate(n.pulled)],
            ["Heard", n.state === "down" ? `${ago(n.heard)} (silent for ${span(n.silent)})` : `${ago(n.heard)}, by ${n.router}`],
            hasTwin(n) && ["Refused, of the same name", n.denied!.from],
            !!n.left_out && ["Players are not sent to it", n.left_out],
            !!n.refused && ["Refused", many(n.refused, "connection")],
          ]}
        />
      </section>
      {times.length > 1 && (
        <section>
          <h2>Last ten minutes</h2>
          <Chart label="Sent and pulled" times={times} lines={lines} show={rate} />
        </section>
      )}
      {n.role !== "center" && (
        <section>
          <div class="row between">
            <h2>Pulls from</h2>
            {why.frozen && (
              <Tag icon="freeze" level="warn">
                frozen
              </Tag>
            )}
          </div>
          {why.pool?.length ? <Choices list={why.pool} most={most} onPick={(up) => move(linkAt(up, n.id))} /> : <Empty title="No upstream">Nothing above it can be used: see why below.</Empty>}
          {open.length > 0 && (
            <details>
              <summary>{many(open.length, "other candidate")}</summary>
              <Choices list={open.slice(0, 12)} most={most} onPick={(up) => move(linkAt(up, n.id))} />
            </details>
          )}
          <CostKey of={[...(why.pool ?? []), ...open].map((c) => c.parts)} />
          {why.upstream && why.upstream !== "none" && <p class="small soft">Others do not pull from it: {reason(why.upstream)}.</p>}
        </section>
      )}
      <Links title="Links in use, in" list={n.in ?? []} other={(l) => l.from} />
      <Links title="Links in use, out" list={n.out ?? []} other={(l) => l.to} />
      {!!n.carried?.length && (
        <section>
          <h2>Streams {n.carried_all > n.carried.length && <span class="soft">– {n.carried.length} of {n.carried_all}</span>}</h2>
          <ul class="lines">
            {n.carried.map((s) => (
              <li key={s.name}>
                <a class="clip" href={address(streamAt(s.name))} onClick={follow}>
                  {visible(s.name)}
                </a>
                <span class="soft small">{s.source ? (s.from ? `pushed here by ${s.from}` : "published here") : s.from ? `${ms(s.delay)} from ${s.from}` : "pulled from nobody"}</span>
                <span class="num small">{many(s.viewers, "viewer")}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {!!n.quality?.length && (
        <section>
          <h2>Players</h2>
          <div class="scroll">
            <table>
              <thead>
                <tr>
                  <th>From</th>
                  <th class="num">First byte</th>
                  <th class="num">First frame</th>
                  <th class="num">Stalls</th>
                  <th class="num">Delay</th>
                </tr>
              </thead>
              <tbody>
                {n.quality.map((q) => (
                  <tr key={q.region + "/" + q.isp}>
                    <td>{[q.region || "unknown", q.isp].filter(Boolean).join(" / ")}</td>
                    <td class="num">{ms(q.first_byte || undefined)}</td>
                    <td class="num">{ms(q.first_frame || undefined)}</td>
                    <td class="num">{q.reports ? perHour(q.stalls) : "–"}</td>
                    <td class="num">{ms(q.delay || undefined)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      <section>
        <h2>Events</h2>
        <EventLines list={n.events ?? []} here={n.id} />
        <a class="small" href={address(["events"], {node: n.id})} onClick={follow}>
          All events of this node
        </a>
      </section>
      <section>
        <h2>About</h2>
        <Facts
          rows={[
            ["Pulled from at", <code>{n.url || "–"}</code>],
            !!n.push && ["Takes publishes at", <code>{n.push}</code>],
            !!n.addresses?.length && ["Addresses", n.addresses.join(", ")],
            !!n.groups?.length && ["Groups", n.groups.join(", ")],
            ["Fails together with", n.domain || n.datacenter || "–"],
            ["Price", n.price ? `${n.price} per GB` : "–"],
            ["Weight", String(n.weight || 1)],
            ["Started", ago(n.started)],
            !!n.program && ["Version", n.program],
          ]}
        />
      </section>
    </>
  );
}

function Links({title, list, other}: {title: string; list: LinkRow[]; other: (l: LinkRow) => string}) {
  if (!list.length) return null;
  return (
    <section>
      <h2>{title}</h2>
      <ul class="lines">
        {list.map((l) => (
          <li key={other(l)}>
            <button class="as-link clip" onClick={() => move(linkAt(l.from, l.to))}>
              {other(l)}
            </button>
            <span class="soft small">
              {rate(l.rate)} · {many(l.streams, "stream")}
            </span>
            <LinkTag cost={l.cost} level={linkLevel(l)} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function trend(n: Node) {
  const t = n.trend ?? [];
  return {
    times: t.map((p) => Date.parse(p.at) / 1000),
    lines: [
      {label: "sent", values: t.map((p) => p.load), color: "--accent"},
      {label: "pulled", values: t.map((p) => p.pulled), color: "--warn", dash: [4, 3]},
    ],
  };
}
