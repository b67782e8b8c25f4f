import { isRecord } from "../base/json.ts";
import { type ActionContext, isTextList } from "./action.ts";
import { oddAnswer } from "./odd-answer.ts";

/** Who may do what: all, nothing, or what is named. Without `grantedPermissions`, `allowed` grants everything. */
export type ActionAuthorization =
  | boolean
  | {
      readonly allowed: boolean;
      /** Told to the model when it is denied. */
      readonly reason?: string;
      readonly grantedPermissions?: readonly string[];
    };

/** What `authorizeAction` is told. */
export interface ActionAuthorizationContext extends ActionContext {
  readonly action: string;
  readonly input: unknown;
  readonly requiredPermissions: readonly string[];
  /** Undefined: everything is granted. */
  readonly grantedPermissions: readonly string[] | undefined;
}

/** Checks what a rule has answered. @throws PerdureError `bad_config` for what says neither yes nor no */
export function readAuthorization(rule: string, said: unknown): ActionAuthorization {
  if (typeof said === "boolean") return said;
  if (!isRecord(said) || typeof said.allowed !== "boolean")
    throw oddAnswer(rule, said, "true, false or { allowed: true or false }");
  if (said.grantedPermissions !== undefined && !isTextList(said.grantedPermissions))
    throw oddAnswer(`\`grantedPermissions\` of ${rule}`, said.grantedPermissions, "a list of texts");
  return said as ActionAuthorization;
}

/** Whether an action may run. */
type ActionVerdict = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

/** Compares what an action needs with what the turn was granted. Pure. */
export function judge(required: readonly string[], grants: ActionAuthorization): ActionVerdict {
  const { allowed, reason, grantedPermissions } = typeof grants === "boolean" ? { allowed: grants } : given(grants);
  if (!allowed) return { allowed: false, reason: reason ?? "This turn may not run actions." };
  const missing = grantedPermissions && required.filter((permission) => !grantedPermissions.includes(permission));
  if (missing === undefined || missing.length === 0) return { allowed: true };
  return { allowed: false, reason: reason ?? `This turn was not granted ${missing.map(quoted).join(", ")}.` };
}

/** The permissions that are granted; undefined: all. */
export function grantedBy(grants: ActionAuthorization): readonly string[] | undefined {
  if (grants === true) return undefined;
  if (grants === false) return [];
  return grants.allowed ? grants.grantedPermissions : [];
}

function given(grants: Exclude<ActionAuthorization, boolean>) {
  return { allowed: grants.allowed, reason: grants.reason, grantedPermissions: grants.grantedPermissions };
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
