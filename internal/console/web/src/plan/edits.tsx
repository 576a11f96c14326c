// The edits that hold, each with who made it and a way to take it back.
import {mayEdit, session} from "../lib/api";
import {ago, isTime, moment} from "../lib/format";
import type {Plan} from "../lib/plan-model";
import {use} from "../lib/store";
import {Empty} from "../ui/basic";
import {add, draft, held, sayStep, type Held} from "./draft";

export function HeldEdits({plan}: {plan: Plan}) {
  const list = held(plan.edits.edits);
  if (!list.length) return <Empty title="No edit holds">The plan is as the measurements say. Choose a node under “Pools” to pin, ban or drain.</Empty>;
  return (
    <div class="inside">
      <HeldList list={list} plan={plan} />
    </div>
  );
}

export function HeldList({list, plan}: {list: Held[]; plan: Plan}) {
  const who = use(session);
  const steps = use(draft);
  return (
    <ul class="held">
      {list.map((h) => (
        <li key={h.text}>
          <div class="grow">
            <strong>{h.text}</strong>
            <p class="soft small">
              {[h.by.author && `by ${h.by.author}`, isTime(h.by.at) && ago(h.by.at), isTime(h.by.until) && `until ${moment(h.by.until)}`, h.by.comment].filter(Boolean).join(" · ")}
            </p>
          </div>
          {mayEdit(who) && (
            <button class="button small" disabled={steps.some((s) => sayStep(s) === sayStep(h.undo))} onClick={() => add(h.undo, plan.edits.edits)}>
              Take back
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}
