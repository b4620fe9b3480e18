import { spawnSync } from "node:child_process";
import type { TerminalSize } from "@sandpiper/core";

/** What programs switch on and a killed one leaves on: mouse reports, marks around pasted text, the other screen, no cursor, colours. */
const RESET = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1047l\x1b[?1l\x1b>\x1b[?25h\x1b[0m";

/** The size of a terminal that does not tell its own. */
const DEFAULT_SIZE: TerminalSize = { rows: 24, cols: 80 };

export function terminalSize({ rows, columns }: NodeJS.WriteStream): TerminalSize {
  return rows > 0 && columns > 0 ? { rows, cols: columns } : DEFAULT_SIZE;
}

/** The user's terminal, every key of which goes to the sandbox until this is disposed. */
export class Terminal implements Disposable {
  readonly #input: NodeJS.ReadStream;
  readonly #output: NodeJS.WriteStream;
  #needsReset = true;

  constructor(input: NodeJS.ReadStream, output: NodeJS.WriteStream) {
    this.#input = input;
    this.#output = output;
    input.setRawMode(true);
    // Node leaves on that the terminal adds a carriage return to each line feed, which programs inside already did.
    spawnSync("stty", ["-opost"], { stdio: [input, "ignore", "ignore"] });
    // Also when the program ends without unwinding.
    process.on("exit", this.#restore);
  }

  /** The program on the terminal ended by itself and left it tidy. */
  endedTidily(): void {
    this.#needsReset = false;
  }

  [Symbol.dispose](): void {
    process.off("exit", this.#restore);
    this.#restore();
  }

  readonly #restore = (): void => {
    this.#input.setRawMode(false);
    if (this.#needsReset && this.#output.isTTY) this.#output.write(RESET);
  };
}
