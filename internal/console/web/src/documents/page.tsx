import {ago} from "../lib/format";
import type {Document} from "../lib/document-model";
import {plan} from "../lib/live";
import {address, follow, move, route} from "../lib/route";
import {use} from "../lib/store";
import {useAsked} from "../lib/use";
import {Choose, Failed, Wait} from "../ui/basic";
import {Nowhere} from "../ui/nowhere";
import {about} from "./about";
import {Editor} from "./editor";
import {History} from "./history";

type Tab = "edit" | "history";

export function DocumentsPage() {
  const [key = "domains", tab = "edit", ...more] = use(route).at;
  if (!Object.hasOwn(about, key) || !(tab === "edit" || tab === "history") || more.length) return <Nowhere />;
  return <DocumentView name={key} tab={tab} />;
}

function DocumentView({name: key, tab}: {name: string; tab: Tab}) {
  const edits = use(plan)?.edits;
  const {value: all, again: lookAgain} = useAsked<{documents: Document[]}>("/api/documents", {}, 5000, edits);
  const {value: doc, error, again} = useAsked<Document>("/api/documents/" + key);
  const newest = all?.documents?.find((d) => d.key === key)?.version;
  const show = (t: Tab) => move(t === "edit" ? ["documents", key] : ["documents", key, t]);
  const done = () => {
    again();
    lookAgain();
  };
  return (
    <div class="documents">
      <nav class="card" aria-label="Documents">
        <ul>
          {Object.entries(about).map(([k, a]) => {
            const d = all?.documents?.find((x) => x.key === k);
            return (
              <li key={k}>
                <a href={address(["documents", k])} aria-current={k === key ? "true" : undefined} onClick={follow}>
                  <strong>{a.title}</strong>
                  <span class="soft small">{d ? (d.version ? `version ${d.version} · ${d.author || "seed"} · ${ago(d.at)}` : "not written yet") : "…"}</span>
                </a>
              </li>
            );
          })}
          <li>
            <a href={address(["plan", "history"])} onClick={follow}>
              <strong>Edits of the plan</strong>
              <span class="soft small">pins, bans, drains: on the plan's page</span>
            </a>
          </li>
        </ul>
      </nav>
      <section class="card" aria-label={about[key]!.title}>
        <div class="head">
          <h1 class="grow">{about[key]!.title}</h1>
          <Choose label="Show" value={tab} onChoose={show} options={[{value: "edit", label: "Text"}, {value: "history", label: "History"}]} />
        </div>
        <div class="inside stack">
          <p class="soft">{about[key]!.what}</p>
          {!doc ? error ? <Failed error={error} again={again} /> : <Wait what="Asking for the document" /> : tab === "edit" ? <Editor key={key} doc={doc} newest={newest} done={done} /> : <History key={key} doc={doc} done={done} leave={() => show("edit")} />}
        </div>
      </section>
    </div>
  );
}
