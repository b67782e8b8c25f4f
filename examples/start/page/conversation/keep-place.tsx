import { Component, type RefObject } from "react";

interface Props {
  /** What scrolls. */
  readonly box: RefObject<HTMLElement | null>;
  /** Id of the first message. */
  readonly first: string | undefined;
}

interface Place {
  readonly element: Element;
  readonly top: number;
}

/**
 * Keeps in place what the reader looks at when older messages come in above it, where the browser does not: at the very
 * top, and in browsers that never do. Elsewhere it is left to the browser, which does not disturb a movement under way.
 * A class, because only a class is told before React changes the page.
 */
export class KeepPlace extends Component<Props> {
  override getSnapshotBeforeUpdate({ first }: Props): Place | null {
    const box = this.props.box.current;
    if (first === undefined || first === this.props.first || box === null) return null;
    if (box.scrollTop > 0 && CSS.supports("overflow-anchor: auto")) return null;
    const element = box.querySelector("[data-id]");
    return element && { element, top: element.getBoundingClientRect().top };
  }

  override componentDidUpdate(_before: Props, _state: unknown, place: Place | null): void {
    const box = this.props.box.current;
    if (place === null || box === null || !place.element.isConnected) return;
    box.style.overflowAnchor = "none";
    box.scrollTop += place.element.getBoundingClientRect().top - place.top;
    box.style.overflowAnchor = "";
  }

  override render(): null {
    return null;
  }
}
