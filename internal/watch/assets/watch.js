// The page of one stream. It connects, plays, tells in words what is going on, and
// comes back by itself from whatever may pass.
//
//   connecting → waiting (no such stream yet) ⟲
//              → playing ⇄ paused-source (connected, nothing comes)
//              → over → connecting …      refused, unsupported: until asked again
import {Figures, bufferedEnd, codec} from "./figures.js";
import {Reports} from "./report.js";
import {makeLoader} from "./loader.js";
import {address, list} from "./urls.js";
import {wireControls} from "./controls.js";

const mpegts = window.mpegts;
const $ = (id) => document.getElementById(id);
const video = $("video");
const at = address();
const figures = new Figures(video);
const reports = new Reports(video, figures, at.name);

let player = null;
let seen = null; // what the loader of this connection counts
let state = "";
let tries = 0; // failed attempts in a row
let timer = 0; // of the next attempt

const words = {
  connecting: "Connecting", waiting: "Waiting for the publisher", playing: "Live", silent: "Publisher paused",
  over: "Stream is over", refused: "Refused", busy: "Node is full", unreachable: "No connection",
  unsupported: "Cannot be played here", away: "Paused",
};

// enter shows a state. Text explains it, hint says what to do, raw is for whoever asks
// what the browser said.
function enter(next, text = "", hint = "", raw = "") {
  const changed = state !== next;
  state = next;
  document.body.dataset.state = next;
  if (changed) $("state").textContent = words[next];
  if (next !== "playing") $("live").classList.add("late");
  $("cover").hidden = next === "playing";
  $("cover-title").textContent = words[next];
  $("cover-text").textContent = text;
  $("cover-hint").textContent = hint;
  $("cover-hint").hidden = !hint;
  $("cover-raw").querySelector("code").textContent = raw;
  $("cover-raw").hidden = !raw;
  $("retry").hidden = !["over", "refused", "unsupported", "unreachable", "busy", "away"].includes(next);
  $("retry").textContent = next === "away" ? "Play" : "Try again";
}

function connect() {
  clearTimeout(timer);
  drop();
  if (!mpegts || !mpegts.isSupported()) {
    enter("unsupported", "This browser has no Media Source Extensions, so it cannot play a live stream on a page.",
      "On a phone, open one of the addresses below in VLC.");
    return;
  }
  if (tries === 0) enter("connecting", at.name);
  const overSocket = document.querySelector("input[name=via]:checked").value === "ws";
  seen = {url: "", started: performance.now(), bytes: 0, opened: 0, lastData: 0, answer: null, failed: ""};
  reports.begin(seen); // before the figures of the last connection are gone
  figures.reset(seen);
  const mine = seen;
  player = mpegts.createPlayer({type: "flv", isLive: true, url: overSocket ? at.ws : at.http}, {
    customLoader: makeLoader(mine),
    enableStashBuffer: false,
    // Gentle: a little faster until the delay is short, never a jump that tears sound.
    liveSync: true, liveSyncMaxLatency: 1.6, liveSyncTargetLatency: 0.8, liveSyncPlaybackRate: 1.08,
    autoCleanupSourceBuffer: true, autoCleanupMaxBackwardDuration: 40, autoCleanupMinBackwardDuration: 15,
    lazyLoad: false, deferLoadAfterSourceOpen: false,
  });
  // Not from within an event: the player must not be destroyed while it speaks.
  const then = (f) => (...args) => setTimeout(() => { if (mine === seen) f(...args); });
  player.on(mpegts.Events.MEDIA_INFO, then(media));
  player.on(mpegts.Events.LOADING_COMPLETE, then(ended));
  player.on(mpegts.Events.ERROR, then(failed));
  player.attachMediaElement(video);
  player.load();
  play();
}

function play() {
  const going = video.play();
  if (going) going.catch((e) => { if (e.name === "NotAllowedError") { video.muted = true; video.play().catch(() => {}); } });
}

function drop() {
  if (!player) return;
  const old = player;
  player = null;
  seen = null;
  old.destroy();
}

// again tries once more, later each time: 1 s, then up to most, with a share of chance
// so that a thousand pages do not come back in one instant.
function again(most, least = 1000) {
  const wait = Math.max(least, Math.min(most, 1000 * 1.6 ** tries)) * (0.8 + 0.4 * Math.random());
  tries++;
  clearTimeout(timer);
  timer = setTimeout(connect, wait);
}

function media(info) {
  figures.media(info);
  $("sound").hidden = !(info.hasAudio && !info.hasVideo);
}

function ended() {
  // Short streams end before their last frames are shown.
  const left = bufferedEnd(video) - video.currentTime;
  const mine = seen;
  setTimeout(() => {
    if (mine !== seen) return;
    drop();
    reports.over();
    tries = 0;
    enter("over", "The publisher has stopped.", "This page goes on by itself when it starts again.");
    again(8000, 2000);
  }, left > 0 && left < 5 ? left * 1000 : 0);
}

function failed(type, detail, info) {
  const answer = seen.answer;
  if (type === mpegts.ErrorTypes.NETWORK_ERROR) {
    const had = seen.bytes > 0;
    if (answer) reports.over();
    else reports.broke();
    drop();
    if (had) tries = 0;
    if (answer) refused(answer);
    else {
      enter("unreachable", had ? "The connection broke." : "The server does not answer.", "Trying again by itself.");
      again(10000);
    }
    return;
  }
  const what = (info && info.msg) || detail;
  reports.over();
  const decoder = detail === mpegts.ErrorDetails.MEDIA_CODEC_UNSUPPORTED || detail === mpegts.ErrorDetails.MEDIA_FORMAT_UNSUPPORTED ||
    /support|codec|mime/i.test(what);
  drop();
  if (decoder) {
    const [, named] = what.match(/codecs?\s*=\s*"?([\w.-]+)/i) || [];
    enter("unsupported", `This browser does not decode ${codec(named) || "what is in the stream"}.`,
      "ffplay 6.1 or newer does: its command is below. Publish H.264 with AAC for every browser.", what);
    return;
  }
  // A media error may pass: a decoder that was lost, a stream that was changed.
  enter("connecting", `Starting over: ${what}`);
  again(10000);
}

function refused({status, text, retryAfter}) {
  switch (status) {
    case 404:
      enter("waiting", `Nobody publishes ${at.name} now.`,
        at.rtmp ? `Publish to ${at.rtmp} and it starts here by itself.` : "It starts here by itself.");
      again(4000);
      return;
    case 401:
      enter("refused", text || "This stream asks for a token.",
        "Open the page with the whole signed address, everything from “?” on included. Ask whoever gave you the link for a fresh one.");
      return;
    case 403:
      enter("refused", text || "This stream may not be watched from here.",
        "A token that is over, an address or a site that is not on the list: whoever runs the stream can tell.");
      return;
    case 429: case 503:
      enter("busy", text || "The node takes no more viewers now.", "Trying again by itself.");
      again(30000, Math.max(2, retryAfter) * 1000);
      return;
  }
  enter("unreachable", text || `The server answered ${status}.`, "Trying again by itself.");
  again(15000);
}

// tick looks at the connection once a second.
function tick() {
  if (seen && seen.opened) {
    const now = performance.now();
    const quiet = now - Math.max(seen.lastData, seen.opened);
    const left = bufferedEnd(video) - video.currentTime;
    if (quiet > 1500 && !(left > 0.1)) {
      if (seen.bytes > 0) enter("silent", "Connected; nothing comes.", "It goes on by itself when the publisher is back.");
      else enter("waiting", "Connected; no picture yet.");
    } else if (state !== "playing" && video.readyState >= 3 && !video.paused) shown();
    if (state === "playing" && figures.delay() > 6) toLive(); // a tab that slept
  }
  figures.tick(state === "playing");
  const behind = $("delay").dataset.value;
  $("live").classList.toggle("late", state !== "playing" || behind > 2.5 || video.paused);
}

function shown() {
  figures.picture();
  tries = 0;
  if (seen) enter("playing");
}

// toLive jumps to the newest frames, and connects again if nothing is loading.
function toLive() {
  if (!player) { tries = 0; connect(); return; }
  const end = bufferedEnd(video);
  if (end - video.currentTime > 1) video.currentTime = end - 0.5;
  if (video.paused) play();
}

video.addEventListener("playing", shown);
video.addEventListener("loadeddata", () => figures.picture());
video.addEventListener("progress", () => figures.arrived());

// A pause is a pause of the picture; a long one also lets go of the connection, or the
// browser would keep everything that comes.
let away = 0;
video.addEventListener("pause", () => {
  clearTimeout(away);
  if (player && seen && seen.bytes > 0) away = setTimeout(() => {
    if (!video.paused || !player) return;
    drop();
    enter("away", "Disconnected while paused.");
  }, 15000);
});
video.addEventListener("play", () => clearTimeout(away));

$("retry").onclick = () => { tries = 0; connect(); };
for (const via of document.querySelectorAll("input[name=via]")) {
  via.onchange = () => {
    history.replaceState(null, "", location.pathname + location.search + (via.value === "ws" ? "#ws" : ""));
    tries = 0;
    connect();
  };
}

$("name").textContent = at.name;
document.title = `${at.name} · Millrace`;
list($("urls"), at);
if (location.hash === "#ws") document.querySelector("input[name=via][value=ws]").checked = true;
if (mpegts) mpegts.LoggingControl.enableAll = false;
wireControls({video, toLive, connected: () => player !== null, connect: () => { tries = 0; connect(); }});
setInterval(tick, 1000);
connect();
