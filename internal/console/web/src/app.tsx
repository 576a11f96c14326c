import type {ComponentType} from "preact";
import {useEffect, useRef, useState} from "preact/hooks";
import {findSession, session} from "./lib/api";
import {clock, many} from "./lib/format";
import {problems} from "./lib/health";
import {line, lostSince, network, plan} from "./lib/live";
import {address, follow, route} from "./lib/route";
import {use} from "./lib/store";
import {useTick} from "./lib/use";
import {DocumentsPage} from "./documents/page";
import {EventsPage} from "./events/page";
import {LogIn} from "./login";
import {Account} from "./account";
import {NetworkPage} from "./network/page";
import {PlanPage} from "./plan/page";
import {SchedulingPage} from "./scheduling/page";
import {StreamsPage} from "./streams/page";
import {Failed, Wait, signs} from "./ui/basic";
import {Icon, type IconName} from "./ui/icon";
import {Nowhere} from "./ui/nowhere";

const pages: {name: string; title: string; icon: IconName; page: ComponentType}[] = [
  {name: "network", title: "Network", icon: "network", page: NetworkPage},
  {name: "plan", title: "Plan", icon: "plan", page: PlanPage},
  {name: "streams", title: "Streams", icon: "streams", page: StreamsPage},
  {name: "scheduling", title: "Scheduling", icon: "scheduling", page: SchedulingPage},
  {name: "events", title: "Events", icon: "events", page: EventsPage},
  {name: "documents", title: "Documents", icon: "documents", page: DocumentsPage},
];

export function App() {
  const who = use(session);
  const [error, setError] = useState<unknown>();
  const find = () => {
    setError(undefined);
    findSession().catch(setError);
  };
  useEffect(find, []);
  if (who === undefined) {
    return <div class="door">{error ? <Failed error={error} again={find} /> : <Wait what="Asking the router" />}</div>;
  }
  return who ? <Shell /> : <LogIn />;
}

function Shell() {
  const {page} = use(route);
  const n = use(network);
  const here = pages.find((p) => p.name === page);
  const main = useRef<HTMLElement>(null);
  const frozen = use(plan)?.frozen;
  const wrong = n ? problems(n, frozen).length : 0;
  const title = here?.title ?? "Not here";
  useEffect(() => {
    document.title = `${wrong ? `(${wrong}) ` : ""}${title} – Millrace`;
  }, [title, wrong]);
  useEffect(() => scrollTo(0, 0), [page]);
  const Page = here?.page;
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), main.current!.focus())}>
        Skip to the page
      </a>
      <header class="top">
        <a class="brand" href="/network" onClick={follow} title="Millrace: the network">
          <img src="/icon.svg" alt="Millrace" />
          <span aria-hidden="true">Millrace</span>
        </a>
        <h1>{title}</h1>
        <nav class="nav" aria-label="Pages">
          {pages.map((p) => (
            <a key={p.name} href={address([p.name])} aria-current={p.name === page ? "page" : undefined} onClick={follow}>
              <Icon name={p.icon} />
              {p.title}
            </a>
          ))}
        </nav>
        <div class="states">
          <Health />
          <Connection />
          <Account />
        </div>
      </header>
      <Lost />
      <main class="main" id="main" tabIndex={-1} ref={main}>
        {Page ? (
          <Page />
        ) : (
          <Nowhere />
        )}
      </main>
    </>
  );
}

// Health sums up what is wrong, on every page.
function Health() {
  const n = use(network);
  const frozen = use(plan)?.frozen;
  if (!n) return null;
  const list = problems(n, frozen);
  const level = list[0]?.level ?? (n.nodes.length ? "good" : "off");
  return (
    <a class={"pill is-" + level} href="/network" onClick={follow} style={{textDecoration: "none"}} title={list.slice(0, 8).map((p) => p.text).join("\n") || "Nothing is wrong"}>
      <Icon name={signs[level]} />
      {list.length ? (
        <>
          {list.length}
          <span class="long"> {list.length === 1 ? "problem" : "problems"}</span>
        </>
      ) : (
        <span class="long">{n.nodes.length ? "All well" : "No nodes"}</span>
      )}
    </a>
  );
}

function Connection() {
  const l = use(line);
  const words = {connecting: "Connecting", live: "Live", stale: "Waiting", lost: "Lost"};
  const level = {connecting: "off", live: "good", stale: "warn", lost: "bad"}[l];
  return (
    <span class={"pill is-" + level} role="status" data-line={l}>
      <i class="beat" aria-hidden="true" />
      <span class={l === "live" ? "long" : ""}>{words[l]}</span>
    </span>
  );
}

// Lost says that what the page shows is old, where nobody can overlook it.
function Lost() {
  useTick();
  const l = use(line);
  const since = use(lostSince);
  if (l !== "lost" && l !== "stale") return null;
  const s = Math.round((Date.now() - since) / 1000);
  return (
    <div class={"lost" + (l === "stale" ? " is-warn" : "")} role="alert">
      <Icon name={l === "stale" ? "warn" : "bad"} />
      <span>
        <strong>{l === "stale" ? "The router is silent." : "The router cannot be reached."}</strong> What you see is of {clock(new Date(since).toISOString())},{" "}
        {many(s, "second")} old. {l === "lost" && "Trying again by itself."}
      </span>
    </div>
  );
}
