// What the page tells the edge of how playing goes: sums since it told last, every ten
// seconds and when the page is left. They are added to those of other players near here;
// nothing in them says who watches.

const every = 10000;
const noticed = 100; // ms: a shorter stop of the picture is none
const longest = 10000; // ms of one stall: what is longer is the publisher's pause

// Meter adds up what is played and what stands still. A clock, in ms, is handed in.
export class Meter {
  constructor() {
    this.mode = "off"; // playing, stalled
    this.since = 0;
    this.long = 0; // ms of this stall so far
    this.clear();
  }

  clear() { Object.assign(this, {stalls: 0, stalled: 0, played: 0}); }

  // settle counts the time up to now.
  settle(now) {
    const took = Math.max(0, now - this.since);
    this.since = now;
    if (this.mode === "playing") this.played += took;
    if (this.mode !== "stalled") return;
    const before = this.long;
    this.long += took;
    if (this.long < noticed) return;
    if (before < noticed) this.stalls++;
    this.stalled += Math.min(this.long, longest) - (before < noticed ? 0 : Math.min(before, longest));
  }

  // go changes what is done from now on.
  go(mode, now) {
    this.settle(now);
    if (mode === "stalled" && this.mode !== "stalled") this.long = 0;
    this.mode = mode;
  }

  // take returns the sums and begins anew.
  take(now) {
    this.settle(now);
    const sums = {stalls: this.stalls, stalled_ms: Math.round(this.stalled), played_ms: Math.round(this.played)};
    this.clear();
    return sums;
  }
}

// Reports watches the video and tells the edge that the stream comes from.
export class Reports {
  constructor(video, figures, stream) {
    this.figures = figures;
    this.stream = stream;
    this.session = Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, "0")).join("");
    this.meter = new Meter();
    this.seen = null; // what the loader counts of the connection
    this.first = false; // told of this connection

    const go = (mode) => this.meter.go(mode, performance.now());
    video.addEventListener("playing", () => go("playing"));
    video.addEventListener("waiting", () => { if (this.meter.mode === "playing" && !video.paused && !video.seeking) go("stalled"); });
    video.addEventListener("pause", () => go("off"));
    addEventListener("pagehide", () => this.tell());
    document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") this.tell(); });
    setInterval(() => this.tell(), every);
  }

  // begin is called with each connection.
  begin(seen) {
    this.tell();
    this.seen = seen;
    this.first = false;
  }

  // broke is called when a connection that has played is lost: the picture stands still
  // until the next one.
  broke() {
    if (this.meter.mode === "playing") this.meter.go("stalled", performance.now());
  }

  // over is called when there is nothing more to play.
  over() { this.meter.go("off", performance.now()); }

  tell() {
    const {seen, figures} = this;
    const sums = this.meter.take(performance.now());
    if (!seen || !seen.url) return; // no edge has answered
    const report = {stream: this.stream, session: this.session, ...sums};
    if (!this.first && figures.first >= 0) {
      report.first_frame_ms = Math.round(figures.first);
      this.first = true;
    }
    if (this.meter.mode === "playing" && figures.delay() >= 0) report.delay_ms = Math.round(1000 * figures.delay());
    if (report.first_frame_ms === undefined && !sums.played_ms && !sums.stalls && !sums.stalled_ms) return;
    send(new URL("/v1/report", seen.url), JSON.stringify(report));
  }
}

// send does not wait and does not care: a report that is lost is lost. As plain text it
// may go to another host without asking first.
function send(url, text) {
  if (navigator.sendBeacon && navigator.sendBeacon(url, text)) return;
  fetch(url, {method: "POST", body: text, mode: "no-cors", keepalive: true}).catch(() => {});
}
