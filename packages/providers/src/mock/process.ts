import type { Clock } from "@sandpiper/core";
import type { ExitStatus, ProcessInfo } from "@sandpiper/protocol";
import type { FileTree } from "./file-tree.ts";
import { Journal } from "./journal.ts";
import { Notifier } from "./notifier.ts";
import type { Program } from "./program.ts";

export interface MockProcessOptions {
  readonly id: string;
  readonly pid: number;
  readonly argv: readonly string[];
  readonly program: Program;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly files: FileTree;
  readonly clock: Clock;
  readonly hasStdin: boolean;
  readonly hasPty: boolean;
  readonly journalBytes: number;
  readonly timeoutMs: number | undefined;
}

/** A program that runs in memory, with a journal of its output. */
export class MockProcess {
  readonly id: string;
  readonly pid: number;
  readonly journal: Journal;
  readonly exited = new Notifier();
  status: ExitStatus | undefined;
  durationMs = 0;
  readonly #options: MockProcessOptions;
  readonly #startedMs: number;
  readonly #startedAt: Date;
  readonly #killed = new AbortController();
  readonly #input: Uint8Array[] = [];
  readonly #inputChanged = new Notifier();
  #isInputOpen: boolean;
  #stdinOffset = 0;
  #stopTimer: () => void = () => {};

  constructor(options: MockProcessOptions) {
    this.id = options.id;
    this.pid = options.pid;
    this.journal = new Journal(options.journalBytes);
    this.#options = options;
    this.#startedMs = options.clock.monotonicMs();
    this.#startedAt = options.clock.now();
    this.#isInputOpen = options.hasStdin || options.hasPty;
  }

  run(): void {
    const { timeoutMs, clock } = this.#options;
    if (timeoutMs !== undefined) this.#stopTimer = clock.schedule(timeoutMs, () => this.kill("SIGKILL", true));
    this.#run().then(
      (exitCode) => this.#end({ exit_code: exitCode & 255, signal: null, timed_out: false, out_of_memory: false }),
      () => this.#end({ exit_code: 1, signal: null, timed_out: false, out_of_memory: false }),
    );
  }

  kill(signal: string, isTimeout = false): void {
    this.#end({ exit_code: null, signal, timed_out: isTimeout, out_of_memory: false });
  }

  /** Bytes of input taken so far. */
  get stdinOffset(): number {
    return this.#stdinOffset;
  }

  /** Answers with the offset after the bytes, or undefined when nobody takes input any more. */
  feed(bytes: Uint8Array, close: boolean): number | undefined {
    const isOpen = this.#isInputOpen && this.status === undefined;
    if (!isOpen && bytes.length > 0) return undefined;
    if (bytes.length > 0) this.#input.push(bytes);
    this.#stdinOffset += bytes.length;
    if (close) this.#isInputOpen = false;
    this.#inputChanged.notify();
    return this.#stdinOffset;
  }

  info(): ProcessInfo {
    return {
      process: this.id,
      pid: this.pid,
      argv: [...this.#options.argv],
      cwd: this.#options.cwd,
      user: "user",
      pty: this.#options.hasPty,
      started_at_ms: this.#startedAt.getTime(),
      start_offset: this.journal.start,
      end_offset: this.journal.end,
      stdin_offset: this.#stdinOffset,
      status: this.status ?? null,
    };
  }

  #run(): Promise<number> {
    const { program, argv, env, cwd, files, clock, hasPty } = this.#options;
    return program({
      args: argv.slice(1),
      env,
      cwd,
      files,
      clock,
      isTerminal: hasPty,
      pid: this.pid,
      killed: this.#killed.signal,
      read: () => this.#read(),
      write: async (source, bytes) => {
        if (!this.#killed.signal.aborted) await this.journal.append(hasPty ? "pty" : source, bytes);
      },
      die: (signal) => {
        this.kill(signal);
        return new Promise<never>(() => {});
      },
    });
  }

  async #read(): Promise<Uint8Array | undefined> {
    while (this.#input.length === 0 && this.#isInputOpen) await this.#inputChanged.wait();
    return this.#input.shift();
  }

  #end(status: ExitStatus): void {
    if (this.status !== undefined) return;
    this.status = status;
    this.durationMs = this.#options.clock.monotonicMs() - this.#startedMs;
    this.#stopTimer();
    this.#killed.abort();
    this.exited.notify();
    this.journal.changed.notify();
  }
}
