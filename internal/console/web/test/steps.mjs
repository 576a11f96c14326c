// What holds of the console, in the order in which it is tried: later steps go on from
// where earlier ones left the page. The network: center-1, relay-1 (the nearer one) and
// relay-2 each in a datacenter of its own, edge-1, which has viewers of given.stream.
// given.pushed is published at edge-1 and watched at relay-2, and so is given.hostile.

const row = (node) => `tr[data-node="${node}"]`;
const upstream = (page, node) => page.locator(`${row(node)} td[data-label=From]`).innerText();
const follows = async (page, node) => !(await page.locator(row(node)).innerText()).includes("has not taken it");

// change applies what is drafted, by its preview.
async function change({page}, comment) {
  await page.click(".draft .primary");
  await page.waitForSelector(".dialog .outcome");
  await page.fill(".dialog [name=comment]", comment);
  await page.click(".dialog footer .primary");
  await page.waitForSelector(".dialog", {state: "detached"});
}

const plan = async ({page, given}, at = "") => {
  await page.goto(`${given.base}/plan${at}`);
  await page.waitForSelector(row("edge-1"));
};

export const steps = {
  async "a wrong password is refused, and a visit to the log-in is no error"({page, given, logIn, want}) {
    await page.goto(given.base + "/");
    await page.waitForSelector("[name=password]");
    want("errors in the browser's console", page.errors, []);
    await logIn(page, {name: given.operator.name, password: "not this one"});
    await page.waitForSelector("[role=alert]");
    want("still at the log-in", await page.locator(".top").count(), 0);
  },

  async "log in, and see the network live"({page, given, logIn, until, want}) {
    await logIn(page, given.operator);
    await page.waitForSelector('[data-line="live"]');
    page.errors = []; // of the refusal
    for (const id of ["center-1", "relay-1", "relay-2", "edge-1"]) await page.waitForSelector(`.node[data-key="${id}"]`);
    await page.waitForSelector(".wire .drawn", {state: "attached"});
    await until("nothing is wrong", async () => (await page.locator(".pill").first().innerText()).includes("All well"));
    want("cookies that scripts can read", await page.evaluate(() => document.cookie), "");
    want("errors in the browser's console", page.errors, []);
  },

  async "the keyboard goes from node to node, opens one, and comes back"({page, until, want}) {
    await page.locator('.node[data-key="center-1"]').focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await until("the edge has the focus", () => page.evaluate(() => document.activeElement.dataset.key === "edge-1"));
    await page.keyboard.press("Enter");
    await page.waitForSelector(".panel .choices");
    want("the address", new URL(page.url()).pathname, "/network/nodes/edge-1");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".panel", {state: "detached"});
    await until("the focus is back", () => page.evaluate(() => document.activeElement.dataset.key === "edge-1"));
  },

  async "a link shows its figures and trend"({page, given}) {
    await page.goto(given.base + "/network/links/relay-1/edge-1");
    await page.waitForSelector(".panel .chart canvas");
    await page.waitForSelector(".panel >> text=What the cost is made of");
  },

  async "a price is tried, and holds"(t) {
    await plan(t, "/nodes/relay-2");
    await t.page.locator(".panel").getByLabel("Price per GB").fill("0.01");
    await t.page.keyboard.press("Tab");
    await change(t, "it sent a bill");
    await t.page.waitForSelector(`${row("relay-2")} >> text=edited`);
  },

  async "an upstream is pinned after a preview, and the node follows"(t) {
    const {page, given, until, want, picture} = t;
    await plan(t, "/nodes/edge-1");
    want("first upstream", await upstream(page, "edge-1"), "relay-1");
    await page.click('[aria-label="Pin relay-2 first"]');
    await page.click(".draft .primary");
    await page.waitForSelector(".dialog .outcome");
    want("the preview names the node", await page.locator(".diffs tbody td").first().innerText(), "edge-1");
    want("and where it would go", (await page.locator('.diffs td[data-label="Then"]').first().innerText()).split(",")[0], "relay-2");
    want("without a reason it cannot be applied", await page.isDisabled(".dialog footer .primary"), true);
    await picture(page, "preview-desk-light");
    want("nothing has changed yet", await upstream(page, "edge-1"), "relay-1");
    await page.keyboard.press("Escape");
    await change(t, "relay-1 is being moved");
    await until("the plan", async () => (await upstream(page, "edge-1")) === "relay-2" && (await follows(page, "edge-1")));
    await page.goto(`${given.base}/streams/${given.stream}`);
    await page.waitForSelector('.branch[data-node="edge-1"][data-upstream="relay-2"]');
  },

  async "it is rolled back from the history, and the node follows"(t) {
    const {page, given, until} = t;
    await plan(t);
    await page.click("text=History");
    await page.waitForSelector(".versions li >> text=relay-1 is being moved");
    await page.locator(".versions li", {hasText: "it sent a bill"}).getByText("Roll back to it").click();
    await page.waitForSelector(".dialog .outcome");
    await page.click(".dialog footer .primary");
    await page.waitForSelector(".versions li >> text=Version 3");
    await plan(t);
    await until("the plan", async () => (await upstream(page, "edge-1")) === "relay-1" && (await follows(page, "edge-1")));
    await page.goto(`${given.base}/streams/${given.stream}`);
    await page.waitForSelector('.branch[data-node="edge-1"]:not([data-upstream="relay-2"])');
  },

  async "requests that another page forged are refused"({page, given, want}) {
    const ask = (headers) =>
      page.evaluate(async (headers) => {
        const res = await fetch("/api/documents/edits", {method: "PUT", headers: {"Content-Type": "application/json", ...headers}, body: JSON.stringify({based: 3, body: "{}", comment: "forged"})});
        return [res.status, (await res.json()).reason];
      }, headers);
    want("without a token", await ask({}), [403, "forged"]);
    want("with a made-up one", await ask({"X-CSRF-Token": "x".repeat(43)}), [403, "forged"]);
    const csrf = await page.evaluate(async () => (await (await fetch("/api/session")).json()).csrf);
    const res = await page.context().request.put(given.base + "/api/documents/edits", {
      headers: {Origin: "http://evil.example", "X-CSRF-Token": csrf}, data: {based: 3, body: "{}", comment: "forged"},
    });
    want("from elsewhere, with the right one", [res.status(), (await res.json()).reason], [403, "forged"]);
    const now = await page.evaluate(async () => (await (await fetch("/api/documents/edits")).json()).version);
    want("nothing was stored", now, 3);
  },

  async "who may only look is shown nothing to change, and refused"({given, open, logIn, want}) {
    const page = await open();
    await logIn(page, given.guest);
    await page.waitForSelector('[data-line="live"]');
    await page.goto(given.base + "/plan/nodes/edge-1");
    await page.waitForSelector(".panel .steer");
    want("buttons to pin", await page.locator('[aria-label^="Pin "]').count(), 0);
    const got = await page.evaluate(async () => {
      const {csrf} = await (await fetch("/api/session")).json();
      const res = await fetch("/api/documents/edits", {method: "PUT", headers: {"Content-Type": "application/json", "X-CSRF-Token": csrf}, body: JSON.stringify({based: 3, body: "{}", comment: "may I"})});
      return [res.status, (await res.json()).reason];
    });
    want("an edit all the same", got, [403, "read_only"]);
    await page.context().close();
  },

  async "a plan that leaves a node nobody says so before, and can be rolled back"(t) {
    const {page, given, until, want} = t;
    await plan(t, "/nodes/edge-1");
    await page.waitForSelector(".panel .steer li");
    for (const ban = page.locator('.panel [aria-label^="Ban "]'); await ban.count(); ) await ban.first().click();
    await page.click(".draft .primary");
    await page.waitForSelector(".dialog .notice.is-bad >> text=A node would have no upstream: edge-1");
    await page.fill(".dialog [name=comment]", "nothing is good enough");
    want("the button", await page.locator(".dialog footer .primary").innerText(), "Apply all the same");
    await page.click(".dialog footer .primary");
    await page.waitForSelector(".dialog", {state: "detached"});
    await until("the plan", async () => (await upstream(page, "edge-1")) === "nobody" && (await follows(page, "edge-1")));
    await page.goto(given.base + "/network");
    await page.waitForSelector(".problems >> text=edge-1 has no upstream");
    await page.goto(`${given.base}/streams/${given.stream}`); // which goes on by the settings of the node
    await page.waitForSelector('.branch[data-node="edge-1"][data-upstream]:not([data-upstream=""])');
    await page.goto(given.base + "/plan/history");
    await page.locator(".versions li", {hasText: "Version 3"}).getByText("Roll back to it").click();
    await page.waitForSelector(".dialog .outcome");
    await page.click(".dialog footer .primary");
    await page.waitForSelector(".versions li >> text=Version 5");
    await plan(t);
    await until("the plan", async () => (await upstream(page, "edge-1")).startsWith("relay-") && (await follows(page, "edge-1")));
  },

  async "a document is checked, compared and saved"({page, given}) {
    await page.goto(given.base + "/documents/coverage");
    const text = await page.locator("#text").inputValue();
    await page.fill("#text", text + "nonsense\n");
    await page.waitForSelector(".notice.is-bad");
    await page.fill("#text", text + "192.0.2.0/25 city *\n");
    await page.waitForSelector("text=no faults");
    await page.click("text=Compare and save");
    await page.waitForSelector(".diff .plus");
    await page.fill(".dialog input", "half of it is in the city");
    await page.click(".dialog footer .primary");
    await page.waitForSelector("text=Version 2");
  },

  async "no domain is a problem, which leads to where domains are written"({page, given, picture}) {
    const save = async (text, why) => {
      await page.fill("#text", text);
      await page.waitForSelector("text=no faults");
      await page.click("text=Compare and save");
      await page.fill(".dialog input", why);
      await page.click(".dialog footer .primary");
      await page.waitForSelector(".dialog", {state: "detached"});
    };
    await page.goto(given.base + "/documents/domains");
    const text = await page.locator("#text").inputValue();
    await save("", "nobody is served");
    await page.goto(given.base + "/network");
    const problem = page.locator(".problems a", {hasText: "No domain is served"});
    await problem.waitFor();
    await picture(page, "no-domain");
    await problem.click();
    await page.waitForURL(given.base + "/documents/domains");
    await save(text, "they are served again");
    await page.goto(given.base + "/network");
    await page.waitForSelector('.node[data-key="edge-1"]');
    await problem.waitFor({state: "detached"});
  },

  async "an address is tried"({page, given, until}) {
    await page.goto(given.base + "/scheduling");
    await page.waitForSelector(".places .chip >> text=edge-1");
    await page.fill("[name=ip]", "203.0.113.7");
    await page.click(".try .primary");
    await until("its edge", async () => (await page.locator(".edges li").first().innerText()).includes("edge-1"));
    await page.waitForSelector(".rules >> text=coverage");
  },

  async "every view has an address that can be passed on, also to who has to log in first"({given, open, logIn, want}) {
    const page = await open();
    const there = {
      [`/streams/${given.stream}`]: `.branch[data-node="edge-1"]`,
      "/network/nodes/edge-1": ".panel h1 >> text=edge-1",
      "/network/links/relay-1/edge-1": ".panel >> text=What the cost is made of",
      "/plan/nodes/edge-1": ".panel .steer",
      "/plan/history": ".versions",
      "/events?kind=edit": '.event[data-kind="edit"]',
      "/scheduling?ip=203.0.113.7&stream=live%2Fdemo": ".answer .rules >> text=coverage",
      "/documents/coverage": "#text",
      // and what is not there
      "/streams/live/nobody": "text=live/nobody is not live",
      "/network/nodes/nobody": ".panel >> text=No such node",
      "/network/links/nobody/edge-1": ".panel >> text=No such link",
      "/plan/nodes/nobody": ".panel >> text=No such node",
      "/scheduling?domain=nobody.test": "text=The domain nobody.test is not served",
      "/events?kind=nothing": "text=No event matches",
      "/documents/nothing": "text=No page has this address",
      "/network/nothing": "text=No page has this address",
      "/nothing/%zz": "text=No page has this address",
    };
    const [first] = Object.keys(there);
    await logIn(page, given.guest, first);
    for (const [address, what] of Object.entries(there)) {
      if (address !== first) await page.goto(given.base + address);
      await page.waitForSelector(what).catch(() => {
        throw new Error(`${address} does not show ${what}`);
      });
      want("the address", page.url(), given.base + address);
    }
    await page.goto(given.base + first);
    await page.click(".tree-name >> text=edge-1");
    await page.waitForSelector(".panel h1 >> text=edge-1");
    await page.goBack();
    await page.waitForSelector(there[first]);
    await page.context().close();
  },

  async "the stream plays"({page, given, until}) {
    await page.goto(`${given.base}/streams/${given.stream}`);
    await page.click("button:has-text('Play')");
    await until("pictures", () => page.evaluate(() => document.querySelector("video")?.getVideoPlaybackQuality().totalVideoFrames > 10 && document.querySelector("video").currentTime > 0.5));
    await page.click('[aria-label="Close the player"]');
  },

  async "a stream that is published at an edge begins there, and goes by its center"({page, given, want, picture}) {
    await page.goto(`${given.base}/streams/${given.pushed}`);
    await page.waitForSelector('.branch[data-node="center-1"][data-upstream="edge-1"]');
    const tree = page.locator("[role=tree] .branch");
    want("the way from the encoder on", await tree.evaluateAll((list) => list.map((b) => `${b.ariaLevel} ${b.dataset.node}`)), ["1 edge-1", "2 center-1", "3 relay-2"]);
    want("where the encoder is", await tree.nth(0).locator(".tag").innerText(), "ingest");
    want("where others find it", await tree.nth(1).locator(".tag").first().innerText(), "source");
    want("nodes beside the tree", await page.locator(".loose").count(), 0);
    await page.waitForSelector(`.stream-rows a[aria-current] >> text=from edge-1`);
    await picture(page, "ingest");
  },

  async "a hostile name is text, and fits"({page, given, open, want, picture}) {
    const state = await page.context().storageState();
    for (const width of [1280, 390]) {
      const other = await open({viewport: {width, height: 844}, storageState: state});
      for (const [at, name] of [["/streams", ".stream-rows strong"], ["/streams/" + given.hostile.split("/").map(encodeURIComponent).join("/"), ".card h1"], ["/network/nodes/center-1", ".panel .lines a"], ["/events", ".event-why a"]]) {
        await other.goto(given.base + at);
        const text = await other.locator(name, {hasText: "live/<img"}).first().innerText();
        want("the name at " + at, text, given.hostile.replace("\u202e", "⟨U+202E⟩"));
        want(`${at} is too wide by`, await other.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0);
        want("scripts that ran", await other.evaluate(() => window.ran), undefined);
        await picture(other, `hostile-${name.replace(/\W+/g, "")}-${width}`);
      }
      await other.context().close();
    }
  },

  async "all pages fit a phone and a desk, in light and dark"({page, given, open, want, picture}) {
    const state = await page.context().storageState();
    for (const [size, width, height] of [["desk", 1280, 800], ["phone", 390, 844]]) {
      for (const colorScheme of ["light", "dark"]) {
        const other = await open({viewport: {width, height}, colorScheme, storageState: state});
        for (const [name, at, there] of [
          ["network", "/network", ".node"], ["node", "/network/nodes/edge-1", ".panel .chart canvas"], ["plan", "/plan", ".pools tbody tr"], ["steer", "/plan/nodes/edge-1", ".panel .steer"],
          ["stream", `/streams/${given.stream}`, ".branch"], ["scheduling", "/scheduling", ".places tbody tr"], ["events", "/events", ".event"], ["documents", "/documents", "#text"],
        ]) {
          await other.goto(given.base + at);
          await other.waitForSelector(there);
          await other.waitForSelector('[data-line="live"]');
          want(`${name} on a ${size} is too wide by`, await other.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0);
          await picture(other, `${name}-${size}-${colorScheme}`);
        }
        await other.context().close();
      }
    }
  },

  async "the tree changes when a node is killed, without reload"({page, given, run, picture}) {
    await page.goto(`${given.base}/streams/${given.stream}`);
    await page.waitForSelector('.branch[data-node="edge-1"][data-upstream^="relay-"]');
    const victim = await page.locator('.branch[data-node="edge-1"]').getAttribute("data-upstream");
    await run("kill " + victim);
    await page.waitForSelector(`.branch[data-node="edge-1"]:not([data-upstream="${victim}"])`);
    await page.waitForSelector(".pill.is-bad");
    await picture(page, "killed-stream");
    await page.click(".nav >> text=Network");
    await page.waitForSelector(`.problems >> text=${victim} is down`);
    await page.waitForSelector(`.node.is-bad[data-key="${victim}"]`);
    await picture(page, "killed-network");
    await page.goto(given.base + "/events?kind=node_down");
    await page.waitForSelector(`.event[data-kind="node_down"] >> text=${victim}`);
    await run("restart " + victim);
    await page.click(".nav >> text=Network");
    await page.waitForSelector(`.node.is-good[data-key="${victim}"]`);
  },

  async "eight tabs are live at the same time"({page, given}) {
    const tabs = [page]; // over HTTP/1.1 a browser has six connections for a router
    while (tabs.length < 8) tabs.push(await page.context().newPage());
    for (const tab of tabs) {
      await tab.goto(given.base + "/network");
      await tab.waitForSelector('[data-line="live"]');
      await tab.waitForSelector('.node[data-key="edge-1"]');
    }
    await tabs[7].goto(`${given.base}/streams/${given.stream}`); // by an answer, not by what is told
    await tabs[7].waitForSelector('.branch[data-node="edge-1"]');
    for (const tab of tabs.slice(2)) await tab.close();
  },

  async "a router that is gone is told of in each tab, and found again"({page, run}) {
    const tabs = page.context().pages();
    await run("kill router-1");
    for (const tab of tabs) await tab.waitForSelector(".lost[role=alert]");
    await run("restart router-1");
    for (const tab of tabs) {
      await tab.waitForSelector('[data-line="live"]');
      await tab.waitForSelector(".lost", {state: "detached"});
    }
    await tabs[1].close();
  },

  async "a browser without shared workers is told as well"({page, given}) {
    const tab = await page.context().newPage();
    await tab.addInitScript(() => delete window.SharedWorker);
    await tab.goto(given.base + "/network");
    await tab.waitForSelector('[data-line="live"]');
    await tab.close();
  },

  async "log out"({page, given, want}) {
    await page.click('[aria-label^="Account of"]');
    await page.click("text=Log out");
    await page.waitForSelector("[name=password]");
    want("the API", await page.evaluate(async () => (await fetch("/api/network")).status), 401);
  },
};
