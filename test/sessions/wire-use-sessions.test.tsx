import { openPage } from "../client/page.tsx";
import { act, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { expect, test } from "vitest";
import {
  type AgentClient,
  useAgent,
  useAgentChat,
  type UseAgentChat,
  useSessions,
  type UseSessions,
} from "../../src/client/react.ts";
import { startTalk } from "../chat-client/talk.ts";
import { addressOf, atEnd, eventually, QUICK } from "../clients/harness.ts";
import { toLine } from "../client/to-line.ts";

const echo = { script: ({ userText }: { userText: string }) => `re ${userText}` };

/** A page with a list of sessions and a chat. */
async function openApp(host: { readonly port: number }) {
  const container = document.createElement("div");
  document.body.append(container);
  const root = createRoot(container);
  let shown: { agent: AgentClient; chat: UseAgentChat; sessions: UseSessions } | undefined;
  function App({ session }: { session: string | undefined }): ReactNode {
    const agent = useAgent({ ...QUICK, agent: "Talk", name: "x", host: addressOf(host) });
    const sessions = useSessions({ agent });
    const where = session === undefined ? {} : { session };
    const chat = useAgentChat({ agent, throttle: false, getInitialMessages: null, ...where });
    shown = { agent, chat, sessions };
    return null;
  }
  const flags = globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean };
  const acting = async (work: () => void) => {
    flags.IS_REACT_ACT_ENVIRONMENT = true;
    await act(async () => work());
    flags.IS_REACT_ACT_ENVIRONMENT = false;
  };
  const show = (session?: string) => acting(() => root.render(<App session={session} />));
  atEnd(async () => {
    await acting(() => root.unmount());
    container.remove();
  });
  await show();
  const now = () => {
    if (shown === undefined) throw new Error("Nothing is shown.");
    return shown;
  };
  return { now, show, lines: () => now().chat.messages.map(toLine) };
}

test("a list of sessions that follows what anybody does, and a chat that moves along", async () => {
  const { host, agent } = await startTalk(echo);
  const app = await openApp(host);
  await eventually(() => expect(app.now().sessions).toMatchObject({ isLoaded: true, sessions: [] }));
  await app.now().chat.sendMessage({ text: "a" });
  await eventually(() => expect(app.now().sessions).toMatchObject({ current: "main" }));
  const { id } = await app.now().sessions.create({ name: "Plans" });
  await eventually(() => expect(app.now().sessions.sessions.map(({ name }) => name)).toEqual(["Plans", "a"]));
  await app.now().sessions.switchTo(id);
  await eventually(() => expect(app.lines()).toEqual([]));
  await app.now().chat.sendMessage({ text: "b" });
  await eventually(() => expect(app.lines()).toEqual(["user: b", "assistant: re b"]));
  expect(app.now().sessions.current).toBe(id);
  expect((await agent.stored()).map(toLine)).toEqual(["user: a", "assistant: re a"]);
  // By server code, by another tab.
  await agent.renameSession(id, "Old plans");
  await eventually(() => expect(app.now().chat.session).toMatchObject({ id, name: "Old plans", namedBy: "user" }));
  const other = await openPage(host, { session: id });
  await other.shows(["user: b", "assistant: re b"]);
  await app.now().sessions.rename(id, "New plans");
  await eventually(() => expect(other.chat().session).toMatchObject({ name: "New plans" }));
  await eventually(() => expect(app.now().sessions.sessions[0]).toMatchObject({ name: "New plans" }));
  // After a cut it is where it was.
  other.line.cut();
  other.line.mend();
  await eventually(() => expect(other.line.opens).toBe(2));
  await other.chat().sendMessage({ text: "c" });
  await eventually(() => expect(app.lines()).toHaveLength(4));
  await app.now().sessions.remove(id);
  await eventually(() => expect(app.lines()).toEqual(["user: a", "assistant: re a"]));
  await eventually(() => expect(app.now().sessions.sessions.map(({ name }) => name)).toEqual(["a"]));
  await eventually(() => expect(other.chat().connectionError).toMatchObject({ code: 4404, reason: "unknown session" }));
  await expect(app.now().sessions.rename(id, "x")).rejects.toMatchObject({ code: "not_found" });
});

test("the option says which session, from the first message on, and may change", async () => {
  const { host, agent } = await startTalk(echo);
  const { id } = await agent.createSession("Plans");
  const app = await openApp(host);
  await app.now().chat.sendMessage({ text: "a" });
  await app.show(id);
  await eventually(() => expect(app.now().chat.session).toMatchObject({ id }));
  await app.now().chat.sendMessage({ text: "b" });
  await eventually(() => expect(app.lines()).toEqual(["user: b", "assistant: re b"]));
  await app.show("nope");
  await eventually(() => expect(app.now().chat.error).toMatchObject({ code: "not_found" }));
  expect(app.lines()).toEqual(["user: b", "assistant: re b"]);
  await app.show();
  await eventually(() => expect(app.lines()).toEqual(["user: a", "assistant: re a"]));
});

test("a page in a session loads that one, and pages it", async () => {
  const { host, agent } = await startTalk(echo);
  const { id } = await agent.createSession("Plans");
  const page = await openPage(host, { session: id });
  await page.chat().sendMessage({ text: "b" });
  await page.unmount();
  const again = await openPage(host, { session: id });
  expect(again.shown[0]).toEqual(["user: b", "assistant: re b"]);
  await again.shows(["user: b", "assistant: re b"]);
  // The name of the session is in the address of the socket: nothing else had to be asked.
  expect(again.line.sent.filter(({ type }) => type === "perdure_session")).toEqual([]);
});
