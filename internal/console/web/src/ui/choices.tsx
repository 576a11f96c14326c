// A pool, or what might be in one: each upstream with its cost, part by part, and why.
import {ms} from "../lib/format";
import type {Choice, Parts} from "../lib/plan-model";
import {parts, reason} from "../lib/words";

// Cost is a bar of the parts of a cost, on a scale that its neighbours share.
export function Cost({parts: p, most}: {parts: Parts; most: number}) {
  const said = parts.filter(([key]) => p[key] > 0).map(([key, name]) => `${name} ${ms(p[key])}`);
  if (p.weight && p.weight !== 1) said.push(`weight ${p.weight}`);
  const divided = (key: keyof Parts) => (key === "behind" ? p[key] : p[key] / (p.weight || 1));
  return (
    <div class="cost" title={said.join("\n")} role="img" aria-label={said.join(", ") || "no cost"}>
      {parts.map(([key]) => p[key] > 0 && <i key={key} class={"part-" + key} style={{width: (100 * divided(key)) / Math.max(most, 1) + "%"}} />)}
    </div>
  );
}

export function CostKey({of}: {of: Parts[]}) {
  const used = parts.filter(([key]) => of.some((p) => p[key] > 0));
  return (
    <div class="cost-key">
      {used.map(([key, name, what]) => (
        <span key={key} title={what}>
          <i class={"part-" + key} />
          {name}
        </span>
      ))}
    </div>
  );
}

export function Choices({list, most, onPick}: {list: (Choice & {place?: number})[]; most: number; onPick?: (upstream: string) => void}) {
  return (
    <ol class="choices">
      {list.map((c, i) => {
        const place = c.place ?? i + 1;
        return (
          <li key={c.upstream} class={place ? "" : "unused"}>
            <span class="place">{place || "·"}</span>
            {onPick ? (
              <button class="as-link clip" onClick={() => onPick(c.upstream)}>
                {c.upstream}
              </button>
            ) : (
              <span class="clip">{c.upstream}</span>
            )}
            <Cost parts={c.parts} most={most} />
            <b class="num">{c.cost > 0 ? ms(c.cost) : "–"}</b>
            <span class={"why reason-" + c.reason} title={c.reason}>
              {reason(c.reason)}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
