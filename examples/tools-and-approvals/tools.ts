import { type InferUITools, tool, type UIMessage } from "ai";
import { z } from "zod";

/** The files of this example: names only, in memory. */
const files = new Set(["notes.txt", "draft.md", "photo.jpg"]);

export const tools = {
  // Has `execute`: runs here, inside the turn.
  listFiles: tool({
    description: "Lists the user's files.",
    inputSchema: z.object({}),
    execute: () => [...files],
  }),
  // Runs here too, but a person is asked first: see `approvals`.
  deleteFile: tool({
    description: "Deletes one of the user's files.",
    inputSchema: z.object({ name: z.string() }),
    execute: ({ name }) => (files.delete(name) ? `${name} is deleted` : `there is no ${name}`),
  }),
  // Has no `execute`: the page runs it, and the turn goes on when it has answered.
  localTime: tool({
    description: "Tells the time where the user is.",
    inputSchema: z.object({}),
    outputSchema: z.string(),
  }),
};

/** Which tools ask a person first. A function here could decide by the input. */
export const approvals = { deleteFile: "user-approval" } as const;

/** A message whose tool parts have the types of these tools. */
export type ToolMessage = UIMessage<unknown, Record<string, unknown>, InferUITools<typeof tools>>;
