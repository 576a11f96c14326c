// What the router tells by itself, each second: the network, new events, new plans.
import {findSession, session} from "./api";
import {heardAt} from "./format";
import {listen} from "./listen";
import type {Network} from "./model";
import {Value} from "./store";
import type {Event, Events} from "./stream-model";

// Line is how the connection to the router is.
type Line = "connecting" | "live" | "stale" | "lost";

interface PlanNews {
  version: number;
  frozen: boolean;
  leader: string; // empty: nobody plans
  edits: number; // version of the document
}

export const network = new Value<Network | undefined>(undefined);
export const line = new Value<Line>("connecting");
export const lostSince = new Value(0); // ms, by this browser's clock
export const plan = new Value<PlanNews | undefined>(undefined);

const maxEvents = 1000;
export const events = new Value<Event[]>([]); // new ones since the page was opened, the newest first

const staleAfter = 8000; // ms: the network comes each second
const deadAfter = 20_000; // a connection may be dead without anybody knowing
const patience = 2500; // a browser connects anew by itself: most often nobody need know
const retryMin = 1000;
const retryMax = 10_000;

let stop: (() => void) | undefined; // undefined: nobody listens
let heard = 0;
let retry = retryMin;
let timer: ReturnType<typeof setTimeout> | undefined;

session.subscribe((s) => (s ? stop || open() : close()));

setInterval(() => {
  const silent = Date.now() - heard;
  if (line.get() === "live" && silent > staleAfter) mark("stale");
  if (line.get() === "stale" && silent > deadAfter) again();
}, 1000);

// A phone wakes up with a dead connection: try at once.
document.addEventListener("visibilitychange", () => !document.hidden && wake());
addEventListener("online", wake);

// A browser keeps the pages that were left, for its back button, and the connections of
// such a page count among the six that it has for a router.
addEventListener("pagehide", leave);
addEventListener("pageshow", (e) => {
  if (e.persisted && session.get()) open();
});

function wake(): void {
  if (session.get() && line.get() !== "live") open();
}

function mark(l: Line): void {
  if (l === "live") heard = Date.now();
  else if (line.get() === "live") lostSince.set(heard || Date.now());
  line.set(l);
}

function leave(): void {
  clearTimeout(timer);
  stop?.();
  stop = undefined;
}

function open(): void {
  leave();
  stop = listen({
    told(kind, data) {
      clearTimeout(timer);
      retry = retryMin;
      take(kind, JSON.parse(data));
      mark("live");
    },
    failed(over) {
      if (over) {
        again();
        return;
      }
      // The browser tries again by itself, and tells the router what it has.
      clearTimeout(timer);
      timer = setTimeout(again, patience);
    },
  });
}

function take(kind: string, told: unknown): void {
  switch (kind) {
    case "network":
      heardAt((told as Network).at);
      network.set(told as Network);
      break;
    case "plan":
      plan.set(told as PlanNews);
      break;
    case "events":
      addEvents((told as Events).events ?? []);
  }
}

// addEvents puts what is new before the rest.
function addEvents(list: Event[]): void {
  const known = new Set(events.get().map((e) => e.id));
  const fresh = list.filter((e) => !known.has(e.id));
  if (fresh.length) events.set([...fresh, ...events.get()].sort((a, b) => b.number - a.number).slice(0, maxEvents));
}

// again says that the connection is lost, and tries anew, later each time.
function again(): void {
  leave();
  mark("lost");
  if (!lostSince.get()) lostSince.set(Date.now());
  timer = setTimeout(async () => {
    try {
      await findSession(); // an EventSource does not tell that the session is over
      if (session.get() && !stop) open();
    } catch {
      again();
    }
  }, retry * (0.7 + 0.6 * Math.random()));
  retry = Math.min(retry * 2, retryMax);
}

function close(): void {
  leave();
  network.set(undefined);
  plan.set(undefined);
  events.set([]);
  lostSince.set(0);
  line.set("connecting");
}
