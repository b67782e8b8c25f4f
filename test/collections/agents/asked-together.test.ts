import { agentCollections, agentPeer, createAgent, durableAgent, openLocalLog } from "perdure/collections";
import type { AgentCollections, AgentReference } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { dying, moments } from "../dying.ts";
import { say, seen } from "./agent-session.ts";

/** An agent of one process; under its name as owner a second one goes on at once. */
function start(
  name: string,
  collections: AgentCollections,
  script: Parameters<typeof scriptedText>[0],
  agents: AgentReference[] = [],
) {
  return createAgent(
    durableAgent({
      ...{ name, instructions: "", adapter: scriptedText(script), agents, collections, owner: name },
      retry: { delayMs: 1 },
      onFailure: () => {},
    }),
  );
}

test.each(moments)(
  "wherever an agent dies that asks two others in one turn (%s a write), each is asked once and answers once",
  async (moment) => {
    let survived = false;
    for (let at = 1; !survived; at++) {
      const log = openLocalLog();
      const collections = agentCollections(log);
      const others = ["b", "c"].map((name) => start(name, collections, ({ userText }) => `${name}: ${userText}`));
      const asking = (on: AgentCollections) =>
        start(
          "a",
          on,
          // The calls of a turn that is made again have other ids, as those of real models have.
          ({ step }) => (step === 0 ? { toolCalls: [call("b"), call("c")] } : "Both have answered."),
          ["b", "c"].map((name) => ({ agent: agentPeer(name, on), description: name })),
        );
      const call = (name: string) => ({ name, input: { message: `ask ${name}` } });
      const victim = dying(log, at, moment);
      asking(agentCollections(victim.log));
      await say(collections, "a", "go");
      const over = () =>
        seen(collections.messages, (rows) => {
          return (
            rows.some((row) => row.content === "Both have answered.") && rows.every((row) => row.processed) && rows
          );
        });
      survived = await Promise.race([victim.died.then(() => false), over().then(() => true)]);
      const second = survived ? undefined : asking(collections);
      const rows = await over();
      const asked = rows.filter(({ requestId }) => requestId !== undefined).map(({ content }) => content);
      expect(asked.toSorted(), `death at write ${at}`).toEqual(["ask b", "ask c"]);
      const replies = rows.filter(({ inReplyTo }) => inReplyTo !== undefined).map(({ content }) => content);
      expect(replies.toSorted(), `death at write ${at}`).toEqual(["b: ask b", "c: ask c"]);
      await Promise.all([...others, ...(second === undefined ? [] : [second])].map((agent) => agent.dispose()));
    }
  },
);
