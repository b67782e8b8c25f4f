// Agents as Durable Objects.
export { type CloudflareHost, type CloudflareOptions, createCloudflareHost, type Target } from "./create-host.ts";
