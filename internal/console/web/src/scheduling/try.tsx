// Try an address: how one client would be answered, rule by rule.
import {useState} from "preact/hooks";
import {get} from "../lib/api";
import {count, ms} from "../lib/format";
import type {Explanation} from "../lib/scheduling-model";
import {address, follow} from "../lib/route";
import {reason} from "../lib/words";
import {Facts, Failed, Tag} from "../ui/basic";
import {Icon} from "../ui/icon";

export function TryAddress({domain, domains}: {domain: string; domains: string[]}) {
  const [answer, setAnswer] = useState<Explanation>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    setBusy(true);
    setError(undefined);
    try {
      setAnswer(await get<Explanation>("/api/scheduling/explain", {domain: text("domain"), ip: text("ip"), stream: text("stream"), net: text("net"), region: text("region"), isp: text("isp")}));
    } catch (e) {
      setAnswer(undefined);
      setError(e);
    }
    setBusy(false);
  };
  return (
    <section class="card try" aria-label="Try an address">
      <div class="head">
        <h2>Try an address</h2>
      </div>
      <form class="inside stack" onSubmit={submit}>
        <label class="field">
          <span>Address of the client</span>
          <input class="input" name="ip" placeholder="203.0.113.7" autocomplete="off" spellcheck={false} />
        </label>
        <label class="field">
          <span>Domain</span>
          <select class="input" name="domain" key={domain} defaultValue={domain}>
            {domains.map((d) => (
              <option key={d} value={d}>
                {d}
              </option>
            ))}
          </select>
        </label>
        <details>
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
                <a href={address("network", {node: c.node})} onClick={follow}>
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
