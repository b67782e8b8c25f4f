// Here, because it starts processes: bundles for other platforms leave it out.
export { getDefaultEnvironment, StdioClientTransport } from "@modelcontextprotocol/client/stdio";
