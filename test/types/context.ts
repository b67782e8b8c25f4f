// What a report of the window says, how tokens are counted, and what tools may say of their outputs, as types.
import { jsonSchema, tool } from "ai";
import { durableTool, Think } from "perdure";
import type { ContextReport, LeftOutItem, OutputSubject, TextCounter } from "perdure/context";
import type { UseAgentChat } from "perdure/react";

export async function costs(agent: Think): Promise<number> {
  const report: ContextReport = await agent.contextReport();
  const { sent, whole } = report.cost ?? { sent: 0, whole: 0 };
  const tokens: number = report.byKind.carried + report.leftOutByKind.superseded;
  return report.leftOut.reduce((sum, item) => sum + costOf(item), tokens + whole - sent);
}

function costOf({ kind, newer = [], compaction, cost }: LeftOutItem): number {
  const named: readonly string[] = newer.map(({ id, call }) => `${id} ${call} ${compaction}`);
  // @ts-expect-error there is no such kind
  if (kind === "forgotten") return named.length;
  return cost ?? 0;
}

/** A client is told the same. */
export async function asked(chat: UseAgentChat): Promise<readonly LeftOutItem[]> {
  return (await chat.report()).leftOut;
}

const ticket = tool({
  inputSchema: jsonSchema<{ id: string; page?: number }>({ type: "object" }),
  execute: ({ id }) => ({ text: id }),
});

export const said = durableTool(ticket, {
  // The input and the output are the tool's own.
  supersedes: ({ id, page }, { text }): OutputSubject | undefined =>
    text === "" ? undefined : page === undefined ? id : { of: id, piece: page.toFixed(0) },
});
export const several = durableTool(ticket, { supersedes: ({ id }) => [id, { of: id, piece: "1" }] });
// @ts-expect-error a key is a text
export const number = durableTool(ticket, { supersedes: ({ page }) => page });
// @ts-expect-error the tool has no such field
export const field = durableTool(ticket, { supersedes: ({ path }) => path as string });

export class Counted extends Think {
  override countTokens(model: string): TextCounter | undefined {
    return model.startsWith("openai/") ? (text) => text.split(" ").length : undefined;
  }
}

export class Slow extends Think {
  // @ts-expect-error a counter answers at once
  override countTokens() {
    return async (text: string) => text.length;
  }
}
