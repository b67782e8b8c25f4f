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
 * Keeps in place what the reader looks at when older messages come in above it. A class, because only a class is told
 * before React changes the page.
 */
export class KeepPlace extends Component<Props> {
  override getSnapshotBeforeUpdate({ first }: Props): Place | null {
    if (first === undefined || first === this.props.first) return null;
    const element = this.props.box.current?.querySelector(`[data-id="${CSS.escape(first)}"]`) ?? null;
    return element && { element, top: element.getBoundingClientRect().top };
  }

  override componentDidUpdate(_before: Props, _state: unknown, place: Place | null): void {
    const box = this.props.box.current;
    if (place === null || box === null || !place.element.isConnected) return;
    // Most browsers hold the place too, but not at the very top. Once is enough; they go on from here.
    box.style.overflowAnchor = "none";
    box.scrollTop += place.element.getBoundingClientRect().top - place.top;
    box.style.overflowAnchor = "";
  }

  override render(): null {
    return null;
  }
}
