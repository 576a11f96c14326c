// The map: tiers from left to right, and who pulls from whom. What is well is quiet; what
// is not has a colour, a dash of its own and its figure beside it.
import {useMemo, useRef, useState} from "preact/hooks";
import {linkGrade, linkLevel} from "../lib/health";
import {count, many, ms, rate, share} from "../lib/format";
import {severity} from "../lib/level";
import type {Network} from "../lib/model";
import {states, tier} from "../lib/words";
import {useWidth} from "../lib/use";
import {Icon} from "../ui/icon";
import {signs} from "../ui/basic";
import {labels, plot, type Box, type Frame, type Plot, type Wire} from "./layout";

interface Props {
  network: Network;
  node?: string; // that is chosen
  link?: string; // FROM>TO
  onNode: (id: string) => void;
  onLink: (from: string, to: string) => void;
}

const px = (at: Record<string, number>) => Object.fromEntries(Object.entries(at).map(([key, v]) => [key, v + "px"]));

export function NetworkMap({network, node, link, onNode, onLink}: Props) {
  const {ref, width} = useWidth<HTMLDivElement>(900);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [over, setOver] = useState<string>();
  const p = useMemo(() => plot(network, Math.max(width, 300), open), [network, width, open]);
  const fold = (key: string) => {
    const next = new Set(open);
    if (!next.delete(key)) next.add(key);
    setOpen(next);
  };

  const boxOf = (id: string | undefined) => (id ? p.boxes.find((b) => b.nodes.some((n) => n.id === id))?.key : undefined);
  const chosen = boxOf(node);
  const wire = link ? p.wires.find((w) => w.links.some((l) => `${l.from}>${l.to}` === link))?.key : undefined;
  const bright = over ?? chosen;
  const touches = (w: Wire) => w.from === bright || w.to === bright;
  const lit = (w: Wire) => (wire && !over ? w.key === wire : !bright || touches(w));

  return (
    <div class="map" ref={ref} style={{height: p.height + 8 + "px"}}>
      <svg width={p.width} height={p.height + 8} aria-hidden="true" onMouseLeave={() => setOver(undefined)}>
        {p.wires
          .filter((w) => !w.standby || touches(w) || w.key === wire)
          .map((w) => (
            <WireLine key={w.key} wire={w} dim={!lit(w)} chosen={w.key === wire} onClick={() => onLink(w.links[0]!.from, w.links[0]!.to)} />
          ))}
      </svg>
      {p.columns.map((c) => (
        <h2 key={c.role} class="tier" style={px({left: c.x, width: p.frameWidth})}>
          {tier[c.role]} <span>{c.nodes}</span>
        </h2>
      ))}
      {p.frames.map((f) => (
        <FrameBox key={f.key} frame={f} plot={p} onFold={() => fold(f.key)} />
      ))}
      <Nodes plot={p} chosen={chosen} onOver={setOver} onOpen={(b) => (b.key.startsWith("dc:") ? fold(b.key.slice(3)) : onNode(b.nodes[0]!.id))} />
      {labels(p.wires.filter((w) => !w.standby && (severity(w.level) >= severity("warn") || w.key === wire) && lit(w)), p).map(({wire: w, x, y}) => (
        <button
          key={w.key}
          class={"on-wire is-" + w.level}
          style={px({left: x, top: y})}
          aria-label={`Link ${w.links[0]!.from} to ${w.links[0]!.to}, ${linkGrade[w.level]}, costs ${ms(w.links[0]!.cost)}`}
          onClick={() => onLink(w.links[0]!.from, w.links[0]!.to)}
        >
          {!p.compact && <Icon name={signs[w.level]} />}
          {ms(w.links[0]!.cost)}
        </button>
      ))}
    </div>
  );
}

function WireLine({wire: w, dim, chosen, onClick}: {wire: Wire; dim: boolean; chosen: boolean; onClick: () => void}) {
  const worst = w.links[0]!;
  const bits = w.rate * 8;
  const thick = bits < 1e5 ? 1.4 : Math.min(5, 1.4 + Math.log10(bits / 1e5));
  const title = w.links.length > 1 ? many(w.links.length, "link") + ", the worst: " : "";
  return (
    <g class={`wire is-${w.level}${w.standby ? " standby" : ""}${dim ? " dim" : ""}${chosen ? " chosen" : ""}`} onClick={onClick}>
      <title>
        {title}
        {worst.from} → {worst.to}: {linkGrade[linkLevel(worst)]}, {ms(worst.cost)}, {rate(worst.rate)}, {many(worst.streams, "stream")}
      </title>
      <path class="touch" d={w.path} />
      <path class="drawn" d={w.path} style={{strokeWidth: thick}} />
    </g>
  );
}

function FrameBox({frame: f, plot: p, onFold}: {frame: Frame; plot: Plot; onFold: () => void}) {
  return (
    <div class="frame" style={px({left: f.x, top: f.y, width: p.frameWidth, height: f.height})}>
      {f.many ? (
        <button class="frame-name" onClick={onFold} aria-expanded={!f.folded}>
          <Icon name={f.folded ? "right" : "down"} /> <span class="clip">{f.name || "no datacenter"}</span>
        </button>
      ) : (
        <div class="frame-name">
          <span class="clip">{f.name || "no datacenter"}</span>
          {!p.compact && f.region && f.region !== f.name && <span class="region clip">{f.region}</span>}
        </div>
      )}
    </div>
  );
}

// Nodes are one stop of the Tab key; the arrow keys go from node to node.
function Nodes({plot: p, chosen, onOver, onOpen}: {plot: Plot; chosen?: string; onOver: (key?: string) => void; onOpen: (b: Box) => void}) {
  const all = useRef<HTMLDivElement>(null);
  const [stop, setStop] = useState<string>();
  const first = (stop !== undefined && p.boxes.some((b) => b.key === stop) ? stop : chosen) ?? p.boxes[0]?.key;
  const move = (e: KeyboardEvent) => {
    const at = p.boxes.find((b) => b.key === (document.activeElement as HTMLElement).dataset.key);
    if (!at) return;
    const column = e.key === "ArrowLeft" ? -1 : e.key === "ArrowRight" ? 1 : 0;
    let to: Box | undefined;
    if (column) {
      for (let c = at.column + column; c >= 0 && c < 3 && !to; c += column) {
        to = p.boxes.filter((b) => b.column === c).sort((a, b) => Math.abs(a.y - at.y) - Math.abs(b.y - at.y))[0];
      }
    } else if (e.key === "ArrowUp" || e.key === "ArrowDown") {
      const list = p.boxes.filter((b) => b.column === at.column).sort((a, b) => a.y - b.y);
      to = list[list.indexOf(at) + (e.key === "ArrowDown" ? 1 : -1)];
    } else return;
    e.preventDefault();
    if (!to) return;
    setStop(to.key);
    all.current!.querySelector<HTMLElement>(`[data-key="${CSS.escape(to.key)}"]`)?.focus();
  };
  return (
    <div ref={all} role="group" aria-label="Nodes. The arrow keys go from one to the next." onKeyDown={move}>
      {p.boxes.map((b) => (
        <NodeBox key={b.key} box={b} plot={p} chosen={b.key === chosen} stop={b.key === first} onOver={onOver} onOpen={() => (setStop(b.key), onOpen(b))} />
      ))}
    </div>
  );
}

function NodeBox({box: b, plot: p, chosen, stop, onOver, onOpen}: {box: Box; plot: Plot; chosen: boolean; stop: boolean; onOver: (key?: string) => void; onOpen: () => void}) {
  const n = b.nodes[0]!;
  const single = !b.key.startsWith("dc:");
  const sum = (f: (x: typeof n) => number) => b.nodes.reduce((a, x) => a + f(x), 0);
  const use = single ? n.use : sum((x) => x.load) / Math.max(1, sum((x) => x.capacity));
  const up = b.nodes.filter((x) => x.state !== "down").length;
  const title = single ? n.id : `${up} of ${b.nodes.length} up`;
  const state = single ? states[n.state] : up < b.nodes.length ? "some down" : "up";
  const viewers = sum((x) => x.viewers);
  const watched = n.role === "edge" || viewers > 0;
  const what = watched ? many(viewers, "viewer") : n.role === "center" ? many(sum((x) => x.sources), "source") : single ? many(n.streams, "stream") : many(b.nodes.length, "relay");
  const sign = (
    <i class="sign">
      <Icon name={single && n.state === "draining" ? "drain" : signs[b.level]} />
    </i>
  );
  return (
    <button
      class={`node is-${b.level}${chosen ? " chosen" : ""}${single ? "" : " several"}`}
      data-key={b.key}
      style={px({left: b.x, top: b.y, width: p.boxWidth, height: p.boxHeight})}
      tabIndex={stop ? 0 : -1}
      aria-pressed={chosen}
      onMouseEnter={() => onOver(b.key)}
      onMouseLeave={() => onOver(undefined)}
      onFocus={() => onOver(b.key)}
      onBlur={() => onOver(undefined)}
      onClick={onOpen}
    >
      <span class="node-name">
        {!p.compact && sign}
        <span class="clip">{title}</span>
        <span class="out">
          , {n.role}, {state},{" "}
        </span>
        {single && n.edited && !p.compact && <Icon name="tune" label="edited by an operator" />}
      </span>
      <span class="node-figures">
        <span class="clip">
          {p.compact && sign} {single && n.state !== "up" ? <b>{state}</b> : watched ? <><Icon name="viewers" label="viewers" /> {count(viewers)}</> : what}
        </span>
        {!p.compact && up > 0 && <span class="node-rate">{rate(sum((x) => x.load))}</span>}
        <span class="out">, {share(use)} of its capacity</span>
      </span>
      <span class={"use" + (use >= 1 ? " is-bad" : use >= 0.85 ? " is-warn" : "")}>
        <i style={{width: Math.min(1, use) * 100 + "%"}} />
      </span>
    </button>
  );
}
