// The network says "later" to the last change of an answer.
import { slackRateLimited, tooManyRequests } from "perdure/testing";
import { expect, test, vi } from "vitest";
import { serverTool } from "../think/harness.ts";
import { ADA, ADA_AT_SLACK, ADA_THERE, DM, type HostKit, openKit, openSlack, openTelegram } from "./kit.ts";

/** Between two calls at a place: no preview comes before the test lets the time pass. */
const PACE = 1_000;
const WAIT_S = 40;

interface Terms {
  readonly manual: true;
  readonly tools: Record<string, ReturnType<typeof serverTool>>;
  readonly script: NonNullable<Parameters<typeof openKit>[0]>["script"];
}

interface There {
  readonly kit: HostKit;
  says(): void;
  /** The next change is refused so. */
  refuses(): void;
  texts(): string[];
  creates(): number;
  changes(): number;
}

const NETWORKS: Readonly<Record<string, (terms: Terms) => Promise<There>>> = {
  async memory(terms) {
    const kit = await openKit({ ...terms, network: { paceMs: PACE } });
    const count = (op: string) => kit.network.calls.filter((one) => one.op === op).length;
    return {
      ...{ kit, texts: () => kit.texts(), creates: () => count("create"), changes: () => count("edit") },
      says: () => void kit.network.says(DM, ADA, "hi"),
      refuses: () => kit.network.plan("edit", { kind: "rate", retryAfterMs: WAIT_S * 1000 }),
    };
  },
  async Telegram(terms) {
    const kit = await openTelegram({ ...terms, pace: { directMs: PACE, groupMs: PACE, perSecond: 1000 } });
    const count = (method: string) => kit.telegram.calls.filter((one) => one.method === method).length;
    return {
      ...{
        kit,
        texts: () => kit.texts(),
        creates: () => count("sendMessage"),
        changes: () => count("editMessageText"),
      },
      says: () => void kit.telegram.says(7, ADA_THERE, "hi"),
      refuses: () => kit.telegram.plan("editMessageText", tooManyRequests(WAIT_S)),
    };
  },
  async Slack(terms) {
    const kit = await openSlack({ ...terms, pace: { channelMs: PACE, perSecond: 1000 } });
    const count = (method: string) => kit.slack.calls.filter((one) => one.method === method).length;
    return {
      ...{
        kit,
        texts: () => kit.texts(),
        creates: () => count("chat.postMessage"),
        changes: () => count("chat.update"),
      },
      says: () => void kit.slack.says("D7", ADA_AT_SLACK, "hi"),
      refuses: () => kit.slack.plan("chat.update", slackRateLimited(WAIT_S)),
    };
  },
};

const cases = Object.keys(NETWORKS).flatMap((name) => [false, true].map((restarts) => ({ name, restarts })));

test.each(cases)(
  "a 429 on the last change of an answer, twice, at $name (restarts: $restarts): it comes when the network says, whole and once",
  async ({ name, restarts }) => {
    const gate = Promise.withResolvers<string>();
    const open = NETWORKS[name];
    if (open === undefined) throw new Error(name);
    const there = await open({
      manual: true,
      tools: { wait: serverTool(() => gate.promise) },
      script: ({ step }) => (step === 0 ? { text: "Half", toolCalls: [{ toolName: "wait", input: {} }] } : "of it."),
    });
    const { kit } = there;
    there.says();
    await kit.until(() => expect(there.texts()).toEqual(["Half"]));
    there.refuses();
    there.refuses();
    const changed = there.changes();
    gate.resolve("now");
    // The turn ends while no time passes: what comes next is the last change.
    const ended = "SELECT 1 FROM perdure_delivery WHERE outcome IS NOT NULL";
    await vi.waitFor(() => expect(kit.ports.at(-1)?.sql(ended)).toHaveLength(1), { timeout: 10_000, interval: 10 });
    for (const attempts of [1, 2]) {
      await kit.until(() => expect(kit.deliveries()).toMatchObject([{ attempts }]));
      const { nextAt = 0 } = kit.deliveries()[0] ?? {};
      expect(there.changes()).toBe(changed + attempts);
      expect(nextAt - kit.clock.now()).toBeGreaterThan((WAIT_S - PACE / 1000) * 1000);
      if (restarts) await kit.restart();
      await kit.clock.set(nextAt - 1);
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(there.changes()).toBe(changed + attempts);
      expect(there.texts()).toEqual(["Half"]);
      await kit.clock.set(nextAt);
    }
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: false, parts: 1 }]));
    expect(there.texts()).toEqual(["Half\n\nof it."]);
    expect([there.creates(), there.changes()]).toEqual([1, changed + 3]);
    expect(kit.events.filter(({ type }) => type.startsWith("delivery"))).toEqual([]);
  },
);
