// Serves the page, built anew at each load, over a network that is made up (world.mjs), or
// over the API of a router.
//
//   npm run dev                                   a made-up network on http://127.0.0.1:8480
//   SCENARIO=well|trouble|large|empty npm run dev
//   ROUTER=http://127.0.0.1:8300 npm run dev      a real one
//
// Any name logs in; the password is "demo". The name "guest" may only look.
import http from "node:http";
import {readFile, mkdtemp} from "node:fs/promises";
import {tmpdir} from "node:os";
import path from "node:path";
import {make} from "../build.mjs";
import {World} from "./world.mjs";

const port = Number(process.env.PORT ?? 8480);
const router = process.env.ROUTER;
const world = new World(process.env.SCENARIO);
const out = await mkdtemp(path.join(tmpdir(), "console-dev-"));
const types = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html; charset=utf-8", ".txt": "text/plain"};
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; connect-src 'self' http: https: ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
let name = "";

class Refusal extends Error {
  constructor(status, reason, text) { super(text); Object.assign(this, {status, reason}); }
}

async function body(req) {
  let text = "";
  for await (const part of req) text += part;
  return text ? JSON.parse(text) : {};
}

function live(req, res) {
  res.writeHead(200, {"Content-Type": "text/event-stream", "Cache-Control": "no-store"});
  const send = (event, data) => res.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const tick = () => {
    send("network", world.network());
    if (world.nodes.length && Math.random() < 0.4) send("events", {events: [world.happen()], next: world.number});
  };
  tick();
  const timer = setInterval(tick, 1000);
  req.on("close", () => clearInterval(timer));
}

async function api(req, url) {
  const [, , what, id, more] = url.pathname.split("/").map(decodeURIComponent), q = url.searchParams;
  const who = {name, role: name === "guest" ? "read-only" : "operator", csrf: "token", router: "r1", version: "dev"};
  if (what === "login") {
    const b = await body(req);
    if (b.password !== "demo") throw new Refusal(401, "wrong_password", "name or password is wrong");
    name = b.name;
    return {...who, name};
  }
  if (!name) throw new Refusal(401, "unauthorized", "log in first");
  if (req.method !== "GET" && req.headers["x-csrf-token"] !== "token") throw new Refusal(403, "forged", "this request did not come from the console");
  const change = () => { if (name === "guest") throw new Refusal(403, "read_only", "guest may look and not change: the role operator can"); };
  const found = (v) => v ?? (() => { throw new Refusal(404, "not_found", "no such thing is known"); })();
  switch (what) {
    case "logout": name = ""; return {everywhere: true};
    case "session": return who;
    case "network": return world.network();
    case "nodes": return found(world.nodeModel(id));
    case "link": return found(world.linkModel(q.get("from"), q.get("to")));
    case "path": return found(world.path(q.get("node"), q.get("stream")));
    case "plan": return id === "dryrun" ? world.dryRun((await body(req)).edits) : world.plan();
    case "streams": return world.streams(q.get("q") ?? "");
    case "stream": return world.stream(q.get("name"));
    case "scheduling": return id === "explain" ? world.explain(q.get("ip") || "203.0.113.7") : world.scheduling();
    case "events": {
      const hit = world.log.filter((e) => ["kind", "reason", "stream"].every((k) => !q.get(k) || e[k] === q.get(k)) && (!q.get("node") || [e.node, e.from, e.to].includes(q.get("node"))));
      return {events: hit.slice(0, 200), next: world.number, total: world.log.length, kinds: [...new Set(world.log.map((e) => e.kind))].sort()};
    }
    case "documents": {
      if (!id) return {documents: world.documentsList()};
      const list = found(world.documents[id]);
      if (more === "history") return {key: id, versions: [...list].reverse().map((d) => ({...d, body: undefined}))};
      if (more === "check") return (await body(req)).body.includes?.("bad") ? {ok: false, error: "line 1: bad: unknown key\nline 3: ttl: use 1s to 24h"} : {ok: true};
      if (req.method === "GET") return q.get("version") ? list[q.get("version") - 1] : list.at(-1);
      change();
      const b = await body(req);
      if (b.based !== list.length) throw new Refusal(409, "conflict", `${id} is at version ${list.length} by ada, and this edit was made from version ${b.based}: look at what changed and edit again`);
      return world.edit(id, more === "rollback" ? list[b.version - 1].body : b.body, name, b.comment);
    }
  }
  throw new Refusal(404, "not_found", "no such path");
}

http.createServer(async (req, res) => {
  const url = new URL(req.url, "http://localhost");
  try {
    if (url.pathname.startsWith("/api/") && router) {
      const to = http.request(new URL(req.url, router), {method: req.method, headers: {...req.headers, host: new URL(router).host, origin: router}}, (from) => {
        res.writeHead(from.statusCode, from.headers);
        from.pipe(res);
      });
      to.on("error", () => res.destroy());
      req.pipe(to);
      return;
    }
    if (url.pathname === "/api/live") {
      if (!name) throw new Refusal(401, "unauthorized", "log in first");
      return live(req, res);
    }
    if (url.pathname.startsWith("/api/")) {
      const answer = await api(req, url);
      res.writeHead(200, {"Content-Type": "application/json"});
      return res.end(JSON.stringify(answer));
    }
    const page = !url.pathname.startsWith("/assets/") && (url.pathname.lastIndexOf("/") > 0 || path.extname(url.pathname) === "");
    if (page) await make(out);
    const file = page ? "index.html" : url.pathname;
    res.writeHead(200, {"Content-Type": types[path.extname(file)] ?? "application/octet-stream", "Content-Security-Policy": policy});
    res.end(await readFile(path.join(out, file)));
  } catch (e) {
    res.writeHead(e.status ?? 500, {"Content-Type": "application/json"});
    res.end(JSON.stringify({error: e.message, reason: e.reason ?? "failed"}));
    if (!e.status && e.code !== "ENOENT") console.error(e);
  }
}).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}`));
