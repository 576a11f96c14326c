// Try an address: how one client would be answered, rule by rule. The question stands in
// the address of the page, so that it can be sent to a colleague.
import {useEffect, useRef, useState} from "preact/hooks";
import {get} from "../lib/api";
import {count, ms} from "../lib/format";
import type {Explanation} from "../lib/scheduling-model";
import {address, follow, look, nodeAt, route, type Query} from "../lib/route";
import {use} from "../lib/store";
import {reason} from "../lib/words";
import {Facts, Failed, Tag} from "../ui/basic";
import {Icon} from "../ui/icon";

export function TryAddress({domain}: {domain: string}) {
  const {query} = use(route);
  const question: Query = Object.fromEntries(fields.map((name) => [name, query.get(name) ?? ""]));
  const key = JSON.stringify({domain, ...question});
  const [round, setRound] = useState(0); // times that somebody asked here
  const [{answer, error, busy}, set] = useState<{answer?: Explanation; error?: unknown; busy?: boolean}>({});
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    for (const name of fields) (form.current!.elements.namedItem(name) as HTMLInputElement).value = question[name]!;
    if (!round && !fields.some((name) => question[name])) return;
    const stop = new AbortController();
    set((was) => ({answer: was.answer, busy: true}));
    get<Explanation>("/api/scheduling/explain", {domain, ...question}, stop.signal).then(
      (answer) => set({answer}),
      (error: unknown) => !stop.signal.aborted && set({error}),
    );
    return () => stop.abort();
  }, [key, round]);
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    const said = new FormData(form.current!);
    look(Object.fromEntries(fields.map((name) => [name, String(said.get(name) ?? "").trim()])));
    setRound(round + 1);
  };
  return (
    <section class="card try" aria-label="Try an address">
      <div class="head">
        <h2>Try an address</h2>
      </div>
      <form class="inside stack" ref={form} onSubmit={submit}>
        <label class="field">
          <span>Address of the client</span>
          <input class="input" name="ip" placeholder="203.0.113.7" autocomplete="off" spellcheck={false} />
        </label>
        <details open={["stream", "region", "isp", "net"].some((name) => question[name])}>
          <summary>More about the client</summary>
          <div class="stack">
            <label class="field">
              <span>Stream</span>
              <input class="input" name="stream" placeholder="live/show" autocomplete="off" spellcheck={false} />
            </label>
            <div class="two">
              <label class="field">
                <span>Region, if known</span>
                <input class="input" name="region" autocomplete="off" spellcheck={false} />
              </label>
              <label class="field">
                <span>ISP, if known</span>
                <input class="input" name="isp" autocomplete="off" spellcheck={false} />
              </label>
            </div>
            <label class="field">
              <span>Access</span>
              <select class="input" name="net">
                <option value="">not known</option>
                <option value="fixed">fixed</option>
                <option value="mobile">mobile</option>
              </select>
            </label>
          </div>
        </details>
        <button class="button primary" disabled={busy}>
          Explain
        </button>
        {error !== undefined && <Failed error={error} />}
      </form>
      {answer && <Answer a={answer} />}
    </section>
  );
}

const fields = ["ip", "stream", "net", "region", "isp"];

const parts = ["coverage", "quality", "stream", "load", "health"] as const;

function Answer({a}: {a: Explanation}) {
  const place = [a.place.region, a.place.isp].filter(Boolean).join(" / ") || "an unknown place";
  return (
    <div class="answer stack" aria-live="polite">
        <div class="row">
          <Tag level={a.reason === "placed" || a.reason === "pinned" ? "good" : "warn"}>{reason(a.reason)}</Tag>
        </div>
        <Facts
          rows={[
            ["Client is in", `${place} (${a.place.source})`],
            ["Served by", a.domain || "no domain"],
            ["Answer holds for", a.ttl],
            ["All get it who share", `${a.bits} bits of the address`],
          ]}
        />
        <h3>Edges, the best first</h3>
        <ol class="edges">
          {(a.candidates ?? []).map((c, i) => (
            <li key={c.node}>
              <div class="row between">
                <a href={address(nodeAt(c.node))} onClick={follow}>
                  {i + 1}. {c.node}
                </a>
                <b class="num">{ms(c.cost)}</b>
              </div>
              <p class="soft small">
                {parts.filter((p) => c[p]).map((p) => `${p} ${ms(c[p])}`).join(", ") || "costs nothing"}
                {(c.addr4 || c.addr6) && ` · ${[c.addr4, c.addr6].filter(Boolean).join(", ")}`}
              </p>
            </li>
          ))}
          {!a.candidates?.length && <li class="is-bad">none</li>}
        </ol>
        <h3>Rules, in order</h3>
        <ol class="rules">
          {(a.rules ?? []).map((r) => (
            <li key={r.name}>
              <strong>{r.name}</strong>
              <p>{r.did}</p>
              {r.dropped?.map((d) => (
                <p class="soft small" key={d.reason}>
                  <Icon name="off" /> {count(d.count)} left out, {reason(d.reason)}: {d.nodes.slice(0, 5).join(", ")}
                  {d.count > 5 && "…"}
                </p>
              ))}
            </li>
          ))}
        </ol>
    </div>
  );
}
