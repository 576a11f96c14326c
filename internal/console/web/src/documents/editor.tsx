// The text of a document: checked as it is typed, compared before it is saved.
import {useEffect, useMemo, useState} from "preact/hooks";
import {mayEdit, post, put, Refused, sentence, session} from "../lib/api";
import type {Document} from "../lib/document-model";
import {lineDiff} from "../lib/diff";
import {use} from "../lib/store";
import {useLater} from "../lib/use";
import {Failed, Notice, Tag} from "../ui/basic";
import {Dialog} from "../ui/dialog";
import {about} from "./about";
import {DiffView} from "./diff-view";

interface Props {
  doc: Document;
  newest?: number; // version that the router has now
  done: () => void;
}

export function Editor({doc, newest, done}: Props) {
  const who = use(session);
  const may = mayEdit(who);
  const [base, setBase] = useState(doc);
  const [text, setText] = useState(doc.body ?? "");
  const [open, setOpen] = useState(false);
  const changed = text !== (base.body ?? "");
  // A newer version is taken by itself as long as nothing was typed.
  useEffect(() => {
    if (doc.version === base.version || changed) return;
    setBase(doc);
    setText(doc.body ?? "");
  }, [doc.version]);
  const behind = newest !== undefined && newest > base.version;
  useEffect(() => {
    if (behind) done();
  }, [behind]);
  const faults = useFaults(doc.key, text, changed);
  return (
    <div class="stack">
      {behind && changed && (
        <Notice level="warn">
          <div class="row between">
            <span>
              <strong>Somebody else has saved version {newest}.</strong> Yours was made from version {base.version}.
            </span>
            <button
              class="button small"
              onClick={() => {
                setBase(doc);
              }}
            >
              Compare with the newest
            </button>
          </div>
        </Notice>
      )}
      <label class="out" for="text">
        Text of the document
      </label>
      <textarea
        id="text"
        class="input"
        rows={Math.min(32, Math.max(14, text.split("\n").length + 1))}
        value={text}
        readOnly={!may}
        placeholder={about[doc.key]?.example}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={!!faults.error}
        onInput={(e) => setText(e.currentTarget.value)}
      />
      {faults.error && (
        <Notice level="bad" role="status">
          {faults.error.split("\n").map((line) => (
            <p key={line}>{sentence(line)}</p>
          ))}
        </Notice>
      )}
      <div class="row">
        <span class="grow soft small">
          {base.version ? `Version ${base.version}` : "Not written yet"} {changed && (faults.busy ? "· checking" : faults.error ? "" : faults.ok && <Tag level="good">no faults</Tag>)}
          {!may && " · you may look and not change"}
        </span>
        {may && (
          <>
            <button class="button" disabled={!changed} onClick={() => setText(base.body ?? "")}>
              Undo all
            </button>
            <button class="button primary" disabled={!changed || !!faults.error || faults.busy} onClick={() => setOpen(true)}>
              Compare and save
            </button>
          </>
        )}
      </div>
      {open && (
        <Save
          doc={base}
          text={text}
          close={() => setOpen(false)}
          done={(saved) => {
            setBase({...saved, body: text});
            setOpen(false);
            done();
          }}
        />
      )}
    </div>
  );
}

interface Faults {
  ok?: boolean;
  error?: string;
  busy?: boolean;
}

function useFaults(key: string, text: string, changed: boolean): Faults {
  const late = useLater(text, 500);
  const [state, setState] = useState<Faults & {of?: string}>({});
  useEffect(() => {
    if (!changed) return;
    const stop = new AbortController();
    post<{ok: boolean; error?: string}>(`/api/documents/${key}/check`, {body: late}, stop.signal).then(
      (r) => setState({of: late, ok: r.ok, error: r.error}),
      (e: unknown) => !stop.signal.aborted && setState({of: late, error: e instanceof Refused ? e.message : String(e)}),
    );
    return () => stop.abort();
  }, [key, late, changed]);
  if (!changed) return {};
  return state.of === text ? state : {busy: true};
}

function Save({doc, text, close, done}: {doc: Document; text: string; close: () => void; done: (d: Document) => void}) {
  const [comment, setComment] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>();
  const lines = useMemo(() => lineDiff(doc.body ?? "", text), [doc, text]);
  const save = async () => {
    setBusy(true);
    setRefused(undefined);
    try {
      done(await put<Document>("/api/documents/" + doc.key, {based: doc.version, body: text, comment: comment.trim()}));
    } catch (e) {
      setRefused(e);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="What changes"
      close={close}
      footer={
        <>
          <button class="button" onClick={close}>
            Not now
          </button>
          <button class="button primary" disabled={busy || !comment.trim()} onClick={save}>
            Save
          </button>
        </>
      }
    >
      <DiffView lines={lines} />
      <label class="field">
        <span>Why (required; it stands in the history)</span>
        <input class="input" data-first value={comment} maxLength={400} autocomplete="off" onInput={(e) => setComment(e.currentTarget.value)} onKeyDown={(e) => e.key === "Enter" && comment.trim() && !busy && void save()} />
      </label>
      {refused !== undefined && <Failed error={refused} />}
    </Dialog>
  );
}
