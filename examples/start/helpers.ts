import { tool } from "ai";
import { agentTool, durableTool, Think } from "perdure";
import { z } from "zod";
import { chooseModel } from "./model/choose.ts";
import { explainFailure } from "./model/failure.ts";
import { guide, GuideError, guidePace } from "./model/guide.ts";
import { researcherReply, tidierReply } from "./model/helper-reply.ts";
import { assistantTools, wait } from "./tools.ts";

const MAX_TOPIC = 200;
const SOURCES = ["The handbook", "The field notes", "The survey"] as const;
/** So many words of the guide's pace to read a source: long enough to see it. */
const SOURCE_WORDS = 50;
/** What is left after the sources is to write it down. */
const READ = 0.75;

/** What all helpers have in common. */
abstract class Helper extends Think {
  override maxSteps = 6;

  override classifyChatError(error: unknown) {
    // The guide was asked to fail: it would fail again.
    return error instanceof GuideError ? ("fatal" as const) : undefined;
  }

  override onChatError(error: unknown): string {
    return explainFailure(error, chooseModel(process.env));
  }
}

/** Finds things out, and says how far it is. */
export class Researcher extends Helper {
  override getModel() {
    const { builtIn, model } = chooseModel(process.env);
    return builtIn ? guide(guidePace(process.env), researcherReply) : model;
  }

  override getSystemPrompt(): string {
    return "You are a researcher. Call lookUp once with the topic that you are given, then write a short report in markdown.";
  }

  override getTools() {
    const lookUp = tool({
      description: "Finds sources about a topic. They are made up: this is a demonstration.",
      inputSchema: z.object({ topic: z.string().min(1).max(MAX_TOPIC) }),
      execute: async ({ topic }, { abortSignal }) => {
        await this.reportProgress({ milestone: "Planned", fraction: 0, phase: "Planning" });
        for (const [at, source] of SOURCES.entries()) {
          const fraction = ((at + 1) / SOURCES.length) * READ;
          await this.reportProgress({ fraction: (at / SOURCES.length) * READ, phase: "Reading", message: source });
          await wait(SOURCE_WORDS * guidePace(process.env), abortSignal);
          await this.reportProgress({ fraction, phase: "Reading", message: source });
        }
        await this.reportProgress({ milestone: "Sources read", fraction: READ, phase: "Writing" });
        // Clients take what they heard of last for the newest, and that may be what was reported just before.
        await this.reportProgress({ fraction: READ, phase: "Writing" });
        return SOURCES.map((title) => ({ title, about: topic }));
      },
    });
    // Reading again does no harm: after a crash it is simply done once more.
    return { lookUp: durableTool(lookUp, { replay: "safe" }) };
  }

  override formatAgentToolInput(input: unknown): string {
    return `Research: ${field(input, "topic")}`;
  }
}

/** Deletes what nobody needs, and asks before. */
export class Tidier extends Helper {
  override getModel() {
    const { builtIn, model } = chooseModel(process.env);
    return builtIn ? guide(guidePace(process.env), tidierReply) : model;
  }

  override getSystemPrompt(): string {
    return "You tidy up folders. Make up two file names in the folder that you are given, and call deleteFiles with them. It only pretends. Then say in one sentence what came of it.";
  }

  override getTools() {
    const { deleteFiles } = assistantTools(guidePace(process.env));
    return { deleteFiles };
  }

  override formatAgentToolInput(input: unknown): string {
    return `Tidy up the folder: ${field(input, "folder")}`;
  }
}

/** All classes of helpers, for the host. */
export const helpers = { Researcher, Tidier };

const topic = z.object({ topic: z.string().min(1).max(MAX_TOPIC) });
const folder = z.object({ folder: z.string().min(1).max(MAX_TOPIC) });

/** The helpers as tools of the assistant. */
export function helperTools() {
  return {
    research: agentTool(Researcher, {
      description: "Has a researcher look into a topic, and waits for its report.",
      inputSchema: topic,
      displayName: "Researcher",
    }),
    researchLater: agentTool(Researcher, {
      description: "Has a researcher look into a topic in the background. You are told when it is done.",
      inputSchema: topic,
      displayName: "Researcher",
      detached: true,
    }),
    tidyUp: agentTool(Tidier, {
      description: "Has a helper tidy up a folder. It asks the user before it deletes anything.",
      inputSchema: folder,
      displayName: "Tidier",
    }),
  };
}

function field(input: unknown, name: string): string {
  const value: unknown = typeof input === "object" && input !== null ? Reflect.get(input, name) : undefined;
  return typeof value === "string" ? value : JSON.stringify(input);
}
