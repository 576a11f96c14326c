// The tree of a stream, from where its encoder is down: that is the source, or a node that
// pushes it there. What has just changed shines for a while,
// so that a switch is seen as it happens.
import {useEffect, useRef, useState} from "preact/hooks";
import {count, ms, order} from "../lib/format";
import type {Grade} from "../lib/grade-model";
import type {StreamNode} from "../lib/stream-model";
import type {Level} from "../lib/level";
import {address, follow, nodeAt} from "../lib/route";
import {states} from "../lib/words";
import {arrows} from "../lib/use";
import {Empty, Tag} from "../ui/basic";
import {Icon} from "../ui/icon";
import {WhyPath} from "./why";

const levels: Record<Grade, Level> = {good: "good", fair: "fair", poor: "warn", unknown: "off"};
const shines = 6000; // ms
const most = 400;

interface Branch {
  n: StreamNode;
  depth: number;
  last: boolean[]; // per level above: whether nothing follows there
}

export function Tree({name, tree, onPlay}: {name: string; tree: StreamNode[]; onPlay: (n: StreamNode) => void}) {
  const fresh = useFresh(tree);
  const {branches, loose} = grow(tree);
  if (!tree.length) return <Empty title="Nobody carries it" />;
  return (
    <>
      <ul class="tree" role="tree" aria-label="Tree of the stream" onKeyDown={(e) => arrows(e, ".tree-name")}>
        {branches.slice(0, most).map((b) => (
          <Line key={b.n.node} name={name} b={b} fresh={fresh.has(b.n.node)} onPlay={onPlay} />
        ))}
      </ul>
      {branches.length > most && <p class="inside soft small">and {count(branches.length - most)} more</p>}
      {loose.length > 0 && (
        <div class="loose">
          <h3>Not hanging on the source now</h3>
          <ul class="tree">
            {loose.map((n) => (
              <Line key={n.node} name={name} b={{n, depth: 0, last: []}} fresh={fresh.has(n.node)} onPlay={onPlay} />
            ))}
          </ul>
        </div>
      )}
    </>
  );
}

function Line({name, b, fresh, onPlay}: {name: string; b: Branch; fresh: boolean; onPlay: (n: StreamNode) => void}) {
  const {n, depth, last} = b;
  const [why, setWhy] = useState(false);
  return (
    <li class={"branch" + (fresh ? " fresh" : "") + (n.state === "down" ? " is-down" : "")} role="treeitem" aria-level={depth + 1} data-node={n.node} data-upstream={n.upstream}>
      <span class="twigs" aria-hidden="true">
        {last.map((end, i) => (
          <i key={i} class={i === last.length - 1 ? (end ? "twig end" : "twig") : end ? "" : "trunk"} />
        ))}
      </span>
      <span class="tree-node">
        <a class="tree-name" href={address(nodeAt(n.node))} onClick={follow}>
          {n.node}
        </a>
        {n.ingest && (
          <Tag level="accent" title="Its encoder publishes here, and the node pushes it on">
            ingest
          </Tag>
        )}
        {n.source && (
          <Tag level="accent" title="Other nodes find it here">
            source
          </Tag>
        )}
        {n.state !== "up" && <Tag level={n.state === "down" ? "bad" : "warn"}>{states[n.state]}</Tag>}
        <span class="soft small clip">{[n.role, n.datacenter].filter(Boolean).join(" · ")}</span>
      </span>
      <span class="tree-hop">
        {n.upstream && (
          <>
            <Tag level={levels[n.grade]} title={`The link from ${n.upstream} costs ${ms(n.cost)}`}>
              {n.hop_delay ? ms(n.hop_delay) : n.source ? "pushed" : "–"}
            </Tag>
            {n.crosses && (
              <span class="soft" title="between regions or ISPs">
                <Icon name="swap" label="crosses regions or ISPs" />
              </span>
            )}
          </>
        )}
      </span>
      <span class="num tree-delay">{n.source || n.hops === 0 ? "" : n.hops < 0 ? "–" : ms(n.delay)}</span>
      <span class="num tree-viewers">
        {n.viewers > 0 && (
          <>
            <Icon name="viewers" label="viewers" /> {count(n.viewers)}
          </>
        )}
      </span>
      <span class="tree-play">
        {!n.source && !n.ingest && (
          <button class={"round tiny" + (why ? " on" : "")} aria-expanded={why} aria-label={`Why ${n.node} pulls from there`} title="Why from there" onClick={() => setWhy(!why)}>
            <Icon name="info" />
          </button>
        )}
        {n.play && (
          <button class="round tiny" aria-label={`Play from ${n.node}`} title={`Play from ${n.node}`} onClick={() => onPlay(n)}>
            <Icon name="play" />
          </button>
        )}
      </span>
      {why && <WhyPath node={n.node} stream={name} />}
    </li>
  );
}

const byPlace = (a: StreamNode, b: StreamNode) => order(a.datacenter, b.datacenter) || order(a.node, b.node);

// grow turns the list into branches, each before those that hang on it.
function grow(tree: StreamNode[]): {branches: Branch[]; loose: StreamNode[]} {
  const below = new Map<string, StreamNode[]>();
  const hanging = tree.filter((n) => n.hops >= 0);
  for (const n of hanging) {
    if (n.hops === 0) continue;
    const list = below.get(n.upstream);
    if (list) list.push(n);
    else below.set(n.upstream, [n]);
  }
  const branches: Branch[] = [];
  const seen = new Set<string>();
  const walk = (n: StreamNode, last: boolean[]) => {
    if (seen.has(n.node)) return;
    seen.add(n.node);
    branches.push({n, depth: last.length, last});
    const list = (below.get(n.node) ?? []).sort(byPlace);
    list.forEach((child, i) => walk(child, [...last, i === list.length - 1]));
  };
  for (const n of hanging.filter((n) => n.hops === 0).sort(byPlace)) walk(n, []);
  return {branches, loose: tree.filter((n) => !seen.has(n.node)).sort(byPlace)};
}

// useFresh tells which nodes came, or changed their upstream, a moment ago.
function useFresh(tree: StreamNode[]): Set<string> {
  const before = useRef<Map<string, string> | undefined>(undefined);
  const [fresh, setFresh] = useState<ReadonlyMap<string, number>>(new Map());
  useEffect(() => {
    const old = before.current;
    before.current = new Map(tree.map((n) => [n.node, n.upstream]));
    const now = Date.now();
    const next = new Map([...fresh].filter(([, at]) => now - at < shines));
    if (old) for (const n of tree) if (old.get(n.node) !== n.upstream) next.set(n.node, now);
    if (next.size || fresh.size) setFresh(next);
  }, [tree]);
  return new Set(fresh.keys());
}
