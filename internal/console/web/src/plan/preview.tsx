// The preview: what edits would change, before they hold.
import type {ComponentChildren} from "preact";
import {useEffect, useState} from "preact/hooks";
import {post, Refused} from "../lib/api";
import {count, many, ms, rate} from "../lib/format";
import type {Diff, Edits} from "../lib/plan-model";
import {Failed, Notice, Wait} from "../ui/basic";
import {Dialog} from "../ui/dialog";
import {Icon} from "../ui/icon";

interface Props {
  title: string;
  what: ComponentChildren; // the changes in words
  edits: Edits; // as they would be
  suggest?: string; // a comment
  times?: boolean; // whether they may hold for a while only
  close: () => void;
  apply: (comment: string, hours: number) => Promise<void>; // hours 0: for good
}

export function Preview({title, what, edits, suggest = "", times, close, apply}: Props) {
  const [diff, setDiff] = useState<Diff>();
  const [error, setError] = useState<unknown>();
  const [refused, setRefused] = useState<unknown>();
  const [comment, setComment] = useState(suggest);
  const [hours, setHours] = useState(0);
  const [busy, setBusy] = useState(false);
  const key = JSON.stringify(edits);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    setDiff(undefined);
    setError(undefined);
    const ask = () =>
      post<Diff>("/api/plan/dryrun", {edits}, stop.signal).then(setDiff, (e: unknown) => {
        if (stop.signal.aborted) return;
        // One preview is made at a time: another operator's takes a moment.
        if (e instanceof Refused && e.status === 429) timer = setTimeout(ask, 700);
        else setError(e);
      });
    ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key, round]);
  const submit = async () => {
    setBusy(true);
    setRefused(undefined);
    try {
      await apply(comment.trim(), hours);
    } catch (e) {
      setRefused(e);
      setBusy(false);
    }
  };
  const wrong = !!diff && (diff.empty?.length > 0 || diff.over?.length > 0);
  return (
    <Dialog
      title={title}
      close={close}
      footer={
        <>
          <button class="button" onClick={close}>
            Not now
          </button>
          <button class={"button primary" + (wrong ? " danger" : "")} disabled={!diff || busy || !comment.trim()} onClick={submit} title={comment.trim() ? undefined : "Say why first"}>
            {busy ? "Applying" : wrong ? "Apply all the same" : "Apply"}
          </button>
        </>
      }
    >
      {what}
      {error ? <Failed error={error} again={() => setRound(round + 1)} /> : diff ? <Outcome diff={diff} /> : <Wait what="Planning both ways" />}
      <label class="field">
        <span>Why (required; it stands in the history)</span>
        <input class="input" data-first name="comment" value={comment} maxLength={400} autocomplete="off" onInput={(e) => setComment(e.currentTarget.value)} onKeyDown={(e) => e.key === "Enter" && diff && comment.trim() && !busy && void submit()} />
      </label>
      {times && (
        <label class="field">
          <span>Holds</span>
          <select class="input" value={String(hours)} onChange={(e) => setHours(Number(e.currentTarget.value))}>
            <option value="0">for good, until somebody takes it back</option>
            <option value="1">for an hour</option>
            <option value="8">for 8 hours</option>
            <option value="24">for a day</option>
            <option value="168">for a week</option>
          </select>
        </label>
      )}
      {refused !== undefined && <Failed error={refused} />}
    </Dialog>
  );
}

const shown = 50;

function Outcome({diff: d}: {diff: Diff}) {
  const changes = d.changes ?? [];
  const empty = d.empty ?? [];
  const over = d.over ?? [];
  return (
    <section class="stack" aria-label="What would change" aria-live="polite">
      {empty.length > 0 && (
        <Notice level="bad">
          <strong>{empty.length === 1 ? "A node would have no upstream: " : `${empty.length} nodes would have no upstream: `}</strong>
          {names(empty)}
        </Notice>
      )}
      {over.length > 0 && (
        <Notice level="warn">
          <strong>Beyond what upstreams can carry: </strong>
          {names(over)}
        </Notice>
      )}
      <div class="outcome">
        <Pair name="Cost of all links" before={d.before.cost} after={d.after.cost} show={ms} />
        <Pair name="Crossing regions or ISPs" before={d.before.backhaul} after={d.after.backhaul} show={rate} />
        <div>
          <small>Would move</small>
          <b>{rate(d.moved)}</b>
          <small>{changes.length ? `${many(changes.length, "node")} would pull in another order` : "no node would pull in another order"}</small>
        </div>
      </div>
      {changes.length === 0 ? (
        <Notice>No pool would change. The edit holds for what comes later.</Notice>
      ) : (
        <div class="scroll">
          <table class="diffs">
            <thead>
              <tr>
                <th>Node</th>
                <th>Pulls from</th>
                <th>Would pull from</th>
                <th class="num">Cost</th>
                <th class="num">Moves</th>
              </tr>
            </thead>
            <tbody>
              {changes.slice(0, shown).map((c) => {
                const [a, b] = [c.before ?? [], c.after ?? []];
                return (
                  <tr key={c.node}>
                    <td>
                      <strong>{c.node}</strong>
                    </td>
                    <td class="soft" data-label="Now">{a.map((x) => x.upstream).join(", ") || "nobody"}</td>
                    <td data-label="Then">{b.length ? b.map((x, i) => <span key={x.upstream}>{i > 0 && ", "}{x.upstream === a[i]?.upstream ? x.upstream : <strong>{x.upstream}</strong>}</span>) : <strong class="is-bad">nobody</strong>}</td>
                    <td class="num" data-label="Cost">
                      {ms(c.cost_before)} → <span class={c.cost_after > c.cost_before * 1.02 + 0.5 ? "is-warn" : ""}>{b.length ? ms(c.cost_after) : "–"}</span>
                    </td>
                    <td class="num" data-label="Moves">{c.moved ? rate(c.moved) : "–"}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
          {changes.length > shown && <p class="soft small">and {count(changes.length - shown)} more</p>}
        </div>
      )}
    </section>
  );
}

function Pair({name, before, after, show}: {name: string; before: number; after: number; show: (v: number) => string}) {
  const by = after - before;
  const level = Math.abs(by) < Math.max(0.5, before * 0.001) ? "" : by > 0 ? " is-warn" : " is-good";
  return (
    <div>
      <small>{name}</small>
      <b>
        {show(before)} <Icon name="right" label="becomes" /> <span class={level}>{show(after)}</span>
      </b>
      <small>{level ? `${by > 0 ? "+" : "−"}${show(Math.abs(by))}` : "no difference"}</small>
    </div>
  );
}

const names = (list: string[]) => (list.length > 12 ? list.slice(0, 12).join(", ") + ` and ${list.length - 12} more` : list.join(", "));
