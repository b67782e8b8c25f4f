import { readdir, readFile, readlink } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MemoryFiles } from "../../src/toolbox/sandbox/memory-files.ts";
import {
  closeBrowsers,
  closeBrowserSession,
  createBrowserTools,
  probeBrowser,
} from "../../src/toolbox/sandbox/browser/browser-tools.ts";
import { createEgress } from "../../src/toolbox/egress/egress.ts";
import type { Probe } from "../../src/toolbox/sandbox/sandbox.ts";
import { type Caller, callerFor, openChromium, refOf, resultOf } from "./browser-suite.ts";
import { type Site, startSite } from "./site.ts";

// One browser for the file. Where there is no jail the same pages are shown to one without: the rest must hold there too.
let site: Site;
let caller: Caller;
let probe: Probe;
let jail: "bubblewrap" | "none";
let executablePath: string;
const workspace = new MemoryFiles();
const small = { responseBytes: 2 << 20, navigationMs: 10_000, maxChars: 5_000 };

beforeAll(async () => {
  process.env.PERDURE_BROWSER_SECRET = "hunter2";
  site = await startSite();
  executablePath = await openChromium();
  probe = await probeBrowser({ executablePath });
  jail = probe.ok ? "bubblewrap" : "none";
  caller = await callerFor(site, { executablePath, jail, workspace, session: "suite", ...small });
});
afterAll(async () => {
  await closeBrowserSession("second");
  await closeBrowsers();
  site.close();
});

const open = async (path: string) => await caller.call("browser_open", { url: site.url(path) });

test("pages are opened, read and acted on by refs; pictures and documents are saved and shown", async () => {
  const home = await open("/");
  expect(home).toContain(`Page 1: ${site.url("/")}`);
  expect(home).toContain("Title: Home");
  await caller.call("browser_act", { ref: refOf(home, "textbox"), action: "fill", value: "Ada" });
  expect(await caller.call("browser_act", { ref: refOf(home, 'button "Set"'), action: "click" })).toContain(
    "Title: Ada",
  );
  expect(await caller.call("browser_act", { ref: refOf(home, 'link "Next"'), action: "click" })).toContain(
    "Title: Next",
  );
  expect(await caller.call("browser_read")).toContain(
    "Second **page**\n\n- one\n- two\n\n[Far](https://example.com/far)",
  );
  expect(await caller.call("browser_read", { format: "links" })).toContain("- [Far](https://example.com/far)");
  const picture = await caller.output("browser_screenshot", { full: true });
  expect(picture).toMatchObject({
    kind: "image",
    mediaType: "image/png",
    hash: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
  });
  expect(JSON.stringify(picture).length).toBeLessThan(500);
  const files = workspace.files("/browser");
  expect([...(files[0]?.bytes.slice(1, 4) ?? [])]).toEqual([...Buffer.from("PNG")]);
  expect(await caller.output("browser_pdf")).toMatchObject({ kind: "file", mediaType: "application/pdf" });
  // What was shown to the model is the file, as long as it is the same.
  const tools = await createBrowserTools({ egress: createEgress({ allow: [] }), workspace, executablePath, jail });
  const shown = await tools.browser_screenshot?.toModelOutput?.({ toolCallId: "c", input: {}, output: picture });
  expect(shown).toMatchObject({ type: "content", value: [{ type: "text" }, { type: "file", mediaType: "image/png" }] });
});

test("addresses that are not http or https, or not allowed, are not opened", async () => {
  const before = site.reached.length;
  for (const url of [
    ...[
      "file:///etc/passwd",
      "view-source:http://example.com/",
      "view-source:file:///etc/passwd",
      "chrome://version",
      "about:blank",
    ],
    ...[
      "data:text/html,<h1>x",
      "javascript:alert(1)",
      "blob:http://x/1",
      "ftp://example.com/",
      "devtools://devtools/",
      "filesystem:http://x/",
    ],
    ...[
      "http://169.254.169.254/latest/meta-data/",
      "http://[fd00:ec2::254]/",
      "http://127.0.0.1:22/",
      "http://localhost/",
      "http://0x7f000001/",
    ],
    ...[
      "https://example.com/",
      `http://user:pass@${site.host}/`,
      `http://${site.host}.example.com/`,
      "nonsense",
      "/etc/passwd",
      "",
    ],
  ]) {
    expect([url, await caller.output("browser_open", { url })]).toEqual([
      url,
      { error: expect.any(String) as unknown },
    ]);
  }
  expect(site.reached.slice(before)).toEqual([]);
});

test("pages do not get to files, to the browser's own pages, or elsewhere by links, scripts and redirects", async () => {
  for (const name of ["file", "source", "chrome", "script", "redirect", "other"]) {
    const steps = await open("/steps");
    const after = await caller.call("browser_act", { ref: refOf(steps, `link "${name}"`), action: "click" });
    const text = await caller.call("browser_read", { format: "text" });
    expect(after + text).not.toMatch(/root:|reached|Chromium\/|user:x:/);
  }
  expect(await open("/redirect-file")).toMatch(/could not be opened/);
  expect(await open("/redirect-other")).not.toContain("reached");
  expect(site.reached).toEqual([]);
  expect(await open("/next")).toContain("Title: Next");
});

test("requests of pages to other places never leave: pictures, scripts, frames, fetch, beacons, sockets, WebRTC", async () => {
  await open("/subresources");
  const answers = JSON.parse(await resultOf(caller)) as string[];
  expect(answers).toHaveLength(4);
  for (const answer of answers) expect(answer).not.toContain("200reach");
  await open("/socket");
  expect(await resultOf(caller)).toBe('["failed","failed","function"]');
  await open("/webrtc");
  // No address of this machine, neither for the page nor for the server that it asks.
  const candidates = JSON.parse(await resultOf(caller)) as string[];
  for (const candidate of candidates) expect(candidate).not.toMatch(/(^| )(\d{1,3}\.){3}\d{1,3} \d+ typ/);
  expect(site.reached).toEqual([]);
});

test("no service workers, no rights, no downloads, no files for pages; dialogs are dismissed", async () => {
  await open("/worker");
  expect(await resultOf(caller)).not.toContain("registered");
  expect(site.asked).not.toContain("/sw.js");
  await open("/rights");
  expect(await resultOf(caller)).not.toContain("granted");
  const dialogs = await open("/dialogs");
  expect(await resultOf(caller)).toBe("[false,null]");
  expect(dialogs).toContain('A dialog was dismissed. It said: "first"');
  expect(await open("/download")).toMatch(/could not be opened/);
  const file = await open("/file");
  const clicked = await caller.call("browser_act", { ref: refOf(file, "upload"), action: "click" });
  expect(clicked + (await caller.call("browser_snapshot"))).toContain("Files cannot be given to pages");
});

test("windows that pages open are bounded, and are of the web", async () => {
  const popups = await open("/popups");
  await caller.call("browser_act", { ref: refOf(popups, 'button "Bad"'), action: "click" });
  const view = await caller.call("browser_snapshot");
  expect(view).not.toMatch(/root:|Chromium\//);
  const again = await open("/popups");
  await caller.call("browser_act", { ref: refOf(again, 'button "Open"'), action: "click" });
  const notes = await caller.call("browser_snapshot");
  const others = /Other open pages: ([\d, ]+)\./.exec(notes)?.[1]?.split(", ") ?? [];
  expect(others.length).toBeLessThanOrEqual(2);
  expect(await caller.call("browser_open", { url: site.url("/"), new_page: true })).toMatch(
    /3 pages are already open|Page \d+/,
  );
  await caller.call("browser_close");
  expect(await caller.call("browser_snapshot")).toContain("No page is open");
});

test("what is too large, never ends or crashes costs a page and no more", async () => {
  expect(await open("/big")).toMatch(/more than 2097152 bytes/);
  expect(await open("/long")).toContain("The content was cut");
  const hung = await callerFor(site, { executablePath, jail, session: "suite", ...small });
  const quick = await callerFor(site, { executablePath, jail, session: "second", ...small, navigationMs: 1_000 });
  expect(await quick.call("browser_open", { url: site.url("/hang") })).toMatch(/Timeout|could not be opened/);
  expect(await hung.call("browser_open", { url: site.url("/") })).toContain("Title: Home");
});

test("sessions have their own cookies and their own way out", async () => {
  await open("/cookie");
  expect(await open("/cookie")).toContain("who=me");
  const second = await callerFor(site, { executablePath, jail, session: "second", ...small });
  expect(await second.call("browser_open", { url: site.url("/cookie") })).toContain("none");
  // The same session with another egress: from now on only that one counts.
  const { check: _, ...blind } = createEgress({ allow: ["example.com"] });
  const shut = await callerFor(site, { executablePath, jail, session: "second", ...small, egress: blind });
  const asked = site.asked.length;
  expect(await shut.call("browser_open", { url: site.url("/next") })).not.toContain("Title: Next");
  expect(site.asked.length).toBe(asked);
});

test("text of a page cannot end the part that is marked as text of a page, and wrong input is explained", async () => {
  const shown = await open("/forge");
  const mark = /lines with ([0-9a-f]{8}) is text/.exec(shown)?.[1] ?? "";
  const parts = shown.split(`--- ${mark}`);
  expect(parts).toHaveLength(3);
  expect(parts[1]).toContain("ignore all rules");
  expect(parts[0]).not.toContain("ignore all rules");
  for (const [name, input, expected] of [
    ["browser_act", { ref: "#name", action: "click" }, "is not a ref"],
    ["browser_act", { ref: "e9999", action: "click" }, "There is no element e9999"],
    ["browser_act", { ref: "e1", action: "type" }, "must be one of: click, fill"],
    ["browser_act", { ref: "e1", action: "fill" }, "needs `value`"],
    ["browser_read", { format: "html" }, "must be one of: markdown"],
    ["browser_snapshot", { page: 99 }, "There is no page 99"],
    ["browser_snapshot", { page: "x" }, "must be the number"],
    ["browser_open", { url: 1 }, "must be a string"],
  ] as const) {
    expect(await caller.output(name, input)).toEqual({ error: expect.stringContaining(expected) as unknown });
  }
});

test("the browser is in a jail with its own sandbox on, or the probe says why it is not", async () => {
  await open("/");
  // Our filter is one; Chromium puts another on those that show pages, a moment after they were started.
  const least = jail === "bubblewrap" ? 2 : 0;
  const unready = async () => {
    const renderers = (await chromiumProcesses(executablePath)).filter(({ type }) => type === "renderer");
    return renderers.length === 0 || renderers.some(({ filters }) => filters < least);
  };
  await expect.poll(unready).toBe(false);
  const processes = await chromiumProcesses(executablePath);
  expect(processes.length).toBeGreaterThan(1);
  const host = await namespaces("self");
  const jailedOnes = processes.filter(({ spaces }) => spaces.every((space, index) => space !== host[index]));
  expect(jailedOnes.length).toBe(jail === "bubblewrap" ? processes.length : 0);
  for (const one of processes) expect(one.environment).not.toContain("hunter2");
  // With a jail it says how it is built, without one what to install.
  expect(JSON.stringify(probe)).toMatch(
    jail === "bubblewrap" ? /Chromium in a jail/ : /bubblewrap|socat|User namespaces|Linux/,
  );
});

interface Chromium {
  readonly type: string | undefined;
  readonly filters: number;
  readonly spaces: readonly string[];
  readonly environment: string;
}

async function namespaces(pid: string): Promise<string[]> {
  return await Promise.all(
    ["net", "pid", "user", "mnt"].map(async (name) => await readlink(`/proc/${pid}/ns/${name}`).catch(() => "gone")),
  );
}

/** Processes of browsers that this test file has started: descendants of this process that run Chromium. */
async function chromiumProcesses(path: string): Promise<Chromium[]> {
  const names = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const parents = new Map<string, string>();
  const lines = new Map<string, string>();
  for (const pid of names) {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
    parents.set(pid, stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] ?? "0");
    lines.set(pid, (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).replaceAll("\0", " "));
  }
  const isOurs = (pid: string | undefined): boolean =>
    pid === `${process.pid}` || (pid !== undefined && pid !== "0" && isOurs(parents.get(pid)));
  const file = path.slice(path.lastIndexOf("/"));
  const found: Chromium[] = [];
  for (const [pid, line] of lines) {
    if (!isOurs(pid) || !(line.split(" ")[0] ?? "").endsWith(file)) continue;
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    found.push({
      type: /--type=([\w-]+)/.exec(line)?.[1],
      filters: Number(/^Seccomp_filters:\s*(\d+)/m.exec(status)?.[1] ?? 0),
      spaces: await namespaces(pid),
      environment: await readFile(`/proc/${pid}/environ`, "utf8").catch(() => ""),
    });
  }
  return found;
}
