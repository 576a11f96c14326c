// Listens to the router for all tabs of a browser. It ends with the last of them.
import {alone, type Told, type Wish} from "./lib/listen";

const silence = 8000; // ms: the network comes each second, so the connection is dead

const tabs = new Set<MessagePort>();
const newest = new Map<string, string>(); // that a tab is told when it comes
let stop: (() => void) | undefined;
let heard = 0;

function tell(told: Told): void {
  for (const tab of tabs) tab.postMessage(told);
}

function begin(): void {
  end();
  heard = Date.now();
  stop = alone({
    told(kind, data) {
      heard = Date.now();
      if (kind !== "events") newest.set(kind, data);
      tell({kind, data});
    },
    failed(over) {
      newest.clear();
      if (over) end();
      tell({over});
    },
  });
}

function end(): void {
  stop?.();
  stop = undefined;
  newest.clear();
}

addEventListener("connect", (e) => {
  const tab = (e as MessageEvent).ports[0]!;
  tab.onmessage = ({data}: MessageEvent<Wish>) => {
    if (data === "close") {
      tabs.delete(tab);
      if (!tabs.size) end();
      return;
    }
    tabs.add(tab);
    if (!stop || Date.now() - heard > silence) begin();
    for (const [kind, data] of newest) tab.postMessage({kind, data} satisfies Told);
  };
});
