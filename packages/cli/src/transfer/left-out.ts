const SHOWN = 3;

/** The entries that a transfer skipped; an untrusted tree may have millions, with any bytes in their names. */
export class LeftOut {
  readonly #shown: string[] = [];
  #count = 0;

  add(path: string, kind: string): void {
    this.#count += 1;
    if (this.#shown.length < SHOWN) this.#shown.push(`${JSON.stringify(path)} (${kind})`);
  }

  /** Undefined when nothing was skipped. */
  get message(): string | undefined {
    if (this.#count === 0) return undefined;
    const more = this.#count > SHOWN ? ` and ${this.#count - SHOWN} more` : "";
    return `skipped, since only files and directories are copied: ${this.#shown.join(", ")}${more}`;
  }
}
