// What is drafted, at the foot of the page, until it is applied or dropped.
import {useState} from "preact/hooks";
import {put, session} from "../lib/api";
import {many, now} from "../lib/format";
import type {By, Plan} from "../lib/plan-model";
import {use} from "../lib/store";
import {Icon} from "../ui/icon";
import {apply, clear, draft, remove, sayStep} from "./draft";
import {Preview} from "./preview";

export function DraftBar({plan, done}: {plan: Plan; done: () => void}) {
  const steps = use(draft);
  const [open, setOpen] = useState(false);
  if (!steps.length) return null;
  const save = async (comment: string, hours: number) => {
    const by: By = {author: session.get()?.name, comment, at: iso(0)};
    if (hours) by.until = iso(hours);
    await put("/api/documents/edits", {based: plan.edits.version, body: JSON.stringify(apply(steps, plan.edits.edits, by), null, 2), comment});
    clear();
    setOpen(false);
    done();
  };
  return (
    <>
      <section class="draft" aria-label="Drafted changes">
        <ul>
          {steps.map((s) => (
            <li key={sayStep(s)}>
              <span>{sayStep(s)}</span>
              <button class="round" aria-label={`Drop: ${sayStep(s)}`} title="Drop" onClick={() => remove(s)}>
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
        <div class="row">
          <button class="button" onClick={clear}>
            Drop all
          </button>
          <button class="button primary" onClick={() => setOpen(true)}>
            Preview {many(steps.length, "change")}
          </button>
        </div>
      </section>
      {open && (
        <Preview
          title="Before it holds"
          what={
            <ul class="steps">
              {steps.map((s) => (
                <li key={sayStep(s)}>{sayStep(s)}</li>
              ))}
            </ul>
          }
          edits={apply(steps, plan.edits.edits)}
          times
          close={() => setOpen(false)}
          apply={save}
        />
      )}
    </>
  );
}

const iso = (hours: number): string => new Date(now() + hours * 3600_000).toISOString();
