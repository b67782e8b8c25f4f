import type { ExtensionManifest, ExtensionPermissions } from "./manifest.ts";

const EVERY = "(all)";
const OWN = "(own)";

/**
 * What a manifest asks for, one line each. Who agreed to these lines agreed to every manifest that asks for nothing else. Hooks
 * count, since they see what others' tools get and `beforeTurn` has a say in the prompt; so do own context blocks, which stand in
 * every prompt.
 */
export function wishesOf({
  permissions = {},
  hooks = [],
  context: blocks = [],
}: Pick<ExtensionManifest, "permissions" | "hooks" | "context">): string[] {
  const { network = [], workspace, context = {}, messages, session = {} } = permissions;
  // No label looks like these: a block that is called "all" is not all of them.
  const readable = context.read === "all" ? [EVERY] : (context.read ?? []);
  const writable = context.write === "own" ? [OWN] : (context.write ?? []);
  return [
    ...network.map((host) => `network ${host}`),
    ...(workspace === "read" || workspace === "read-write" ? ["workspace read"] : []),
    ...(workspace === "read-write" ? ["workspace write"] : []),
    ...readable.map((label) => `context read ${label}`),
    ...writable.map((label) => `context write ${label}`),
    ...(messages === "read" ? ["messages read"] : []),
    ...(session.sendMessage === true ? ["session send messages"] : []),
    ...(session.metadata === true ? ["session metadata"] : []),
    ...hooks.map((hook) => `hook ${hook}`),
    ...blocks.map(({ label }) => `context block ${label}`),
  ];
}

/** What is asked for and was not agreed to. */
export function newWishes(wishes: readonly string[], agreed: readonly string[]): string[] {
  const readsAll = agreed.includes(`context read ${EVERY}`);
  return wishes.filter((wish) => !agreed.includes(wish) && !(readsAll && wish.startsWith("context read ")));
}

/** Whether a block may be read. `label` is its whole label. */
export function mayRead(permissions: ExtensionPermissions, own: readonly string[], label: string): boolean {
  const { read, write } = permissions.context ?? {};
  if (read === "all" || read?.includes(label) === true) return true;
  // Who may write its own block may see what it wrote.
  return write === "own" && own.includes(label);
}

/** Whether a block may be written. */
export function mayWrite(permissions: ExtensionPermissions, own: readonly string[], label: string): boolean {
  const write = permissions.context?.write;
  return write === "own" ? own.includes(label) : write?.includes(label) === true;
}
