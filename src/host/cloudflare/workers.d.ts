// As much of the platform's own module as this host needs.
declare module "cloudflare:workers" {
  /** What the platform builds objects from: it says what may be called from elsewhere. */
  export class DurableObject {
    constructor(ctx: unknown, env: unknown);
  }
  /** The bindings of the Worker. */
  export const env: Record<string, unknown>;
}
