import "../../clients/dom.ts";
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent } from "agents/react";
import { Think } from "perdure";
import { openAgentLog } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import { scriptedModel } from "perdure/testing";
import { act, type ReactNode, Suspense, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { expect, test } from "vitest";
import { atEnd, eventually, QUICK, startHost } from "../../clients/harness.ts";

const model = scriptedModel([{ text: "Noted." }]);

/** Takes down what it is told, for all who look. */
class Scribe extends Think {
  override getModel() {
    return model;
  }
  override getCollections() {
    return { notes: {} };
  }
  override onChatResponse(): void {
    this.collection<{ id: string }>("notes").upsert({ id: "from the turn" });
  }
}

test("the public chat hook and collections share one socket: a turn runs while rows come and go", async () => {
  const host = await startHost({ agents: { Scribe } });
  let chat: ReturnType<typeof useAgentChat> | undefined;
  let log: RowLog | undefined;
  const heard: string[] = [];

  function Page(): ReactNode {
    const agent = useAgent({
      ...QUICK,
      ...{ agent: "Scribe", name: "x", host: `127.0.0.1:${host.port}`, protocol: "ws" },
      onMessage: ({ data }: MessageEvent) => heard.push(String(data)),
    });
    chat = useAgentChat({ agent, throttle: false });
    useEffect(() => {
      const opened = openAgentLog({ agent, collections: ["notes"] });
      log = opened;
      return () => void opened.close();
    }, [agent]);
    return null;
  }

  const container = document.createElement("div");
  const root = createRoot(container);
  const flags = globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean };
  const acting = async (work: () => void) => {
    flags.IS_REACT_ACT_ENVIRONMENT = true;
    await act(async () => work());
    flags.IS_REACT_ACT_ENVIRONMENT = false;
  };
  atEnd(() => acting(() => root.unmount()));
  await acting(() => root.render(<Suspense fallback="loading">{<Page />}</Suspense>));
  await eventually(() => expect([chat?.status, log?.kind]).toEqual(["ready", "perdure"]));
  await log?.ready;
  const written = log?.write({
    changes: [{ table: "notes", key: "mine", operation: "insert", value: { id: "mine" } }],
  });
  void chat?.sendMessage({ text: "take this down" });
  await eventually(() => {
    expect(chat?.status).toBe("ready");
    expect(chat?.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect([...(log?.table("notes").rows() ?? [])].map(({ key }) => key).toSorted()).toEqual(["from the turn", "mine"]);
  });
  expect(await written).toMatchObject({ applied: true });
  expect(chat?.error).toBeUndefined();
  expect(heard.some((data) => data.startsWith('{"type":"perdure_rows_'))).toBe(true);
});
