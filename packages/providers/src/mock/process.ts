import type { Clock } from "@sandpiper/core";
import type { ExitStatus, ProcessInfo } from "@sandpiper/protocol";
import type { FileTree } from "./file-tree.ts";
import { Journal, type JournalState } from "./journal.ts";
import { Notifier } from "./notifier.ts";
import { type Program, type Progress, programs } from "./program.ts";
import { SHELL, shell, shellOfInput } from "./shell.ts";

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

/** The state of a process, from which it can continue in another instance. */
export interface ProcessState {
  readonly spec: ProcessSpec;
  readonly startedAtMs: number;
  readonly elapsedMs: number;
  status: ExitStatus | undefined;
  durationMs: number;
  readonly journal: JournalState;
  readonly input: Uint8Array[];
  isInputOpen: boolean;
  /** How many bytes of input were taken so far. */
  stdinOffset: number;
  readonly progress: Progress;
}

interface World {
  readonly files: FileTree;
  readonly clock: Clock;
}

/** A program that runs in memory, with a journal of its output. */
export class MockProcess {
  readonly state: ProcessState;
  readonly journal: Journal;
  readonly exited = new Notifier();
  readonly #world: World;
  readonly #startedMs: number;
  readonly #killed = new AbortController();
  readonly #inputChanged = new Notifier();
  /** The program has taken the first piece of input and may not have processed it yet. */
  #isInputTaken = false;
  #asleepSinceMs: number | undefined;
  /** What the program repeats because it was saved in the middle of a step. */
  #repeatedBytes: number;
  #stopTimer: () => void = () => {};

  constructor(state: ProcessState, world: World) {
    this.state = state;
    this.journal = new Journal(state.spec.journalBytes, state.journal);
    this.#world = world;
    this.#startedMs = world.clock.monotonicMs() - state.elapsedMs;
    this.#repeatedBytes = state.progress.writtenBytes;
    state.progress.writtenBytes = 0;
  }

  static create(spec: ProcessSpec, world: World): MockProcess {
    const state: ProcessState = {
      spec,
      startedAtMs: world.clock.now().getTime(),
      elapsedMs: 0,
      status: undefined,
      durationMs: 0,
      journal: { entries: [], start: 0, end: 0 },
      input: [],
      isInputOpen: spec.hasStdin || spec.hasPty,
      stdinOffset: 0,
      progress: { step: 0, status: 0, variables: {}, hasBegun: false, writtenBytes: 0, sleptMs: 0 },
    };
    return new MockProcess(state, world);
  }

  /** Programs can continue only from a point between two turns of the event loop. */
  save(): ProcessState {
    const nowMs = this.#world.clock.monotonicMs();
    const sleptMs = this.#asleepSinceMs === undefined ? 0 : nowMs - this.#asleepSinceMs;
    const progress = { ...this.state.progress, sleptMs };
    return { ...this.state, elapsedMs: nowMs - this.#startedMs, progress };
  }

  run(): void {
    if (this.state.status !== undefined) return;
    const { timeoutMs } = this.state.spec;
    if (timeoutMs !== undefined) {
      const leftMs = this.#startedMs + timeoutMs - this.#world.clock.monotonicMs();
      this.#stopTimer = this.#world.clock.schedule(leftMs, () => this.kill("SIGKILL", true));
    }
    this.#run().then(
      (exitCode) => this.#end({ exit_code: exitCode & 255, signal: null, timed_out: false, out_of_memory: false }),
      () => this.#end({ exit_code: 1, signal: null, timed_out: false, out_of_memory: false }),
    );
  }

  kill(signal: string, isTimeout = false): void {
    this.#end({ exit_code: null, signal, timed_out: isTimeout, out_of_memory: false });
  }

  /** Returns the offset after the bytes, or undefined when the input is closed. */
  feed(bytes: Uint8Array, close: boolean): number | undefined {
    const { state } = this;
    const isOpen = state.isInputOpen && state.status === undefined;
    if (!isOpen && bytes.length > 0) return undefined;
    if (bytes.length > 0) state.input.push(bytes);
    state.stdinOffset += bytes.length;
    if (close) state.isInputOpen = false;
    this.#inputChanged.notify();
    return state.stdinOffset;
  }

  info(): ProcessInfo {
    const { spec, journal, startedAtMs, stdinOffset, status = null } = this.state;
    return {
      process: spec.id,
      pid: spec.pid,
      argv: [...spec.argv],
      cwd: spec.cwd,
      user: "user",
      pty: spec.hasPty,
      started_at_ms: startedAtMs,
      start_offset: journal.start,
      end_offset: journal.end,
      stdin_offset: stdinOffset,
      status,
    };
  }

  async #run(): Promise<number> {
    const { spec, progress } = this.state;
    const { pid, argv, env, cwd, hasPty } = spec;
    return await programOf(spec)({
      args: argv.slice(1),
      env,
      cwd,
      files: this.#world.files,
      progress,
      isTerminal: hasPty,
      pid,
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
    const { state } = this;
    if (this.#isInputTaken) {
      state.input.shift();
      this.#isInputTaken = false;
      state.progress.writtenBytes = 0;
    }
    while (state.input.length === 0 && state.isInputOpen) await this.#inputChanged.wait();
    this.#isInputTaken = state.input.length > 0;
    return state.input[0];
  }

  async #write(source: "stdout" | "stderr", bytes: Uint8Array): Promise<void> {
    if (this.#killed.signal.aborted) return;
    const repeated = Math.min(this.#repeatedBytes, bytes.length);
    this.#repeatedBytes -= repeated;
    if (repeated < bytes.length) {
      await this.journal.append(this.state.spec.hasPty ? "pty" : source, bytes.subarray(repeated));
    }
    this.state.progress.writtenBytes += bytes.length;
  }

  /** Never returns to a killed program. */
  async #sleep(durationMs: number): Promise<void> {
    const leftMs = durationMs - this.state.progress.sleptMs;
    this.#asleepSinceMs = this.#world.clock.monotonicMs() - this.state.progress.sleptMs;
    await new Promise<void>((resolve) => {
      const stop = this.#world.clock.schedule(leftMs, resolve);
      this.#killed.signal.addEventListener("abort", stop, { once: true });
    });
    this.#asleepSinceMs = undefined;
  }

  #end(status: ExitStatus): void {
    if (this.state.status !== undefined) return;
    this.state.status = status;
    this.state.durationMs = this.#world.clock.monotonicMs() - this.#startedMs;
    this.#stopTimer();
    this.#killed.abort();
    this.exited.notify();
    this.journal.changed.notify();
  }
}

function programOf({ argv, script }: ProcessSpec): Program {
  if (script !== undefined) return shell(script.text, script.name);
  const [name = ""] = argv;
  return name === SHELL ? shellOfInput : (programs[name] ?? (async () => 127));
}
