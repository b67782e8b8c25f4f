import "./button.css";
import type { ComponentProps, ReactNode } from "react";
import { Icon, type IconName } from "./icon.tsx";

interface Props extends ComponentProps<"button"> {
  readonly icon: IconName;
  /** What it does: the tooltip, and the name for screen readers. */
  readonly label: string;
  readonly [data: `data-${string}`]: string | undefined;
}

/** A button that is only an icon. */
export function IconButton({ icon, label, className = "", ...rest }: Props): ReactNode {
  return (
    <button type="button" className={`icon-button ${className}`} aria-label={label} title={label} {...rest}>
      <Icon name={icon} />
    </button>
  );
}
