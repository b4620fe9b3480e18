const SHOWN = 3;

/** What a transfer could not copy; a tree from a stranger may hold millions of such names, and any bytes in them. */
export class LeftOut {
  readonly #shown: string[] = [];
  #count = 0;

  add(path: string, kind: string): void {
    this.#count += 1;
    if (this.#shown.length < SHOWN) this.#shown.push(`${JSON.stringify(path)} (${kind})`);
  }

  /** Undefined when everything was copied. */
  get message(): string | undefined {
    if (this.#count === 0) return undefined;
    const more = this.#count > SHOWN ? ` and ${this.#count - SHOWN} more` : "";
    return `left out, since only files and directories are copied: ${this.#shown.join(", ")}${more}`;
  }
}
