// The versions of the edits: what each changed, and the way back.
import {useEffect, useState} from "preact/hooks";
import {get, mayEdit, post, session} from "../lib/api";
import type {Edits, Plan} from "../lib/plan-model";
import type {Document} from "../lib/document-model";
import {use} from "../lib/store";
import {useAsked} from "../lib/use";
import {Empty, Failed, Tag, Wait} from "../ui/basic";
import {moment} from "../lib/format";
import {held} from "./draft";
import {Preview} from "./preview";

export function EditHistory({plan, done}: {plan: Plan; done: () => void}) {
  const who = use(session);
  const {value, error, again} = useAsked<{versions: Document[]}>("/api/documents/edits/history", {limit: 200}, 0, plan.edits.version);
  const [open, setOpen] = useState<number>();
  const [back, setBack] = useState<{to: Document; edits: Edits}>();
  const [failed, setFailed] = useState<unknown>();
  if (!value) return error ? <div class="inside"><Failed error={error} again={again} /></div> : <Wait what="Asking for the history" />;
  if (!value.versions.length) return <Empty title="Nobody has edited the plan yet">Every edit will stand here, with who made it, when and why.</Empty>;
  const newest = value.versions[0]!.version;
  const roll = async (d: Document) => {
    setFailed(undefined);
    try {
      setBack({to: d, edits: await read(d.version)});
    } catch (e) {
      setFailed(e);
    }
  };
  return (
    <div class="inside stack">
      {failed !== undefined && <Failed error={failed} />}
      <ol class="versions">
        {value.versions.map((d) => (
          <li key={d.version}>
            <div class="row">
              <button class="as-link" aria-expanded={open === d.version} onClick={() => setOpen(open === d.version ? undefined : d.version)}>
                Version {d.version}
              </button>
              {d.version === newest && <Tag level="accent">holds</Tag>}
              <span class="soft small">
                {moment(d.at)} · {d.author || "the router"}
              </span>
              {mayEdit(who) && d.version !== newest && (
                <button class="button small" style={{marginLeft: "auto"}} onClick={() => void roll(d)}>
                  Roll back to it
                </button>
              )}
            </div>
            {d.comment && <p>{d.comment}</p>}
            {open === d.version && <Changes version={d.version} />}
          </li>
        ))}
      </ol>
      {back && (
        <Preview
          title={`Back to version ${back.to.version}`}
          what={
            <ul class="steps">
              {held(back.edits).length ? held(back.edits).map((h) => <li key={h.text}>{h.text}</li>) : <li>No edit would hold</li>}
            </ul>
          }
          edits={back.edits}
          suggest={`back to version ${back.to.version}`}
          close={() => setBack(undefined)}
          apply={async (comment) => {
            await post("/api/documents/edits/rollback", {version: back.to.version, based: newest, comment});
            setBack(undefined);
            done();
            again();
          }}
        />
      )}
    </div>
  );
}

async function read(version: number): Promise<Edits> {
  const d = await get<Document>("/api/documents/edits", {version});
  return d.body ? (JSON.parse(d.body) as Edits) : {};
}

// Changes shows what a version has that the one before had not, and the other way round.
function Changes({version}: {version: number}) {
  const [lists, setLists] = useState<{plus: string[]; minus: string[]; same: number}>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    Promise.all([read(version), version > 1 ? read(version - 1).catch(() => ({})) : {}]).then(([after, before]) => {
      const [a, b] = [held(after).map((h) => h.text), held(before).map((h) => h.text)];
      setLists({plus: a.filter((t) => !b.includes(t)), minus: b.filter((t) => !a.includes(t)), same: a.filter((t) => b.includes(t)).length});
    }, setError);
  }, [version]);
  if (error) return <Failed error={error} />;
  if (!lists) return <p class="soft small">…</p>;
  return (
    <ul class="changes">
      {lists.plus.map((t) => (
        <li key={t} class="plus">
          <span aria-label="new">+</span> {t}
        </li>
      ))}
      {lists.minus.map((t) => (
        <li key={t} class="minus">
          <span aria-label="gone">−</span> {t}
        </li>
      ))}
      {!lists.plus.length && !lists.minus.length && <li class="soft">Nothing that holds differs from the version before.</li>}
      {lists.same > 0 && <li class="soft">{lists.same} as before</li>}
    </ul>
  );
}
