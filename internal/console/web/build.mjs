// Builds the console's page into ../dist, which is committed and embedded in the router,
// so that "go build" alone works on a clone.
//
//   node build.mjs           build
//   node build.mjs --check   build elsewhere, and fail if ../dist is something else
//
// The same sources give the same bytes. What is in dist/assets has a hash in its name and
// may be kept for ever; index.html has to be asked for again.
import {build} from "esbuild";
import {cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile} from "node:fs/promises";
import {tmpdir} from "node:os";
import path from "node:path";
import {fileURLToPath} from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const dist = path.join(here, "..", "dist");
const shipped = ["preact", "uplot", "mpegts.js"]; // whose code is in the bundle

export async function make(out, options = {}) {
  await rm(out, {recursive: true, force: true});
  await mkdir(path.join(out, "assets"), {recursive: true});
  const result = await build({
    absWorkingDir: here,
    entryPoints: {console: "src/main.tsx", theme: "src/theme.ts", live: "src/live-worker.ts"},
    outdir: path.join(out, "assets"),
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "none", // licences.txt has them
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: {".svg": "file"},
    metafile: true,
    logLevel: "warning",
    ...options,
  });
  const icon = "icon.svg"; // its address is known to bookmarks, so it has no hash
  await cp(path.join(here, "src", icon), path.join(out, icon));
  await writeFile(path.join(out, "licences.txt"), await licences());
  await writeFile(path.join(out, "index.html"), await index(result.metafile));
}

// index fills the names of what was built into the page.
async function index(metafile) {
  const outputs = Object.entries(metafile.outputs);
  const entry = (source) => outputs.find(([, o]) => o.entryPoint === source);
  const name = (file) => "/assets/" + path.basename(file);
  const [main, about] = entry("src/main.tsx");
  const [theme] = entry("src/theme.ts");
  const [live] = entry("src/live-worker.ts");
  const page = await readFile(path.join(here, "src", "index.html"), "utf8");
  return page.replace("{{theme}}", name(theme)).replace("{{style}}", name(about.cssBundle)).replace("{{script}}", name(main)).replace("{{live}}", name(live));
}

async function licences() {
  let text = "The console contains these programs.\n";
  for (const module of shipped) {
    const dir = path.join(here, "node_modules", module);
    const {name, version, license} = JSON.parse(await readFile(path.join(dir, "package.json"), "utf8"));
    const file = (await readdir(dir)).find((f) => /^licen[cs]e/i.test(f));
    text += `\n==== ${name} ${version} (${license})\n\n${await readFile(path.join(dir, file), "utf8")}`;
  }
  return text;
}

async function files(dir) {
  const all = new Map();
  for (const e of await readdir(dir, {recursive: true, withFileTypes: true})) {
    if (!e.isFile()) continue;
    const file = path.join(e.parentPath, e.name);
    all.set(path.relative(dir, file), await readFile(file));
  }
  return all;
}

async function check() {
  const fresh = await mkdtemp(path.join(tmpdir(), "console-"));
  try {
    await make(fresh);
    const [want, got] = [await files(fresh), await files(dist)];
    const names = [...new Set([...want.keys(), ...got.keys()])].sort();
    const other = names.filter((n) => !want.has(n) || !got.has(n) || !want.get(n).equals(got.get(n)));
    if (other.length) {
      console.error(`internal/console/dist is not what its sources give: run "make console" and commit it. Different: ${other.join(", ")}`);
      process.exitCode = 1;
    }
  } finally {
    await rm(fresh, {recursive: true, force: true});
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.includes("--check")) await check();
  else await make(dist);
}
