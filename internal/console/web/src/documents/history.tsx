// The versions of a document: what each changed, and the way back.
import {useEffect, useState} from "preact/hooks";
import {get, mayEdit, post, session} from "../lib/api";
import {lineDiff, type DiffLine} from "../lib/diff";
import type {Document} from "../lib/document-model";
import {moment} from "../lib/format";
import {use} from "../lib/store";
import {useAsked} from "../lib/use";
import {Empty, Failed, Tag, Wait} from "../ui/basic";
import {Dialog} from "../ui/dialog";
import {DiffView} from "./diff-view";

export function History({doc, done, leave}: {doc: Document; done: () => void; leave: () => void}) {
  const who = use(session);
  const path = `/api/documents/${doc.key}`;
  const {value, error, again} = useAsked<{versions: Document[]}>(path + "/history", {limit: 200}, 0, doc.version);
  const [open, setOpen] = useState<number>();
  const [back, setBack] = useState<Document>();
  if (!value) return error ? <Failed error={error} again={again} /> : <Wait what="Asking for the history" />;
  if (!value.versions.length) return <Empty title="Nobody has written it yet" />;
  const newest = value.versions[0]!.version;
  return (
    <>
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
                <button class="button small" style={{marginLeft: "auto"}} onClick={() => setBack(d)}>
                  Roll back to it
                </button>
              )}
            </div>
            {d.comment && <p>{d.comment}</p>}
            {open === d.version && <Between path={path} from={d.version - 1} to={d.version} />}
          </li>
        ))}
      </ol>
      {back && <Back path={path} to={back} newest={newest} close={() => setBack(undefined)} done={() => (setBack(undefined), done(), again(), leave())} />}
    </>
  );
}

function Between({path, from, to}: {path: string; from: number; to: number}) {
  const [lines, setLines] = useState<DiffLine[]>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const read = (version: number) => (version ? get<Document>(path, {version}).then((d) => d.body ?? "") : Promise.resolve(""));
    // The version before may have been forgotten.
    Promise.all([read(from).catch(() => ""), read(to)]).then(([a, b]) => setLines(lineDiff(a, b)), setError);
  }, [path, from, to]);
  if (error) return <Failed error={error} />;
  return lines ? <DiffView lines={lines} /> : <p class="soft small">…</p>;
}

function Back({path, to, newest, close, done}: {path: string; to: Document; newest: number; close: () => void; done: () => void}) {
  const [comment, setComment] = useState(`back to version ${to.version}`);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>();
  const roll = async () => {
    setBusy(true);
    setRefused(undefined);
    try {
      await post(path + "/rollback", {version: to.version, based: newest, comment: comment.trim()});
      done();
    } catch (e) {
      setRefused(e);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Back to version ${to.version}`}
      close={close}
      footer={
        <>
          <button class="button" onClick={close}>
            Not now
          </button>
          <button class="button primary" disabled={busy || !comment.trim()} onClick={roll}>
            Roll back
          </button>
        </>
      }
    >
      <Between path={path} from={newest} to={to.version} />
      <label class="field">
        <span>Why (required; it stands in the history)</span>
        <input class="input" data-first value={comment} maxLength={400} autocomplete="off" onInput={(e) => setComment(e.currentTarget.value)} />
      </label>
      {refused !== undefined && <Failed error={refused} />}
    </Dialog>
  );
}
