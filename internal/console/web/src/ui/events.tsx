// Events in short lines, for panels.
import {clock, moment, visible} from "../lib/format";
import type {Level} from "../lib/level";
import type {Event} from "../lib/stream-model";
import {eventReason, kind} from "../lib/words";
import {Icon} from "./icon";
import {signs} from "./basic";

const bad = new Set(["node_down", "router_down", "store_down", "document_refused"]);
const warn = new Set(["heartbeat_refused", "refused", "lost", "node_left_out", "node_forgotten"]);
const good = new Set(["node_up", "router_up", "store_up"]);

export function eventLevel(e: Event): Level {
  if (bad.has(e.kind)) return "bad";
  if (warn.has(e.kind)) return "warn";
  return good.has(e.kind) ? "good" : "off";
}

// ends are the nodes between which something happened; what a router did itself has none.
export const ends = (e: Event): [string?, string?] => (e.node ? [e.from, e.to] : []);

// where says what an event is about, in a few words.
function where(e: Event, here?: string): string {
  const [from, to] = ends(e);
  const way = from && to ? `${from} → ${to}` : from ? `from ${from}` : to ? `to ${to}` : "";
  return [e.node && e.node !== here ? e.node : "", way].filter(Boolean).join(": ");
}

export function EventLines({list, here}: {list: Event[]; here?: string}) {
  if (!list.length) return <p class="soft small">None that anybody remembers.</p>;
  return (
    <ul class="event-lines">
      {list.slice(0, 12).map((e) => (
        <li key={e.id || e.number}>
          <time dateTime={e.at} title={moment(e.at)}>
            {clock(e.at)}
          </time>
          <span class={"is-" + eventLevel(e)}>
            <Icon name={signs[eventLevel(e)]} />
          </span>
          <span class="grow">
            <b>{kind(e.kind)}</b> {where(e, here)}{" "}
            <span class="soft">
              {e.stream && <bdi>{visible(e.stream)}</bdi>}
              {[eventReason(e.reason), e.detail].filter(Boolean).map((s, i) => (i || e.stream ? " · " : "") + s)}
            </span>
          </span>
        </li>
      ))}
    </ul>
  );
}
