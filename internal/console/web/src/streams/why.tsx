// Why a node should pull a stream from where it does: the answer that the router gives
// it, and the ways that were looked at.
import {count, ms} from "../lib/format";
import type {Choice} from "../lib/plan-model";
import {reason} from "../lib/words";
import {useAsked} from "../lib/use";
import {Failed} from "../ui/basic";
import {Choices, CostKey} from "../ui/choices";

interface Path {
  answer: {source?: string; reason: string; choices: (Choice & {hops: string[]})[]};
  near: boolean;
  same: boolean;
  ways: {over: string; kind: string; cost: number; reason: string}[];
}

export function WhyPath({node, stream}: {node: string; stream: string}) {
  const {value: p, error, again} = useAsked<Path>("/api/path", {node, stream}, 3000);
  if (!p) return <div class="why-path">{error ? <Failed error={error} again={again} /> : <span class="soft small">Asking</span>}</div>;
  const choices = p.answer.choices ?? [];
  const ways = (p.ways ?? []).filter((w) => !choices.some((c) => c.upstream === w.over));
  return (
    <div class="why-path">
      <p class="small">
        {p.answer.source ? `The source, ${p.answer.source}, is ${p.near ? "near" : "far"}${p.same ? ", and no ISP lies between" : ", across ISPs"}. ` : "Nobody knows where it is published. "}
        Told to pull it: {reason(p.answer.reason)}.
      </p>
      {choices.length > 0 && <Choices list={choices} most={Math.max(20, ...choices.map((c) => c.cost))} />}
      {ways.length > 0 && (
        <p class="soft small">
          Looked at as well: {ways.slice(0, 6).map((w) => `${w.over} ${w.cost > 0 ? ms(w.cost) : ""} (${reason(w.reason)})`).join(", ")}
          {ways.length > 6 && ` and ${count(ways.length - 6)} more`}
        </p>
      )}
      <CostKey of={choices.map((c) => c.parts)} />
    </div>
  );
}
