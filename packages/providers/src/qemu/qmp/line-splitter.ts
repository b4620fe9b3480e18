/** Gives the lines of a byte stream, whole, however it comes in pieces. */
export class LineSplitter {
  readonly #receive: (line: string) => void;
  readonly #decoder = new TextDecoder();
  #rest = "";

  constructor(receive: (line: string) => void) {
    this.#receive = receive;
  }

  push(chunk: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") this.#receive(line);
  }
}
