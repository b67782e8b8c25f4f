import type { ReactNode } from "react";

const paths = {
  plus: "M12 5v14M5 12h14",
  menu: "M4 8h16M4 16h11",
  stop: "M7 7h10v10H7z",
  close: "M6 6l12 12M18 6 6 18",
  pencil: "M4 20h4L19 9l-4-4L4 16v4zM13 7l4 4",
  trash: "M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12M10.5 11v5M13.5 11v5",
  copy: "M9 9h10v10H9zM15 9V5H5v10h4",
  check: "M5 12.5l4.5 4.5L19 7.5",
  again: "M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4",
  up: "M12 19V5M6 11l6-6 6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  clip: "M19 11.5l-7.2 7.2a4.6 4.6 0 0 1-6.5-6.5l7.7-7.7a3.1 3.1 0 0 1 4.4 4.4l-7.7 7.7a1.5 1.5 0 0 1-2.2-2.2l7-7",
  file: "M7 4h7l4 4v12H7zM14 4v4h4",
  sun: "M12 8.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M5.6 18.4 7 17M17 7l1.4-1.4",
  moon: "M19 14.5A7.5 7.5 0 0 1 9.5 5a7.5 7.5 0 1 0 9.5 9.5z",
  screen: "M4 5h16v11H4zM9 20h6M12 16v4",
  back: "M19 12H5M11 6l-6 6 6 6",
  branch: "M6 4v7a5 5 0 0 0 5 5h8M15 12l4 4-4 4",
  chevron: "M9 6l6 6-6 6",
  previous: "M14.5 6l-6 6 6 6",
  next: "M9.5 6l6 6-6 6",
  search: "M10.5 4.5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15 15l5 5",
  pin: "M9 4h6l-.8 6 3.3 3.5h-11L9.8 10zM12 13.5V20",
  compact: "M4 12h16M12 3.5v5M9.5 6.5 12 9l2.5-2.5M12 20.5v-5M9.5 17.5 12 15l2.5 2.5",
  erase: "M4 16l9-9 6 6-6 6H7zM9.5 10.5l6 6M12 20h8",
  arrow: "M5 12h14M13 6l6 6-6 6",
  alert: "M12 8v5M12 16.5v.1M12 3.5l9 16.5H3z",
  away: "M4 10a12 12 0 0 1 5-2.8M20 10a12 12 0 0 0-6.5-3.3M7.5 13.5a7 7 0 0 1 3-1.7M12 18v.1M4 4l16 16",
} as const;

export type IconName = keyof typeof paths;

/** A line drawing for a button. Says nothing to screen readers: what it stands beside or in has to. */
export function Icon({ name }: { readonly name: IconName }): ReactNode {
  return (
    <svg
      className="icon"
      viewBox="0 0 24 24"
      width="20"
      height="20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.7"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  );
}
