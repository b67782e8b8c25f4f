// Agent tools, the workspace, skills, code, extensions and MCP servers.
import { agentTool, skills, Think } from "perdure";
import { createExtensionTools, ExtensionManager } from "perdure/extensions";
import { scriptedModel } from "perdure/testing";
import { bucketFiles, createExecuteTool, createWorkspaceTools } from "perdure/tools";
import { expect, test } from "vitest";
import { z } from "zod";
import { ask, type Env, open, textOf } from "./open.ts";

test("a tool that is another agent", async () => {
  class Researcher extends Think<Env & { RESEARCH: Env["AI"] }> {
    override getModel() {
      return this.env.RESEARCH;
    }
    override getSystemPrompt() {
      return "Look into the topic and end with a summary.";
    }
  }
  class Assistant extends Think<Env> {
    override getModel() {
      return this.env.AI;
    }
    override getTools() {
      return {
        research: agentTool(Researcher, {
          description: "Look into one topic.",
          inputSchema: z.object({ query: z.string().min(3) }),
          displayName: "Researcher",
        }),
      };
    }
  }
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "research", input: { query: "boats" } }] } : "Boats float.",
  );
  const agent = open({ Main: Assistant, Researcher }, { AI: model, RESEARCH: scriptedModel(["They float."]) });
  await agent.saveMessages([ask("Boats?")]);
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("They float.");
  await agent.clearAgentToolRuns();
});

test("every agent has files, and tools for them", async () => {
  class Writer extends Think<Env> {
    override getModel() {
      return this.env.AI;
    }
    notes(): Promise<string | null> {
      return this.workspace.readFile("notes.md");
    }
  }
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "write", input: { path: "notes.md", content: "Hi." } }] } : "Written.",
  );
  const agent = open({ Main: Writer }, { AI: model });
  await agent.saveMessages([ask("Write.")]);
  expect(await agent.notes()).toBe("Hi.");
});

test("large files go to a bucket", async () => {
  const stored = new Map<string, Uint8Array>();
  const bucket = {
    put: async (key: string, bytes: Uint8Array) => void stored.set(key, bytes),
    get: async (key: string) => stored.get(key) ?? null,
    delete: async (key: string) => void stored.delete(key),
  };
  class Archivist extends Think<Env & { R2: typeof bucket }> {
    // The agent makes it: rows and name are its own, and the bucket is `largeFiles`.
    override workspace = this.createWorkspace({ largeFiles: bucketFiles(this.env.R2), inlineLimit: 10 });
    async keep(): Promise<string | null> {
      await this.workspace.writeFile("long.txt", "x".repeat(20_000));
      return this.workspace.readFile("long.txt");
    }
  }
  expect(await open({ Main: Archivist }, { R2: bucket }).keep()).toHaveLength(20_000);
  expect(stored.size).toBe(1);
});

test("a child works on the files of its parent", async () => {
  class Child extends Think<Env> {
    // The bridge of the sample, which passed each call on, comes along.
    override workspace = this.parentWorkspace(Main);
    async read(): Promise<string | null> {
      return this.workspace.readFile("plan.md");
    }
  }
  class Main extends Think<Env> {
    override shareWorkspace = "read-write" as const;
    async shared(): Promise<string | null> {
      await this.workspace.writeFile("plan.md", "Row.");
      return (await this.subAgent(Child, "one")).read();
    }
  }
  expect(await open({ Main, Child }, {}).shared()).toBe("Row.");
});

const RELEASE_NOTES = `---
name: release-notes
description: Writes release notes. Use it for changelogs.
---
Run scripts/format.js.
`;

test("skills from code and from a bucket, and what runs their scripts", async () => {
  // In TypeScript: `run(input: unknown, ctx: SkillRunContext)`.
  const script = `export default async function run(input, ctx) {
    const guide = ctx.files["references/style-guide.md"];
    await ctx.output.writeFile("notes.md", guide + " " + input.change);
    return { ok: true };
  }`;
  const objects = new Map([
    ["skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets people. Use it for greetings.\n---\nSay hello.\n"],
  ]);
  const bucket = {
    list: async ({ prefix }: { prefix: string }) => ({
      objects: [...objects]
        .filter(([key]) => key.startsWith(prefix))
        .map(([key, text]) => ({ key, size: text.length, etag: key })),
    }),
    get: async (key: string) => new TextEncoder().encode(objects.get(key)),
  };
  class Skilled extends Think<Env & { SKILLS_BUCKET: typeof bucket }> {
    override getModel() {
      return this.env.AI;
    }
    override getSkills() {
      return [
        skills.fromManifest({
          skills: [
            {
              name: "release-notes",
              files: [
                { path: "SKILL.md", encoding: "text", content: RELEASE_NOTES },
                { path: "references/style-guide.md", encoding: "text", content: "Short lines." },
                { path: "scripts/format.js", encoding: "text", content: script },
              ],
            },
          ],
        }),
        // `skills.r2` there.
        skills.fromBucket(this.env.SKILLS_BUCKET, { prefix: "skills/" }),
      ];
    }
    override getSkillScriptRunner() {
      // No loader: the sandboxes come along.
      return skills.runner({ workspaceInstance: this.workspace });
    }
  }
  const calls = [
    { toolName: "activate_skill", input: { name: "greet" } },
    {
      toolName: "run_skill_script",
      input: { name: "release-notes", path: "scripts/format.js", input: { change: "Oars" } },
    },
  ];
  const model = scriptedModel(({ step }) => (step === 0 ? { toolCalls: calls } : "Hello!"));
  const agent = open({ Main: Skilled }, { AI: model, SKILLS_BUCKET: bucket });
  await agent.saveMessages([ask("Greet me.")]);
  expect(JSON.stringify(model.calls[0]?.prompt)).toContain("Writes release notes.");
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("Say hello.");
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("Short lines. Oars");
});

test("code that the model writes, with tools as functions", async () => {
  class Coder extends Think<Env> {
    override getModel() {
      return this.env.AI;
    }
    override getTools() {
      const wsTools = createWorkspaceTools(this.workspace, { bash: false });
      // Without `loader`: the sandbox comes along.
      return { execute: createExecuteTool({ tools: wsTools }) };
    }
  }
  const code =
    'await tools.write({ path: "a.txt", content: "1" }); return (await tools.list({ path: "/" })) && 41 + 1;';
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "execute", input: { code } }] } : "42.",
  );
  const agent = open({ Main: Coder }, { AI: model });
  await agent.saveMessages([ask("Count.")]);
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("42");
  expect(textOf((await agent.getHistory()).at(-1))).toBe("42.");
});

test("extensions that the model loads, with a manager of one's own", async () => {
  const extensions = new ExtensionManager({ loader: true });
  await extensions.load(
    { name: "dice", version: "1.0.0" },
    "({ tools: { roll: { description: 'Rolls.', parameters: {}, execute: async () => 4 } } })",
  );
  class Player extends Think<Env> {
    override getModel() {
      return this.env.AI;
    }
    override getTools() {
      return { ...createExtensionTools({ manager: extensions }), ...extensions.getTools() };
    }
  }
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "dice_roll", input: {} }] } : "Four.",
  );
  const agent = open({ Main: Player }, { AI: model });
  await agent.saveMessages([ask("Roll.")]);
  expect(model.calls[0]?.options.tools?.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["load_extension", "list_extensions", "dice_roll"]),
  );
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("4");
  await extensions.dispose();
});

test("a turn waits for MCP servers", async () => {
  class Connected extends Think<Env> {
    override waitForMcpConnections = { timeout: 10_000 };
    override getModel() {
      return this.env.AI;
    }
  }
  const agent = open({ Main: Connected }, { AI: scriptedModel(["Ready."]) });
  expect(await agent.saveMessages([ask("Ready?")])).toMatchObject({ status: "completed" });
});
