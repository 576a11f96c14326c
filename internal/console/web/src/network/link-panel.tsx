import {useMemo} from "preact/hooks";
import {Refused} from "../lib/api";
import {ago, many, ms, perHour, rate, share, visible} from "../lib/format";
import {linkGrade, linkLevel} from "../lib/health";
import type {Link} from "../lib/model";
import {address, follow, move, nodeAt, streamAt} from "../lib/route";
import {parts, reason} from "../lib/words";
import {useAsked} from "../lib/use";
import {Empty, Facts, Failed, Tag, Wait} from "../ui/basic";
import {Chart} from "../ui/chart";
import {Panel} from "../ui/dialog";
import {EventLines} from "../ui/events";

export function LinkPanel({from, to, close}: {from: string; to: string; close: () => void}) {
  const {value: l, error, again} = useAsked<Link>("/api/link", {from, to}, 2000);
  const gone = error instanceof Refused && error.status === 404;
  return (
    <Panel name={`${from}>${to}`} title={`${from} → ${to}`} close={close} under={<span>{to} pulls from {from}</span>}>
      {l ? (
        <About l={l} />
      ) : (
        <section>{gone ? <Empty title="No such link">One of the two nodes is not known.</Empty> : error ? <Failed error={error} again={again} /> : <Wait what="Asking the router" />}</section>
      )}
    </Panel>
  );
}

function About({l}: {l: Link}) {
  const level = linkLevel(l);
  const {why} = l;
  const f = why.figures;
  const {times, cost, loss} = useMemo(() => trend(l), [l]);
  return (
    <>
      <section>
        <div class="row">
          <Tag level={level}>{linkGrade[level]}</Tag>
          <Tag>{l.place ? `place ${l.place} in the pool` : "not in the pool"}</Tag>
          {l.crosses && <Tag icon="swap">crosses regions or ISPs</Tag>}
        </div>
        <div class="big-figures">
          <div>
            <b>{ms(l.cost)}</b>
            <small>cost, {ms(l.promised)} promised</small>
          </div>
          <div>
            <b>{l.rtt ? ms(l.rtt) : "–"}</b>
            <small>round trip</small>
          </div>
          <div>
            <b>{share(l.loss)}</b>
            <small>lost</small>
          </div>
        </div>
        <p>
          It carries {rate(l.rate)} of {many(l.streams, "stream")}.
        </p>
        {why.reason && why.reason !== "none" && <p>It cannot be used: {reason(why.reason)}.</p>}
        <div class="row">
          <button class="button small" onClick={() => move(nodeAt(l.from))}>
            {l.from}
          </button>
          <button class="button small" onClick={() => move(nodeAt(l.to))}>
            {l.to}
          </button>
        </div>
      </section>
      {times.length > 1 && (
        <section>
          <h2>Cost and round trip, last ten minutes</h2>
          <Chart label="Cost and round trip" times={times} lines={cost} show={ms} />
          <h2>Loss</h2>
          <Chart label="Loss" times={times} lines={loss} show={share} height={84} least={0.02} />
        </section>
      )}
      <section>
        <h2>What the cost is made of</h2>
        <dl class="facts">
          {parts.map(
            ([key, name, what]) =>
              why.parts[key] > 0 && (
                <>
                  <dt title={what}>
                    <i class={"dot part-" + key} /> {name}
                  </dt>
                  <dd>{ms(why.parts[key])}</dd>
                </>
              ),
          )}
          {!!why.parts.weight && why.parts.weight !== 1 && (
            <>
              <dt>Divided by weight</dt>
              <dd>{why.parts.weight}</dd>
            </>
          )}
        </dl>
        {(why.edits?.length ?? 0) > 0 && <p class="small soft">Edits of operators: {why.edits.join("; ")}.</p>}
      </section>
      <section>
        <h2>As measured</h2>
        {why.measured ? (
          <Facts
            rows={[
              !!f.rtt && ["Round trip", ms(f.rtt)],
              !!f.connect && ["Connect", ms(f.connect)],
              !!f.delay && ["Media behind", ms(f.delay)],
              !!f.first_frame && ["First frame", ms(f.first_frame)],
              ["Probes lost", share(f.loss)],
              ["Sent again", share(f.retransmits)],
              ["Stalls", perHour(f.stalls)],
              ["Switches away", perHour(f.switches)],
              ["Tries without an answer", share(f.failed)],
              !!f.rate && ["Could deliver", rate(f.rate)],
              ["Trust", `${share(f.trust)}, of ${many(f.samples, "sample")}`],
              ["Newest", ago(f.at)],
            ]}
          />
        ) : (
          <p class="soft">Nothing yet: it counts as distance and ISPs promise.</p>
        )}
      </section>
      {!!l.carried?.length && (
        <section>
          <h2>Streams over it</h2>
          <ul class="lines">
            {l.carried.map((s) => (
              <li key={s.name}>
                <a class="clip" href={address(streamAt(s.name))} onClick={follow}>
                  {visible(s.name)}
                </a>
                <span class="num small">{rate(s.bitrate)}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section>
        <h2>Events</h2>
        <EventLines list={l.events ?? []} />
      </section>
    </>
  );
}

function trend(l: Link) {
  const t = l.trend ?? [];
  const or = (v: number) => (v > 0 ? v : null);
  return {
    times: t.map((p) => Date.parse(p.at) / 1000),
    cost: [
      {label: "cost", values: t.map((p) => p.cost), color: "--accent"},
      {label: "round trip", values: t.map((p) => or(p.rtt)), color: "--warn", dash: [4, 3]},
    ],
    loss: [{label: "lost", values: t.map((p) => p.loss), color: "--bad"}],
  };
}
