// The server that the official conformance suite expects, behind our handler.
import { completable, McpServer, ResourceTemplate, type ServerContext } from "@modelcontextprotocol/server";
import { fromJsonSchema } from "@modelcontextprotocol/server";
import { z } from "zod";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
const text = (value: string) => ({ type: "text" as const, text: value });
const image = { type: "image" as const, data: PNG, mimeType: "image/png" };

export function everything(): McpServer {
  const server = new McpServer(
    { name: "everything", version: "1.0.0" },
    { capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } } },
  );
  addContentTools(server);
  addTalkingTools(server);
  addElicitations(server);
  addResources(server);
  addPrompts(server);
  return server;
}

function addContentTools(server: McpServer): void {
  const answers = {
    test_simple_text: [text("This is a simple text response for testing.")],
    test_image_content: [image],
    test_audio_content: [{ type: "audio" as const, data: WAV, mimeType: "audio/wav" }],
    test_embedded_resource: [
      {
        type: "resource" as const,
        resource: {
          uri: "test://embedded-resource",
          mimeType: "text/plain",
          text: "This is an embedded resource content.",
        },
      },
    ],
    test_multiple_content_types: [
      text("Multiple content types test:"),
      image,
      {
        type: "resource" as const,
        resource: {
          uri: "test://mixed-content-resource",
          mimeType: "application/json",
          text: '{"test":"data","value":123}',
        },
      },
    ],
  };
  for (const [name, content] of Object.entries(answers)) {
    server.registerTool(name, { description: `Answers for ${name}.` }, () => ({ content }));
  }
  server.registerTool("test_error_handling", { description: "Fails." }, () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object" as const,
    $defs: {
      address: { type: "object" as const, properties: { street: { type: "string" }, city: { type: "string" } } },
    },
    properties: { name: { type: "string" as const }, address: { $ref: "#/$defs/address" } },
    additionalProperties: false,
  };
  const inputSchema = fromJsonSchema<{ name?: string }>(schema as never);
  server.registerTool("json_schema_2020_12_tool", { description: "Newer schemas.", inputSchema }, () => ({
    content: [text("ok")],
  }));
}

function addTalkingTools(server: McpServer): void {
  server.registerTool("test_tool_with_logging", { description: "Logs." }, async ({ mcpReq }: ServerContext) => {
    for (const line of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await mcpReq.log("info", line);
      await pause();
    }
    return { content: [text("Logged.")] };
  });
  server.registerTool("test_tool_with_progress", { description: "Reports." }, async ({ mcpReq }: ServerContext) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined) {
        await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      }
      await pause();
    }
    return { content: [text("Done.")] };
  });
  server.registerTool(
    "test_sampling",
    { description: "Asks a model.", inputSchema: z.object({ prompt: z.string() }) },
    async ({ prompt }, { mcpReq }) => {
      const messages = [{ role: "user" as const, content: text(prompt) }];
      const { content } = await mcpReq.requestSampling({ messages, maxTokens: 100 });
      const said = !Array.isArray(content) && content.type === "text" ? content.text : "";
      return { content: [text(`LLM response: ${said}`)] };
    },
  );
  server.registerTool("test_reconnection", { description: "Cuts the stream." }, async ({ http }: ServerContext) => {
    await pause();
    http?.closeSSE?.();
    await pause();
    return { content: [text("Reconnection test completed successfully")] };
  });
}

function addElicitations(server: McpServer): void {
  const ask = async ({ mcpReq }: ServerContext, message: string, properties: object, required: string[] = []) => {
    const requestedSchema = { type: "object" as const, properties: properties as never, required };
    return mcpReq.elicitInput({ mode: "form", message, requestedSchema });
  };
  server.registerTool(
    "test_elicitation",
    { description: "Asks a person.", inputSchema: z.object({ message: z.string() }) },
    async ({ message }, context) => {
      const field = (description: string) => ({ type: "string", description });
      const fields = { username: field("User's response"), email: field("User's email address") };
      const { action, content } = await ask(context, message, fields, ["username", "email"]);
      return { content: [text(`User response: <action: ${action}, content: ${JSON.stringify(content)}>`)] };
    },
  );
  const titled = ["First", "Second", "Third"].map((title, n) => ({ const: `value${n + 1}`, title: `${title} Option` }));
  const options = ["option1", "option2", "option3"];
  const forms = {
    test_elicitation_sep1034_defaults: {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    },
    test_elicitation_sep1330_enums: {
      untitledSingle: { type: "string", enum: options },
      titledSingle: { type: "string", oneOf: titled },
      legacyEnum: {
        type: "string",
        enum: ["opt1", "opt2", "opt3"],
        enumNames: ["Option One", "Option Two", "Option Three"],
      },
      untitledMulti: { type: "array", items: { type: "string", enum: options } },
      titledMulti: { type: "array", items: { anyOf: titled } },
    },
  };
  for (const [name, fields] of Object.entries(forms)) {
    server.registerTool(name, { description: "Asks with a form." }, async (context: ServerContext) => {
      const { action, content } = await ask(context, "Please fill in.", fields);
      return {
        content: [text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`)],
      };
    });
  }
}

function addResources(server: McpServer): void {
  const plain = { description: "Words.", mimeType: "text/plain" };
  server.registerResource("static-text", "test://static-text", plain, ({ href }) => ({
    contents: [{ uri: href, mimeType: "text/plain", text: "This is the content of the static text resource." }],
  }));
  server.registerResource("watched", "test://watched-resource", plain, ({ href }) => ({
    contents: [{ uri: href, mimeType: "text/plain", text: "Watched." }],
  }));
  const picture = { description: "A picture.", mimeType: "image/png" };
  server.registerResource("static-binary", "test://static-binary", picture, ({ href }) => ({
    contents: [{ uri: href, mimeType: "image/png", blob: PNG }],
  }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  const json = { description: "By id.", mimeType: "application/json" };
  server.registerResource("template", template, json, ({ href }, { id }) => {
    const value = { id, templateTest: true, data: `Data for ID: ${String(id)}` };
    return { contents: [{ uri: href, mimeType: "application/json", text: JSON.stringify(value) }] };
  });
  server.server.setRequestHandler("resources/subscribe", () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", () => ({}));
}

function addPrompts(server: McpServer): void {
  const user = "user" as const;
  server.registerPrompt("test_simple_prompt", { description: "Simple." }, () => ({
    messages: [{ role: user, content: text("This is a simple prompt for testing.") }],
  }));
  const argsSchema = z.object({
    arg1: completable(z.string(), (value) => ["paris", "park", "party"].filter((word) => word.startsWith(value))),
    arg2: z.string(),
  });
  server.registerPrompt("test_prompt_with_arguments", { description: "With words.", argsSchema }, ({ arg1, arg2 }) => ({
    messages: [{ role: user, content: text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`) }],
  }));
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description: "With a resource.", argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri }) => {
      const resource = { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." };
      return {
        messages: [
          { role: user, content: { type: "resource" as const, resource } },
          { role: user, content: text("Please process the embedded resource above.") },
        ],
      };
    },
  );
  server.registerPrompt("test_prompt_with_image", { description: "With a picture." }, () => ({
    messages: [
      { role: user, content: image },
      { role: user, content: text("Please analyze the image above.") },
    ],
  }));
}
