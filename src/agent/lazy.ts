/** Something that may not have been made yet. */
export interface OnDemand<T> {
  /** Made when it is first asked for. */
  readonly value: T;
  /** What was made already, if anything. */
  readonly made: T | undefined;
}

/** Makes something when it is first asked for. Most agents that are connected use little of what they could. */
export class Lazy<T extends object> implements OnDemand<T> {
  readonly #make: () => T;
  #made: T | undefined;

  constructor(make: () => T) {
    this.#make = make;
  }

  get value(): T {
    return (this.#made ??= this.#make());
  }

  get made(): T | undefined {
    return this.#made;
  }
}
