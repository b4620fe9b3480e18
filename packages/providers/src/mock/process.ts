import type { Clock } from "@sandpiper/core";
import type { ExitStatus, ProcessInfo } from "@sandpiper/protocol";
import type { FileTree } from "./file-tree.ts";
import { Journal, type SavedJournal } from "./journal.ts";
import { Notifier } from "./notifier.ts";
import { newProgress, type Program, type Progress, programs } from "./program.ts";
import { shell } from "./shell.ts";

export interface ProcessSpec {
  readonly id: string;
  readonly pid: number;
  readonly argv: readonly string[];
  /** For the shell; without one `argv` names a program. */
  readonly script: { readonly text: string; readonly name: string } | undefined;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly hasStdin: boolean;
  readonly hasPty: boolean;
  readonly journalBytes: number;
  readonly timeoutMs: number | undefined;
}

/** The state of a process at one moment, from which it can continue in another instance. */
export interface SavedProcess {
  readonly spec: ProcessSpec;
  readonly startedAtMs: number;
  readonly elapsedMs: number;
  readonly status: ExitStatus | undefined;
  readonly durationMs: number;
  readonly journal: SavedJournal | undefined;
  readonly input: readonly Uint8Array[];
  readonly isInputOpen: boolean;
  readonly stdinOffset: number;
  readonly progress: Progress;
}

/** A program that runs in memory, with a journal of its output. */
export class MockProcess {
  readonly id: string;
  readonly pid: number;
  readonly journal: Journal;
  readonly exited = new Notifier();
  /** Its caller gets all output in one answer, so no other caller can use it. */
  isCollected = false;
  status: ExitStatus | undefined;
  durationMs: number;
  readonly #spec: ProcessSpec;
  readonly #files: FileTree;
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #startedAtMs: number;
  readonly #progress: Progress;
  readonly #killed = new AbortController();
  readonly #input: Uint8Array[];
  readonly #inputChanged = new Notifier();
  #isInputOpen: boolean;
  /** The program has taken the first piece of input and may not have processed it yet. */
  #isInputTaken = false;
  #stdinOffset: number;
  #asleepSinceMs: number | undefined;
  /** What the program repeats because it was saved in the middle of a step. */
  #repeatedBytes: number;
  #stopTimer: () => void = () => {};

  constructor(saved: SavedProcess, { files, clock }: { readonly files: FileTree; readonly clock: Clock }) {
    this.#spec = saved.spec;
    this.id = saved.spec.id;
    this.pid = saved.spec.pid;
    this.journal = new Journal(saved.spec.journalBytes, saved.journal);
    this.status = saved.status;
    this.durationMs = saved.durationMs;
    this.#files = files;
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs() - saved.elapsedMs;
    this.#startedAtMs = saved.startedAtMs;
    this.#input = [...saved.input];
    this.#isInputOpen = saved.isInputOpen;
    this.#stdinOffset = saved.stdinOffset;
    this.#repeatedBytes = saved.progress.writtenBytes;
    this.#progress = { ...saved.progress, variables: { ...saved.progress.variables }, writtenBytes: 0 };
  }

  static create(spec: ProcessSpec, world: { readonly files: FileTree; readonly clock: Clock }): MockProcess {
    const saved: SavedProcess = {
      spec,
      startedAtMs: world.clock.now().getTime(),
      elapsedMs: 0,
      status: undefined,
      durationMs: 0,
      journal: undefined,
      input: [],
      isInputOpen: spec.hasStdin || spec.hasPty,
      stdinOffset: 0,
      progress: newProgress(),
    };
    return new MockProcess(saved, world);
  }

  /** Programs can continue only from a point between two turns of the event loop. */
  save(): SavedProcess {
    const nowMs = this.#clock.monotonicMs();
    return {
      spec: this.#spec,
      startedAtMs: this.#startedAtMs,
      elapsedMs: nowMs - this.#startedMs,
      status: this.status,
      durationMs: this.durationMs,
      journal: this.journal.save(),
      input: this.#input,
      isInputOpen: this.#isInputOpen,
      stdinOffset: this.#stdinOffset,
      progress: {
        ...this.#progress,
        sleptMs: this.#asleepSinceMs === undefined ? 0 : nowMs - this.#asleepSinceMs,
      },
    };
  }

  run(): void {
    if (this.status !== undefined) return;
    const { timeoutMs } = this.#spec;
    if (timeoutMs !== undefined) {
      const leftMs = this.#startedMs + timeoutMs - this.#clock.monotonicMs();
      this.#stopTimer = this.#clock.schedule(leftMs, () => this.kill("SIGKILL", true));
    }
    this.#run().then(
      (exitCode) => this.#end({ exit_code: exitCode & 255, signal: null, timed_out: false, out_of_memory: false }),
      () => this.#end({ exit_code: 1, signal: null, timed_out: false, out_of_memory: false }),
    );
  }

  kill(signal: string, isTimeout = false): void {
    this.#end({ exit_code: null, signal, timed_out: isTimeout, out_of_memory: false });
  }

  /** How many bytes of input were taken so far. */
  get stdinOffset(): number {
    return this.#stdinOffset;
  }

  /** Returns the offset after the bytes, or undefined when the input is closed. */
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
      argv: [...this.#spec.argv],
      cwd: this.#spec.cwd,
      user: "user",
      pty: this.#spec.hasPty,
      started_at_ms: this.#startedAtMs,
      start_offset: this.journal.start,
      end_offset: this.journal.end,
      stdin_offset: this.#stdinOffset,
      status: this.status ?? null,
    };
  }

  async #run(): Promise<number> {
    const { argv, env, cwd, hasPty } = this.#spec;
    return await programOf(this.#spec)({
      args: argv.slice(1),
      env,
      cwd,
      files: this.#files,
      progress: this.#progress,
      isTerminal: hasPty,
      pid: this.pid,
      killed: this.#killed.signal,
      read: () => this.#read(),
      write: (source, bytes) => this.#write(source, bytes),
      sleep: (durationMs) => this.#sleep(durationMs),
      die: (signal) => {
        this.kill(signal);
        return new Promise<never>(() => {});
      },
    });
  }

  async #read(): Promise<Uint8Array | undefined> {
    if (this.#isInputTaken) {
      this.#input.shift();
      this.#isInputTaken = false;
      this.#progress.writtenBytes = 0;
    }
    while (this.#input.length === 0 && this.#isInputOpen) await this.#inputChanged.wait();
    this.#isInputTaken = this.#input.length > 0;
    return this.#input[0];
  }

  async #write(source: "stdout" | "stderr", bytes: Uint8Array): Promise<void> {
    if (this.#killed.signal.aborted) return;
    const repeated = Math.min(this.#repeatedBytes, bytes.length);
    this.#repeatedBytes -= repeated;
    if (repeated < bytes.length) {
      await this.journal.append(this.#spec.hasPty ? "pty" : source, bytes.subarray(repeated));
    }
    this.#progress.writtenBytes += bytes.length;
  }

  /** Never returns to a killed program. */
  async #sleep(durationMs: number): Promise<void> {
    const leftMs = durationMs - this.#progress.sleptMs;
    this.#asleepSinceMs = this.#clock.monotonicMs() - this.#progress.sleptMs;
    await new Promise<void>((resolve) => {
      const stop = this.#clock.schedule(leftMs, resolve);
      this.#killed.signal.addEventListener("abort", stop, { once: true });
    });
    this.#asleepSinceMs = undefined;
  }

  #end(status: ExitStatus): void {
    if (this.status !== undefined) return;
    this.status = status;
    this.durationMs = this.#clock.monotonicMs() - this.#startedMs;
    this.#stopTimer();
    this.#killed.abort();
    this.exited.notify();
    this.journal.changed.notify();
  }
}

function programOf({ argv, script }: ProcessSpec): Program {
  if (script !== undefined) return shell(script.text, script.name);
  return programs[argv[0] ?? ""] ?? (async () => 127);
}
