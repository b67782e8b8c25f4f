import { tool } from "ai";
import { Agent } from "perdure";
import { agentMcpServer, createMcpHandler } from "perdure/mcp";
import { z } from "zod";

const MAX_WORDS = 100;

const BOOKS = [
  { title: "Tides", by: "A. Marlow", about: "the sea, ships, harbours" },
  { title: "The Long Answer", by: "E. Rook", about: "patience, talk, agents" },
  { title: "Tea at Five", by: "O. Lind", about: "tea, kettles, afternoons" },
] as const;

/** An MCP server of the app's own, so that there is one to connect to without a network: a small library. */
export class Library extends Agent {
  readonly #server = createMcpHandler(
    agentMcpServer(this, {
      name: "library",
      instructions: "A library of three books. They are made up.",
      tools: {
        find_books: tool({
          description: "Finds books of the library by what they are about.",
          inputSchema: z.object({ about: z.string().min(1).max(MAX_WORDS) }),
          execute: ({ about }) => {
            const found = BOOKS.filter((book) => book.about.includes(about.toLowerCase().trim()));
            if (found.length > 0) return { books: found };
            return {
              books: [],
              hint: `Nothing is about that. There is: ${BOOKS.map((book) => book.about).join("; ")}.`,
            };
          },
        }),
      },
    }),
  );

  override onRequest(request: Request): Promise<Response> {
    return this.#server(request);
  }
}
