// The console in Chromium, over a running cluster. tools/e2e starts it:
//
//   node test/page.mjs '{"base": "http://…", "operator": {…}, "guest": {…}, …}'
//
// It says "ok WHAT" for each thing that holds, and orders what it cannot do itself:
// "do COMMAND" is a command for the cluster, answered by a line on its standard input.
// It ends with 1 and a sentence if something does not hold.
import path from "node:path";
import readline from "node:readline";
import {chromium} from "playwright-core";
import {steps} from "./steps.mjs";

const given = JSON.parse(process.argv[2]);
const answers = readline.createInterface({input: process.stdin})[Symbol.asyncIterator]();

// run has the cluster carry out a command.
async function run(command) {
  console.log("do " + command);
  const {value} = await answers.next();
  if (value !== "done") throw new Error(`${command}: ${value}`);
}

const browser = await chromium.launch({
  executablePath: given.chromium,
  args: ["--no-sandbox", "--autoplay-policy=no-user-gesture-required"],
  ignoreDefaultArgs: ["--disable-back-forward-cache"], // people have it: pages that were left live on
});
const thrown = []; // by any page: exceptions, and what the policy of content forbade

async function open(options = {}) {
  const context = await browser.newContext({viewport: {width: 1280, height: 800}, ...options});
  context.setDefaultTimeout(given.patience);
  const page = await context.newPage();
  page.on("pageerror", (e) => thrown.push(e.stack ?? e.message));
  page.on("console", (m) => /Content Security Policy|Refused to/.test(m.text()) && thrown.push(m.text()));
  page.on("console", (m) => m.type() === "error" && page.errors.push(m.text()));
  page.errors = []; // what the browser's console shows in red
  return page;
}

async function logIn(page, who, at = "/") {
  await page.goto(given.base + at);
  await page.fill("[name=name]", who.name);
  await page.fill("[name=password]", who.password);
  await page.click("form button");
}

// until waits for something that the page does not show by itself as an element.
async function until(what, ok) {
  for (const end = Date.now() + given.patience; Date.now() < end; await new Promise((r) => setTimeout(r, 50))) if (await ok()) return;
  throw new Error(`${what}: not within ${given.patience} ms`);
}

function want(what, got, wanted) {
  if (JSON.stringify(got) !== JSON.stringify(wanted)) throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(wanted)}`);
}

const picture = (page, name, full = false) => page.screenshot({path: path.join(given.pictures, name + ".png"), fullPage: full});

let page;
try {
  page = await open();
  const tools = {given, page, open, logIn, until, want, picture, run};
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step(tools);
    } catch (e) {
      await picture(page, "failed").catch(() => {});
      throw new Error(`${name}: ${e.message}; see ${path.join(given.pictures, "failed.png")}`);
    }
    console.log("ok " + name);
  }
  if (thrown.length) throw new Error("pages threw:\n" + thrown.join("\n"));
} catch (e) {
  console.error(e.message);
  process.exitCode = 1;
} finally {
  await browser.close();
  process.stdin.destroy();
}
