import { spawnSync } from "node:child_process";
import type { TerminalSize } from "@sandpiper/core";

/** Resets what a killed program leaves on: mouse reports, bracketed paste, the alternate screen, a hidden cursor, colours. */
const RESET = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1047l\x1b[?1l\x1b>\x1b[?25h\x1b[0m";

/** For a terminal that does not report its size. */
const DEFAULT_SIZE: TerminalSize = { rows: 24, cols: 80 };

export function terminalSize({ rows, columns }: NodeJS.WriteStream): TerminalSize {
  return rows > 0 && columns > 0 ? { rows, cols: columns } : DEFAULT_SIZE;
}

/** The user's terminal, which sends every key to the sandbox until this is disposed. */
export class Terminal implements Disposable {
  readonly #input: NodeJS.ReadStream;
  readonly #output: NodeJS.WriteStream;
  #needsReset = true;

  constructor(input: NodeJS.ReadStream, output: NodeJS.WriteStream) {
    this.#input = input;
    this.#output = output;
    input.setRawMode(true);
    // Node leaves output processing on, which would add a second carriage return to each line feed.
    spawnSync("stty", ["-opost"], { stdio: [input, "ignore", "ignore"] });
    // Also when the program ends without unwinding.
    process.on("exit", this.#restore);
  }

  /** The program ended by itself, so the terminal needs no reset. */
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

/** The variables that describe the user's terminal to programs inside. */
export function terminalEnv(rootfs: string | undefined, callerEnv: NodeJS.ProcessEnv): Record<string, string> {
  const env: Record<string, string> = {};
  // Another root filesystem may have no description of this terminal; the agent then picks one.
  if (rootfs === undefined && callerEnv["TERM"]) env["TERM"] = callerEnv["TERM"];
  if (callerEnv["COLORTERM"]) env["COLORTERM"] = callerEnv["COLORTERM"];
  return env;
}
