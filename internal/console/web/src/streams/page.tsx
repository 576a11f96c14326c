import {useEffect, useRef} from "preact/hooks";
import {count, isTime, many, now, rate, span, visible} from "../lib/format";
import {beside, follow, look, route, streamAt} from "../lib/route";
import {use} from "../lib/store";
import type {StreamRow, Streams} from "../lib/stream-model";
import {arrows, useAsked, useLater} from "../lib/use";
import {Empty, Failed, Search, Wait} from "../ui/basic";
import {Icon} from "../ui/icon";
import {StreamView} from "./stream";

const most = 200;

export function StreamsPage() {
  const {at, query} = use(route);
  const find = query.get("find") ?? "";
  const name = at.join("/");
  const asked = useLater(find, 200);
  const {value, error, again} = useAsked<Streams>("/api/streams", {q: asked, limit: most}, 2500);
  const kept = useRef<Streams | undefined>(undefined); // what the letters before matched, until the answer is there
  useEffect(() => {
    if (value) kept.current = value;
  }, [value]);
  const list = value ?? kept.current;
  return (
    <div class={"streams" + (name ? " chosen" : "")}>
      <section class="card stream-list" aria-label="Streams">
        <div class="head">
          <Search label="Find a stream" placeholder="Name, or node it is published at" value={find} onInput={(v) => look({find: v}, true)} />
        </div>
        {error && !list ? (
          <div class="inside">
            <Failed error={error} again={again} />
          </div>
        ) : !list ? (
          <Wait what="Asking for streams" />
        ) : list.total === 0 ? (
          <Empty title="Nothing is live">A stream appears here a second after it is published to any node.</Empty>
        ) : !list.streams?.length ? (
          <Empty title={`Nothing matches “${find}”`}>{many(list.total, "stream")} in all.</Empty>
        ) : (
          <>
            <ul class="stream-rows" onKeyDown={(e) => arrows(e, "a")}>
              {list.streams.map((s) => (
                <li key={s.name}>
                  <StreamLine s={s} chosen={s.name === name} />
                </li>
              ))}
            </ul>
            {list.matched > list.streams.length && <p class="inside soft small">The {list.streams.length} most viewed of {count(list.matched)}. Search for others.</p>}
          </>
        )}
      </section>
      {name ? (
        <div class="stack">
          <a class="button flat small only-narrow" href={beside(["streams"])} onClick={follow}>
            <Icon name="back" /> All streams
          </a>
          <StreamView name={name} key={name} />
        </div>
      ) : (
        <section class="card not-narrow">
          <Empty title="Choose a stream">Its tree shows who has it from whom, how late it is at each hop, and who watches.</Empty>
        </section>
      )}
    </div>
  );
}

function StreamLine({s, chosen}: {s: StreamRow; chosen: boolean}) {
  return (
    <a href={beside(streamAt(s.name))} onClick={follow} aria-current={chosen ? "true" : undefined}>
      <strong class="clip">{visible(s.name)}</strong>
      <span class="num">
        <Icon name="viewers" label="viewers" /> {count(s.viewers)}
      </span>
      <span class="soft small clip">
        {s.source ? `from ${s.ingest ?? s.source}` : <span class="is-warn">source not known</span>}
        {isTime(s.since) && ` · ${span((now() - Date.parse(s.since)) / 1000)}`}
      </span>
      <span class="num soft small">
        {rate(s.bitrate)} · {many(s.nodes, "node")}
      </span>
    </a>
  );
}
