import type { ToolSet } from "ai";

/** The tools that an agent has without writing them. Under a symbol: every plain name belongs to the user. */
export const toolKit: unique symbol = Symbol("perdure.tool-kit");

/** What the kit adds to a turn. */
export interface TurnKit {
  /** What the model is told about it. */
  readonly prompt: string;
  readonly tools: ToolSet;
}

/** Gathers what is built in and what others bring: files, skills, extensions, MCP servers. */
export class ToolKit {
  async ofTurn(): Promise<TurnKit> {
    return { prompt: "", tools: {} };
  }
}
