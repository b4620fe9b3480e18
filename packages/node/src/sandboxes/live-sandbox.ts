import {
  type ExecOptions,
  type ExecResult,
  type InstanceExit,
  type ProcessHandle,
  type ProcessSummary,
  type Sandbox,
  SandboxError,
  type SandboxFiles,
  type SandboxMetrics,
  type StartOptions,
} from "@sandpiper/core";
import type { Activity, SandboxId, StartProcessBody } from "@sandpiper/protocol";
import type { SandboxRecord } from "../records/sandbox-record.ts";

/** Told what a sandbox is used for, so that it is not taken for idle. */
export interface ActivityWatch {
  /** It happened now. */
  touch(activity: Activity): void;
  /** It goes on until it is disposed. */
  hold(activity: Activity): Disposable;
}

export interface LiveSandboxOptions {
  readonly sandbox: Sandbox;
  /** As it is now: lifetimes and labels may change. */
  readonly record: () => SandboxRecord;
  readonly activity: ActivityWatch;
  readonly processStarted: (process: ProcessHandle) => void;
}

type CommandBody = Pick<StartProcessBody, "command" | "argv" | "cwd" | "env" | "user" | "timeoutMs">;

/** An answer is made in the node's memory, several times over: what many ask for at once must fit. */
const MAX_BUFFERED_OUTPUT_BYTES = 8 * 1024 * 1024;

/** How far a checkpoint of a sandbox is. */
export type SavePhase = "begun" | "done" | "failed";

/** A running sandbox with its owner's defaults applied, and every use of it noticed. */
export class LiveSandbox {
  readonly #options: LiveSandboxOptions;
  readonly #onSave = new Set<(phase: SavePhase) => void>();
  #changes = 0;

  constructor(options: LiveSandboxOptions) {
    this.#options = options;
  }

  get id(): SandboxId {
    return this.#options.sandbox.id;
  }

  get addresses(): Readonly<Record<string, string>> {
    return this.#options.sandbox.addresses;
  }

  get record(): SandboxRecord {
    return this.#options.record();
  }

  get languages(): readonly string[] {
    return this.#options.sandbox.languages;
  }

  /** Resolves when it has ended, whoever ended it; never rejects. */
  get closed(): Promise<InstanceExit> {
    return this.#options.sandbox.closed;
  }

  /** For what lasts: attached clients, watches. */
  hold(activity: Activity): Disposable {
    const hold = this.#options.activity.hold(activity);
    this.#used(activity);
    return {
      [Symbol.dispose]: () => {
        this.#used(activity);
        hold[Symbol.dispose]();
      },
    };
  }

  /** Grows with everything that may have changed something in it; what its own processes do besides does not count. */
  get changes(): number {
    return this.#changes;
  }

  #used(activity: Activity): void {
    if (activity !== "client" && activity !== "output") this.#changes++;
  }

  /** Told of every checkpoint of it, until it is disposed. */
  onSave(listener: (phase: SavePhase) => void): Disposable {
    this.#onSave.add(listener);
    return { [Symbol.dispose]: () => this.#onSave.delete(listener) };
  }

  tellSave(phase: SavePhase): void {
    for (const listener of this.#onSave) listener(phase);
  }

  touch(activity: Activity): void {
    this.#used(activity);
    this.#options.activity.touch(activity);
  }

  async exec(
    body: CommandBody,
    options: Pick<ExecOptions, "stdin" | "signal" | "onStdout" | "onStderr"> = {},
  ): Promise<ExecResult> {
    using _ = this.hold("exec");
    const limits = { ...this.#defaults(body), maxOutputBytes: MAX_BUFFERED_OUTPUT_BYTES };
    return await this.#options.sandbox.exec(commandOf(body), { ...options, ...limits });
  }

  async executeCode(
    source: { readonly language: string | undefined; readonly code: string },
    options: Pick<ExecOptions, "signal" | "onStdout" | "onStderr"> = {},
  ): Promise<ExecResult> {
    using _ = this.hold("exec");
    const language = source.language ?? this.record.language ?? undefined;
    return await this.#options.sandbox.executeCode(language, source.code, { ...options, ...this.#defaults({}) });
  }

  /** Starts a process, or attaches to it when its id, which the caller chose, is there already. */
  async start(
    body: StartProcessBody,
    reading: Pick<StartOptions, "isRead" | "lendsMemory"> = {},
  ): Promise<ProcessHandle> {
    this.touch("exec");
    const { process: id, stdin, pty, journalBytes } = body;
    const options: StartOptions = { ...this.#defaults(body), id, stdin, pty, journalBytes, ...reading };
    let started: ProcessHandle;
    try {
      started = await this.#options.sandbox.start(commandOf(body), options);
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      if (id === undefined || error.code !== "already_exists") throw error;
      return await this.attach(id, 0, reading);
    }
    this.#options.processStarted(started);
    return started;
  }

  /** As `start`, for source code. */
  async startCode(source: { readonly language: string; readonly code: string }, id: string): Promise<ProcessHandle> {
    this.touch("exec");
    const options = { ...this.#defaults({}), id };
    const started = await this.#options.sandbox.startCode(source.language, source.code, options);
    this.#options.processStarted(started);
    return started;
  }

  attach(process: string, offset: number, options: Pick<StartOptions, "lendsMemory"> = {}): Promise<ProcessHandle> {
    return this.#options.sandbox.attach(process, { ...options, offset });
  }

  /** Drops what is kept of a process that has ended. */
  forget(process: string): Promise<void> {
    return this.#options.sandbox.forget(process);
  }

  /** As they were when the sandbox was taken over. */
  get greetedProcesses(): readonly ProcessSummary[] {
    return this.#options.sandbox.greetedProcesses;
  }

  processes(): Promise<readonly ProcessSummary[]> {
    return this.#options.sandbox.processes();
  }

  process(id: string): Promise<ProcessSummary> {
    return this.#options.sandbox.process(id);
  }

  get files(): SandboxFiles {
    this.touch("file");
    return this.#options.sandbox.files;
  }

  metrics(): Promise<SandboxMetrics> {
    return this.#options.sandbox.metrics();
  }

  #defaults(body: CommandBody) {
    const { env, cwd, user, timeoutMs } = this.record;
    return {
      env: { ...env, ...body.env },
      cwd: body.cwd ?? cwd ?? undefined,
      user: body.user ?? user ?? undefined,
      timeoutMs: body.timeoutMs ?? timeoutMs ?? undefined,
    };
  }
}

function commandOf({ command, argv }: CommandBody): string | readonly string[] {
  return command ?? (argv as readonly string[]);
}
