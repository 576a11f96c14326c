// The front page: what is live, looked up every two seconds.
import {rtmp} from "./urls.js";

const $ = (id) => document.getElementById(id);
const list = $("streams");
let shown = "";

$("open").onsubmit = (e) => {
  e.preventDefault();
  // A query may follow the name: a token, say. Each part of the path is encoded.
  const [, path, query] = $("want").value.trim().replace(/^\/+/, "").match(/^([^?]*)(\?.*)?$/);
  location.href = "/watch/" + path.split("/").map(encodeURIComponent).join("/") + (query || "");
};

if (list) {
  const server = rtmp("/live") || "rtmp://SERVER/live";
  $("server").textContent = server;
  $("ffmpeg").textContent = `ffmpeg -re -i film.mp4 -c:v libx264 -preset veryfast -tune zerolatency -g 60 -c:a aac -f flv ${server}/show`;
  look();
}

async function look() {
  try {
    const res = await fetch("/watch/streams.json", {cache: "no-store"});
    if (res.ok) draw(await res.json());
  } catch { /* the next look may succeed */ }
  setTimeout(look, 2000);
}

function draw(streams) {
  $("empty").hidden = streams.length > 0;
  const text = JSON.stringify(streams) + Math.floor(Date.now() / 30000); // ages go on
  if (text === shown) return;
  shown = text;
  // Kept in place while they live, so that the keyboard's focus stays.
  const old = new Map([...list.children].map((li) => [li.dataset.name, li]));
  streams.forEach((s, i) => {
    const li = old.get(s.name) || line(s.name);
    old.delete(s.name);
    li.querySelector(".what").textContent = what(s);
    li.querySelector(".who").textContent = `${s.viewers} ${s.viewers === 1 ? "viewer" : "viewers"} · ${since(s.since)}`;
    if (list.children[i] !== li) list.insertBefore(li, list.children[i] || null);
  });
  for (const li of old.values()) li.remove();
}

function line(name) {
  const li = document.createElement("li");
  li.dataset.name = name;
  const a = document.createElement("a");
  a.href = "/watch/" + name.split("/").map(encodeURIComponent).join("/");
  for (const [tag, cls, text] of [["i", "dot", ""], ["strong", "title", name], ["span", "what", ""], ["span", "who", ""]]) {
    const part = document.createElement(tag);
    part.className = cls;
    part.textContent = text;
    a.append(part);
  }
  li.append(a);
  return li;
}

const words = {h264: "H.264", h265: "H.265", av1: "AV1", vp8: "VP8", vp9: "VP9", aac: "AAC", mp3: "MP3", opus: "Opus"};

function what(s) {
  const parts = [];
  if (s.width) parts.push(`${s.width}×${s.height}`);
  if (s.fps) parts.push(`${Math.round(s.fps)} fps`);
  const codecs = [s.video, s.audio].filter(Boolean).map((c) => words[c] || c);
  if (codecs.length) parts.push(codecs.join(" + "));
  if (s.bitrate) parts.push(s.bitrate >= 1e6 ? (s.bitrate / 1e6).toFixed(1) + " Mbit/s" : Math.round(s.bitrate / 1e3) + " kbit/s");
  return parts.join(" · ");
}

function since(t) {
  const minutes = Math.floor((Date.now() - new Date(t)) / 60000);
  if (minutes < 1) return "just started";
  if (minutes < 60) return `for ${minutes} min`;
  return `for ${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
