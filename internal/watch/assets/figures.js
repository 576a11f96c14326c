// The figures beside the picture: measured and drawn once a second.

const $ = (id) => document.getElementById(id);

// Edge estimates where "live" is. The newest frame here is live only if nothing is
// late; so the edge is the furthest that media time ever ran ahead of our clock, over
// the last ten seconds. When the network stalls, the buffer falls and the delay grows.
export class Edge {
  constructor() { this.ahead = []; }

  // saw notes that at time now (s) the newest frame had media time end (s).
  saw(now, end) {
    this.ahead = this.ahead.filter((a) => now - a.now < 10);
    this.ahead.push({now, by: end - now});
  }

  at(now) {
    return this.ahead.length ? now + Math.max(...this.ahead.map((a) => a.by)) : NaN;
  }
}

// bufferedEnd returns the media time of the newest frame that can be played.
export function bufferedEnd(video) {
  const b = video.buffered;
  return b.length ? b.end(b.length - 1) : NaN;
}

export class Figures {
  constructor(video) {
    this.video = video;
    this.history = {delay: [], bitrate: []};
    this.reset(null);
  }

  // reset begins anew for a connection; seen is what its loader counts.
  reset(seen) {
    this.seen = seen;
    this.edge = new Edge();
    this.samples = [];
    this.info = {};
    this.first = NaN;
    this.frames = null;
  }

  media(info) { this.info = info; }

  // picture notes the first frame, ms after the request was made.
  picture() {
    if (this.seen && Number.isNaN(this.first)) this.first = performance.now() - this.seen.started;
  }

  delay() {
    const now = performance.now() / 1000;
    return Math.max(0, this.edge.at(now) - this.video.currentTime);
  }

  buffer() { return Math.max(0, bufferedEnd(this.video) - this.video.currentTime); }

  // arrived is called when data came in: that is when the edge can be seen.
  arrived() {
    const end = bufferedEnd(this.video);
    if (!Number.isNaN(end)) this.edge.saw(performance.now() / 1000, end);
  }

  tick(playing) {
    const {video, seen} = this;
    if (!seen) return;
    const now = performance.now();
    const q = video.getVideoPlaybackQuality ? video.getVideoPlaybackQuality() : {totalVideoFrames: 0, droppedVideoFrames: 0};
    this.samples.push({now, bytes: seen.bytes, frames: q.totalVideoFrames});
    if (this.samples.length > 5) this.samples.shift();
    const a = this.samples[0];
    const b = this.samples[this.samples.length - 1];
    const before = this.samples[this.samples.length - 2];
    const over = (b.now - a.now) / 1000;
    const bitrate = over > 0 && seen.opened ? (b.bytes - a.bytes) * 8 / over : NaN;
    const fps = before ? (b.frames - before.frames) * 1000 / (b.now - before.now) : NaN;
    const delay = playing ? this.delay() : NaN;

    show("delay", delay, seconds(delay));
    show("buffer", this.buffer(), seconds(this.buffer()));
    show("fps", fps, video.videoWidth && fps >= 0 ? fps.toFixed(fps < 10 ? 1 : 0) + " fps" : "–");
    show("bitrate", bitrate, rate(bitrate));
    show("bytes", seen.bytes, size(seen.bytes));
    show("dropped", q.droppedVideoFrames, video.videoWidth ? frames(q.droppedVideoFrames, q.totalVideoFrames) : "–");
    show("size", video.videoWidth, video.videoWidth ? `${video.videoWidth}×${video.videoHeight}` : "–");
    show("first", this.first, Number.isNaN(this.first) ? "–" : Math.round(this.first) + " ms");
    show("connected", seen.opened ? now - seen.opened : NaN, seen.opened ? clock((now - seen.opened) / 1000) : "–");
    const codecs = [codec(this.info.videoCodec), codec(this.info.audioCodec)].filter(Boolean);
    show("codecs", codecs.length, codecs.join(" + ") || "–",
      [this.info.videoCodec, this.info.audioCodec].filter(Boolean).join(", "));
    this.draw("delay", delay);
    this.draw("bitrate", bitrate);
  }

  draw(of, value) {
    const h = this.history[of];
    h.push(value);
    if (h.length > 60) h.shift();
    const top = Math.max(...h.filter((v) => v >= 0), 1e-9) * 1.15;
    const step = 60 / Math.max(h.length - 1, 1); // a short history is drawn over the whole width too
    const points = h.map((v, i) => (v >= 0 ? `${(i * step).toFixed(1)},${(19 - 18 * v / top).toFixed(1)}` : ""));
    document.querySelector(`.line[data-of=${of}] polyline`).setAttribute("points", points.join(" ").trim());
  }
}

function show(id, value, text, title) {
  const out = $(id);
  out.dataset.value = value;
  if (out.textContent !== text) out.textContent = text;
  if (title !== undefined) out.title = title;
}

const seconds = (v) => (v >= 0 ? v.toFixed(2) + " s" : "–");

function rate(v) {
  if (!(v >= 0)) return "–";
  return v >= 1e6 ? (v / 1e6).toFixed(2) + " Mbit/s" : Math.round(v / 1e3) + " kbit/s";
}

function size(v) {
  if (v >= 1e9) return (v / 1e9).toFixed(2) + " GB";
  return v >= 1e6 ? (v / 1e6).toFixed(1) + " MB" : Math.round(v / 1e3) + " kB";
}

function frames(dropped, total) {
  return total ? `${dropped} (${(100 * dropped / total).toFixed(1)} %)` : "0";
}

function clock(s) {
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  return (s >= 3600 ? Math.floor(s / 3600) + ":" : "") + two(s / 60 % 60) + ":" + two(s % 60);
}

// codec turns what a browser is told ("avc1.4d401f") into a word.
export function codec(c) {
  if (!c) return "";
  const known = {avc1: "H.264", hvc1: "H.265", hev1: "H.265", av01: "AV1", vp09: "VP9", mp4a: "AAC", mp3: "MP3", opus: "Opus", "ac-3": "AC-3", "ec-3": "E-AC-3", flac: "FLAC"};
  return c === "mp4a.69" || c === "mp4a.6b" ? "MP3" : known[c.toLowerCase().split(".")[0]] || c;
}
