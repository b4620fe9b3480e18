import { exitCodeOfSignal } from "./exit-code.ts";

const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** One Ctrl-C can arrive twice: from the terminal, and from npm, which forwards its own. */
const SAME_KEYPRESS_MS = 250;

interface Program {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  off(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  exit(code: number): void;
}

/**
 * Turns each signal that would end the program into one abort, so that it can clean up first. A second signal ends the
 * program at once; the next start removes the leftovers.
 */
export class Interruption implements Disposable {
  readonly #controller = new AbortController();
  readonly #program: Program;
  readonly #monotonicMs: () => number;
  #exitCode: number | undefined;
  #atMs = 0;

  constructor(program: Program = process, monotonicMs = () => performance.now()) {
    this.#program = program;
    this.#monotonicMs = monotonicMs;
    for (const signal of signals) program.on(signal, this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The program's exit code once it was interrupted. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  interrupt(exitCode: number): void {
    if (this.#exitCode !== undefined) return;
    this.#exitCode = exitCode;
    this.#atMs = this.#monotonicMs();
    this.#controller.abort();
  }

  /** Runs work whose failure means nothing once it is interrupted, and returns the exit code. */
  async exitCodeOf(work: () => Promise<void>): Promise<number> {
    try {
      await work();
    } catch (error) {
      if (this.#exitCode === undefined) throw error;
    }
    return this.#exitCode ?? 0;
  }

  [Symbol.dispose](): void {
    for (const signal of signals) this.#program.off(signal, this.#onSignal);
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    const isRepeated = this.#exitCode !== undefined && this.#monotonicMs() - this.#atMs >= SAME_KEYPRESS_MS;
    if (isRepeated) this.#program.exit(exitCodeOfSignal(signal));
    this.interrupt(exitCodeOfSignal(signal));
  };
}
