// An MCP server on standard input and output.
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

if (process.argv[2] === "broken") {
  console.error("no licence file");
  process.exit(3);
}

serveStdio(() => {
  const server = new McpServer({ name: "program", version: "1.0.0" });
  server.registerTool("env", { inputSchema: z.object({ name: z.string() }) }, ({ name }) => ({
    content: [{ type: "text", text: process.env[name] ?? "(none)" }],
  }));
  server.registerTool("pid", { annotations: { readOnlyHint: true } }, () => ({
    content: [{ type: "text", text: String(process.pid) }],
  }));
  server.registerTool("die", {}, () => process.exit(1));
  return server;
});
