// Where MCP servers may be, and where they may lead.
import { expect, test } from "vitest";
import { openMcp } from "./agent.ts";
import { startMcp } from "./mcp-servers.ts";
import { listen } from "./web-server.ts";

const quick = { retry: { maxAttempts: 1 } };

test.each([
  ["a private network", "http://10.0.0.1/mcp"],
  ["another one", "https://172.20.1.1/mcp"],
  ["the one at home", "http://192.168.1.1:8080/mcp"],
  ["what clouds tell their machines", "http://169.254.169.254/latest/meta-data"],
  ["link-local", "http://169.254.1.1/mcp"],
  ["no address at all", "http://0.0.0.0/mcp"],
  ["IPv6 without a network", "http://[::]/mcp"],
  ["IPv6 link-local", "http://[fe80::1]/mcp"],
  ["IPv6 private", "http://[fd00::1]/mcp"],
  ["IPv4 in IPv6", "http://[::ffff:10.0.0.1]/mcp"],
  ["an address as one number", "http://167772161/mcp"],
  ["an address in octal", "http://012.0.0.1/mcp"],
  ["a name of a cloud", "http://metadata.google.internal/mcp"],
  ["a name without a dot", "http://database/mcp"],
])("%s is refused, and nothing is stored", async (_what, url) => {
  const agent = await openMcp();
  const mcp = await agent.mcp();
  await expect(mcp.addServer("bad", url, quick)).rejects.toMatchObject({ code: "not_allowed" });
  expect(await agent.rows("mcp")).toEqual([]);
});

test.each([
  ["a file", "file:///etc/passwd"],
  ["a script", "javascript:alert(1)"],
  ["a password in it", "https://me:secret@example.com/mcp"],
  ["nothing", ""],
])("%s is no server", async (_what, url) => {
  const mcp = await (await openMcp()).mcp();
  await expect(mcp.addServer("bad", url)).rejects.toMatchObject({ code: "bad_input" });
});

test("this machine may be used, unless that is refused", async () => {
  const server = await startMcp("modern", () => {});
  const name = server.url.replace("127.0.0.1", "localhost");
  const mcp = await (await openMcp()).mcp();
  expect(await mcp.addServer("local", name)).toMatchObject({ state: "ready" });
  const strict = await (await openMcp({ refuseLoopback: true })).mcp();
  await expect(strict.addServer("local", server.url)).rejects.toMatchObject({ code: "not_allowed" });
});

test("a private place that was named may be used", async () => {
  const server = await startMcp("modern", () => {});
  const strict = await (await openMcp({ refuseLoopback: true })).mcp();
  const transport = { allowPrivate: true } as const;
  expect(await strict.addServer("own", server.url, { transport })).toMatchObject({ state: "ready" });
});

test("a redirect to another place is not followed", async () => {
  const hits: string[] = [];
  const inner = await listen((request) => {
    hits.push(request.url);
    return new Response("inner");
  });
  const outer = await listen(() => Response.redirect(`${inner.origin}/admin`, 307));
  const mcp = await (await openMcp()).mcp();
  await expect(mcp.addServer("sly", `${outer.origin}/mcp`, quick)).rejects.toMatchObject({ code: "disconnected" });
  expect(hits).toEqual([]);
  await Promise.all([inner.stop(), outer.stop()]);
});

test("a server does not lead a sign-in into a private network", async () => {
  const asked: string[] = [];
  const web = await listen((request) => {
    const url = new URL(request.url);
    asked.push(url.pathname);
    if (url.pathname.startsWith("/.well-known/oauth-protected-resource")) {
      return Response.json({ resource: `${url.origin}/mcp`, authorization_servers: ["http://169.254.169.254/"] });
    }
    return new Response("no", { status: 401, headers: { "www-authenticate": "Bearer" } });
  });
  const agent = await openMcp();
  const mcp = await agent.mcp();
  const options = { ...quick, callbackHost: agent.url() };
  await expect(mcp.addServer("sly", `${web.origin}/mcp`, options)).rejects.toMatchObject({ code: "not_allowed" });
  expect(asked.length).toBeGreaterThan(1);
  await web.stop();
});

test("an answer without end is cut off", async () => {
  const chunk = new TextEncoder().encode("x".repeat(1_000_000));
  const web = await listen(
    () =>
      new Response(new ReadableStream({ pull: (controller) => controller.enqueue(chunk) }), {
        headers: { "content-type": "application/json" },
      }),
  );
  const mcp = await (await openMcp()).mcp();
  await expect(mcp.addServer("endless", `${web.origin}/mcp`, quick)).rejects.toThrow(/larger than/);
  await web.stop();
});
