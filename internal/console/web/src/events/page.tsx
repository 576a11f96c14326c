import {useEffect, useMemo, useState} from "preact/hooks";
import {get} from "../lib/api";
import {count, many, moment, visible} from "../lib/format";
import {events as live, line} from "../lib/live";
import {address, follow, look, nodeAt, route, streamAt} from "../lib/route";
import {use} from "../lib/store";
import type {Event, Events} from "../lib/stream-model";
import {eventReason, kind} from "../lib/words";
import {useLater} from "../lib/use";
import {Empty, Failed, Wait, signs} from "../ui/basic";
import {ends, eventLevel} from "../ui/events";
import {Icon} from "../ui/icon";
import {Nowhere} from "../ui/nowhere";

interface Filter {
  kind: string;
  node: string;
  stream: string;
  reason: string;
}

const shown = 300;

export function EventsPage() {
  const {at, query} = use(route);
  const fresh = use(live);
  const l = use(line);
  const filter: Filter = {kind: query.get("kind") ?? "", node: query.get("node") ?? "", stream: query.get("stream") ?? "", reason: query.get("reason") ?? ""};
  const key = useLater(JSON.stringify(filter), 250);
  const [old, setOld] = useState<Events>();
  const [error, setError] = useState<unknown>();
  const [round, setRound] = useState(0);
  const [still, setStill] = useState<Event[]>(); // what was there when it was paused

  useEffect(() => {
    const stop = new AbortController();
    setError(undefined);
    get<Events>("/api/events", {...(JSON.parse(key) as Filter), limit: shown}, stop.signal).then(setOld, (e: unknown) => !stop.signal.aborted && setError(e));
    return () => stop.abort();
  }, [key, round, l === "live"]);

  const list = useMemo(() => {
    const all = new Map<string, Event>();
    for (const e of [...fresh.filter((e) => fits(e, JSON.parse(key) as Filter)), ...(old?.events ?? [])]) if (!all.has(e.id)) all.set(e.id, e);
    return [...all.values()].sort((a, b) => b.number - a.number).slice(0, shown);
  }, [fresh, old, key]);
  const rows = still ?? list;
  const waiting = still ? list.filter((e) => !still.length || e.number > still[0]!.number).length : 0;
  const kinds = [...new Set([...(old?.kinds ?? []), ...fresh.map((e) => e.kind), ...(filter.kind ? [filter.kind] : [])])].sort();
  const filtered = Object.values(filter).some(Boolean);

  if (at.length) return <Nowhere />;
  return (
    <section class="card" aria-label="Events">
      <div class="head">
        <div class="filters">
          <select class="input" aria-label="Kind" value={filter.kind} onChange={(e) => look({kind: e.currentTarget.value})}>
            <option value="">All kinds</option>
            {kinds.map((k) => (
              <option key={k} value={k}>
                {kind(k)}
              </option>
            ))}
          </select>
          <Text name="node" label="Node" value={filter.node} />
          <Text name="stream" label="Stream" value={filter.stream} />
          <Text name="reason" label="Reason" value={filter.reason} />
          {filtered && (
            <button class="button flat" onClick={() => look({kind: "", node: "", stream: "", reason: ""})}>
              <Icon name="close" /> Clear
            </button>
          )}
        </div>
        <button class="button" aria-pressed={!!still} onClick={() => setStill(still ? undefined : list)}>
          <Icon name={still ? "play" : "pause"} /> {still ? (waiting ? `Go on (${waiting} new)` : "Go on") : "Pause"}
        </button>
      </div>
      {error && !old ? (
        <div class="inside">
          <Failed error={error} again={() => setRound(round + 1)} />
        </div>
      ) : !old ? (
        <Wait what="Asking for events" />
      ) : !rows.length ? (
        <Empty title={filtered ? "No event matches" : "Nothing has happened yet"}>{filtered ? `${many(old.total, "event")} are remembered in all.` : "Switches, splices, refusals and nodes that come and go will stand here."}</Empty>
      ) : (
        <>
          <ol class="events">
            {rows.map((e) => (
              <EventRow key={e.id} e={e} />
            ))}
          </ol>
          <p class="inside soft small">
            The newest {count(rows.length)}
            {old.total > rows.length && ` of ${count(old.total)} that are remembered`}.
          </p>
        </>
      )}
    </section>
  );
}

function Text({name, label, value}: {name: keyof Filter; label: string; value: string}) {
  return <input class="input" aria-label={label} placeholder={label} value={value} autocomplete="off" autocapitalize="off" spellcheck={false} onInput={(e) => look({[name]: e.currentTarget.value.trim()}, true)} />;
}

function fits(e: Event, f: Filter): boolean {
  return (!f.kind || e.kind === f.kind) && (!f.reason || e.reason === f.reason) && (!f.stream || e.stream === f.stream) && (!f.node || [e.node, e.from, e.to].includes(f.node));
}

function EventRow({e}: {e: Event}) {
  const level = eventLevel(e);
  const [from, to] = ends(e);
  const node = (id: string | undefined) => {
    if (!id || /[:/]/.test(id) || (id === e.from && e.kind === "heartbeat_refused")) return id; // an address
    return (
      <a href={address(nodeAt(id))} onClick={follow}>
        {id}
      </a>
    );
  };
  const figures = Object.entries(e.figures ?? {}).filter(([, v]) => typeof v !== "object");
  return (
    <li class={"event is-" + level} data-kind={e.kind}>
      <time dateTime={e.at} title={e.at}>
        {moment(e.at)}
      </time>
      <span class="event-kind">
        <span class={"is-" + level}>
          <Icon name={signs[level]} />
        </span>
        <button onClick={() => look({kind: e.kind})} title="Only this kind">
          {kind(e.kind)}
        </button>
      </span>
      <span class="event-who">
        {node(e.node) || <span class="soft">{e.router}</span>}
        {(from || to) && (
          <span>
            {!from && "to "}
            {node(from)}
            {from && to && " → "}
            {node(to)}
          </span>
        )}
      </span>
      <span class="event-why">
        {e.stream && (
          <a href={address(streamAt(e.stream))} onClick={follow}>
            {visible(e.stream)}
          </a>
        )}
        {e.reason && (
          <button onClick={() => look({reason: e.reason})} title={`Only ${e.reason}`}>
            {eventReason(e.reason)}
          </button>
        )}
        {e.detail && <span class="soft">{e.detail}</span>}
        {figures.length > 0 && <span class="soft mono small">{figures.map(([k, v]) => `${k}=${v}`).join(" ")}</span>}
      </span>
    </li>
  );
}
