export const kinds = ["security", "added", "changed", "fixed", "removed"] as const;

export type Kind = (typeof kinds)[number];

export const titles: Record<Kind, string> = {
  security: "Security",
  added: "Added",
  changed: "Changed",
  fixed: "Fixed",
  removed: "Removed",
};
