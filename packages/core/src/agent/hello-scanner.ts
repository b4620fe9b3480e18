const OPENING_BRACE = 0x7b;

/** Finds the answer to one hello among bytes that were meant for an earlier caller. */
export class HelloScanner {
  readonly #prefix: Uint8Array;
  #matched = 0;

  constructor(helloId: string) {
    this.#prefix = new TextEncoder().encode(`{"jsonrpc":"2.0","id":${JSON.stringify(helloId)}`);
  }

  /** The first bytes of the answer; undefined while it has not been found. */
  push(chunk: Uint8Array): readonly [prefix: Uint8Array, rest: Uint8Array] | undefined {
    let at = 0;
    while (at < chunk.length) {
      if (this.#matched === 0) {
        at = chunk.indexOf(OPENING_BRACE, at);
        if (at === -1) return undefined;
      }
      if (chunk[at] === this.#prefix[this.#matched]) {
        at++;
        this.#matched++;
        if (this.#matched === this.#prefix.length) return [this.#prefix, chunk.subarray(at)];
      } else {
        // The prefix holds its first byte only once, so a failed match can start again only here.
        this.#matched = 0;
        if (chunk[at] !== OPENING_BRACE) at++;
      }
    }
    return undefined;
  }
}
