// Listening to what the router tells by itself. All tabs share one connection, through a
// SharedWorker: over HTTP/1.1 a browser has six for a host, and each tab would hold one.

interface Listener {
  told: (kind: string, data: string) => void;
  failed: (over: boolean) => void; // not over: it is tried again by itself
}

// Told is what the worker passes on to a tab.
export type Told = {kind: string; data: string} | {over: boolean};

// Wish is what a tab wants of the worker.
export type Wish = "open" | "close";

let sharing = typeof SharedWorker === "function"; // some phones have none

// listen tells l until what it returns is called.
export function listen(l: Listener): () => void {
  return sharing ? share(l) : alone(l);
}

// alone takes a connection of its own.
export function alone(l: Listener): () => void {
  const source = new EventSource("/api/live");
  for (const kind of ["network", "plan", "events"]) source.addEventListener(kind, (e) => l.told(kind, (e as MessageEvent<string>).data));
  source.onerror = () => l.failed(source.readyState === EventSource.CLOSED);
  return () => source.close();
}

function share(l: Listener): () => void {
  const worker = new SharedWorker(document.documentElement.dataset.live!, {type: "module"});
  const wish = (w: Wish) => worker.port.postMessage(w);
  worker.port.onmessage = ({data}: MessageEvent<Told>) => ("over" in data ? l.failed(data.over) : l.told(data.kind, data.data));
  worker.onerror = () => {
    sharing = false; // it cannot be loaded: the router has another version by now
    l.failed(true);
  };
  wish("open");
  return () => {
    worker.onerror = worker.port.onmessage = null;
    wish("close");
    worker.port.close();
  };
}
