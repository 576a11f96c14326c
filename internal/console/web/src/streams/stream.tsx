import {useState} from "preact/hooks";
import {Refused} from "../lib/api";
import {ago, count, many, ms, rate, visible} from "../lib/format";
import type {Stream, StreamNode} from "../lib/stream-model";
import {useAsked} from "../lib/use";
import {address, follow} from "../lib/route";
import {Empty, Failed, Notice, Tag, Wait} from "../ui/basic";
import {EventLines} from "../ui/events";
import {Icon} from "../ui/icon";
import {Player} from "./player";
import {Tree} from "./tree";

export function StreamView({name}: {name: string}) {
  const {value: s, error, again} = useAsked<Stream>("/api/stream", {name}, 1000);
  const [play, setPlay] = useState<string>(); // the edge to play from
  const gone = error instanceof Refused && error.status === 404;
  if (!s) {
    return (
      <section class="card">
        {gone ? (
          <Empty title={`${visible(name)} is not live`}>No node carries it. This page goes on by itself when somebody publishes it.</Empty>
        ) : error ? (
          <div class="inside">
            <Failed error={error} again={again} />
          </div>
        ) : (
          <Wait what="Asking for its tree" />
        )}
      </section>
    );
  }
  const tree = s.tree ?? [];
  const edges = tree.filter((n) => n.play);
  return (
    <>
      <section class="card" aria-label={`Stream ${s.name}`}>
        <div class="head">
          <h1 class="grow">{visible(s.name)}</h1>
          {gone && <Tag level="warn">ended</Tag>}
          {edges.length > 0 && !play && (
            <button class="button primary" onClick={() => setPlay(best(edges).node)}>
              <Icon name="play" /> Play
            </button>
          )}
        </div>
        <div class="inside stack">
          <div class="big-figures">
            <Figure value={count(s.viewers)} name="viewers" />
            <Figure value={rate(s.bitrate)} name={s.since ? `published ${ago(s.since)}` : "bitrate"} />
            <Figure value={count(s.copies)} name={`${s.copies === 1 ? "copy" : "copies"}, ${count(s.crosses)} crossing`} />
            <Figure value={ms(latest(tree))} name="to the last edge" />
          </div>
          {!s.source && (
            <Notice level="warn">
              <strong>Nobody knows where it is published.</strong> Nodes that carry it send what they still have.
            </Notice>
          )}
          <Hops tree={tree} />
        </div>
      </section>
      {play && <Player name={s.name} edges={edges} from={play} choose={setPlay} close={() => setPlay(undefined)} />}
      <section class="card" aria-label="Tree">
        <div class="head">
          <h2 class="grow">Who has it from whom</h2>
          <span class="soft small">{many(s.nodes, "node")}</span>
        </div>
        <Tree name={s.name} tree={tree} onPlay={(n) => setPlay(n.node)} />
      </section>
      <section class="card" aria-label="Events of the stream">
        <div class="head">
          <h2 class="grow">Events</h2>
          <a class="small" href={address(["events"], {stream: s.name})} onClick={follow}>
            All of this stream
          </a>
        </div>
        <div class="inside">
          <EventLines list={s.events ?? []} />
        </div>
      </section>
    </>
  );
}

function Figure({value, name}: {value: string; name: string}) {
  return (
    <div>
      <b>{value}</b>
      <small>{name}</small>
    </div>
  );
}

// best is the edge that most watch: it is the one to look at first.
const best = (edges: StreamNode[]): StreamNode => edges.reduce((a, b) => (b.viewers > a.viewers ? b : a));

const latest = (tree: StreamNode[]): number | undefined => {
  const hanging = tree.filter((n) => n.hops > 0);
  return hanging.length ? Math.max(...hanging.map((n) => n.delay)) : undefined;
};

// Hops sums each hop up: how many copies go over it, and how late they are.
function Hops({tree}: {tree: StreamNode[]}) {
  const deepest = Math.max(0, ...tree.map((n) => n.hops));
  if (!deepest) return null;
  const hops = Array.from({length: deepest}, (_, i) => tree.filter((n) => n.hops === i + 1));
  const scale = Math.max(1, ...hops.flat().map((n) => n.delay));
  return (
    <ol class="hops" aria-label="Hop by hop">
      {hops.map((nodes, i) => {
        const delays = nodes.map((n) => n.hop_delay).sort((a, b) => a - b);
        const worst = Math.max(...nodes.map((n) => n.delay));
        return (
          <li key={i}>
            <span class="soft">Hop {i + 1}</span>
            <b>{many(nodes.length, "copy", "copies")}</b>
            <span class="hop-bar" aria-hidden="true">
              <i style={{width: (100 * worst) / scale + "%"}} />
            </span>
            <span class="num">
              {worst ? (
                <>
                  {ms(delays[Math.floor(delays.length / 2)])} <span class="soft">each, {ms(worst)} in all</span>
                </>
              ) : (
                <span class="soft">{nodes.some((n) => n.source) ? "pushed, not measured" : "not measured"}</span>
              )}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
