import { AgentClient } from "agents/client";
import { expect, test } from "vitest";
import { kebabCase } from "./kebab.ts";

const table: [input: string, output: string][] = [
  ["ChatAgent", "chat-agent"],
  ["AIChatAgent", "a-i-chat-agent"],
  ["myAgent", "my-agent"],
  ["HTTPClient", "h-t-t-p-client"],
  ["SCREAMING_CASE", "screaming-case"],
  ["AB", "ab"],
  ["My_Agent", "my--agent"],
  ["Agent2", "agent2"],
  ["already-kebab", "already-kebab"],
  ["A", "a"],
  ["a", "a"],
  ["A1", "a1"],
  ["123", "123"],
  ["_Agent", "--agent"],
  ["Agent_", "agent"],
  ["Agent__", "agent-"],
  ["AGENT_", "agent-"],
  ["-Agent", "-agent"],
  ["Café", "café"],
  ["ÉCOLE", "école"],
  ["", ""],
];

test.each(table)("kebabCase(%j) is %j", (input, output) => {
  expect(kebabCase(input)).toBe(output);
});

test("the public client agrees", () => {
  for (const [input] of table.filter(([name]) => name !== "")) {
    const client = new AgentClient({ agent: input, host: "localhost:1", startClosed: true });
    expect(kebabCase(input)).toBe(client.agent);
  }
});
