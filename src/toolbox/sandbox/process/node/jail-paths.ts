/** Where the jail sees its files. */
export const JAIL_WORKSPACE = "/workspace";
/** Where the jail sees what it is to run. */
export const JAIL_CODE = "/sandbox";
/** Where the jail sees the egress. */
export const JAIL_EGRESS = "/sandbox-egress";
/** Where the jail sees a Node that is not in `/usr`. */
export const JAIL_NODE = "/opt/bin/node";
