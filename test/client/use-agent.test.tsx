import { render } from "./render.tsx";
import { expect, test } from "vitest";
import { eventually, startHost } from "../clients/harness.ts";
import { Counter } from "./harness.ts";

test("the page shows the state as it changes, and calls methods", async () => {
  const host = await startHost({ agents: { Counter } });
  const page = await render(host, { agent: "Counter", name: "x" });
  await eventually(() => expect(page.text()).toBe('{"n":0}'));
  expect(await page.agent().stub.add(2)).toBe(2);
  await eventually(() => expect(page.text()).toBe('{"n":2}'));
  page.agent().setState({ n: 7 });
  await eventually(() => expect(page.text()).toBe('{"n":7}'));
  expect(page.agent().path).toEqual([{ agent: "counter", name: "x" }]);
});

test("another name is another connection; the same address is the same object", async () => {
  const host = await startHost({ agents: { Counter } });
  const page = await render(host, { agent: "Counter", name: "x" });
  await eventually(() => expect(page.text()).toBe('{"n":0}'));
  const before = page.agent();
  await before.stub.add(1);
  await page.update({ agent: "Counter", name: "x" });
  expect(page.agent()).toBe(before);
  await page.update({ agent: "Counter", name: "y" });
  expect(page.agent()).not.toBe(before);
  await eventually(() => expect(page.text()).toBe('{"n":0}'));
  await eventually(() => expect(host.status().connections).toBe(1));
});

test("callbacks are those of the last render", async () => {
  const host = await startHost({ agents: { Counter } });
  const seen: string[] = [];
  const options = (name: string) => ({
    agent: "Counter",
    onStateUpdate: (state: { n: number }) => void seen.push(`${name} ${state.n}`),
  });
  const page = await render(host, options("one"));
  await eventually(() => expect(seen).toEqual(["one 0"]));
  await page.update(options("two"));
  await page.agent().stub.add(3);
  await eventually(() => expect(seen).toEqual(["one 0", "two 3"]));
});

test("a page that is closed to it says so", async () => {
  const host = await startHost({ agents: { Counter } });
  const page = await render(host, { agent: "Counter", name: "x" });
  await eventually(() => expect(page.agent().identified).toBe(true));
  page.agent().send('"close for good"');
  await eventually(() => expect(page.agent().connectionError).toMatchObject({ code: 4001 }));
});

test("enabled: false does not connect until it is true", async () => {
  const host = await startHost({ agents: { Counter } });
  const page = await render(host, { agent: "Counter", enabled: false });
  expect(page.agent().readyState).toBe(3);
  await page.update({ agent: "Counter", enabled: true });
  await eventually(() => expect(page.text()).toBe('{"n":0}'));
});
