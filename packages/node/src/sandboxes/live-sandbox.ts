import {
  type DialOptions,
  type ExecOptions,
  type ExecResult,
  type GuestPort,
  type InstanceExit,
  type PortWatcher,
  type ProcessHandle,
  type ProcessSummary,
  type Sandbox,
  SandboxError,
  type SandboxFiles,
  type SandboxMetrics,
  type StartOptions,
  type Tunnel,
} from "@sandpiper/core";
import type { Activity, Command, SandboxId, StartProcessBody } from "@sandpiper/protocol";
import type { MomentaryMeasure } from "../auth/quota.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";

import { secretVariables } from "../secrets/trust-variables.ts";

/** Learns how a sandbox is used, to decide when it is idle. */
export interface ActivityWatch {
  /** For an activity without a duration. */
  touch(activity: Activity): void;
  /** For an activity that lasts until the result is disposed. */
  hold(activity: Activity): Disposable;
}

export interface LiveSandboxOptions {
  readonly sandbox: Sandbox;
  /** Returns the current record: lifetimes and labels can change. */
  readonly record: () => SandboxRecord;
  readonly activity: ActivityWatch;
  /** Puts into the sandbox what its commands need; undefined if that is nothing. */
  readonly prepare: () => Promise<void> | undefined;
  /** Counts towards the quotas of the sandbox's key and tenant until disposed. Throws `quota_exceeded`. */
  readonly take: (measure: MomentaryMeasure) => Disposable;
  /** Disposes `counted` when the process has ended. */
  readonly processStarted: (process: ProcessHandle, counted: Disposable) => void;
}

type CommandBody = Omit<StartProcessBody, "process" | "stdin" | "pty" | "journalBytes">;

/** The node buffers a response several times over, so the responses of many concurrent commands must fit into memory. */
const MAX_BUFFERED_OUTPUT_BYTES = 8 * 1024 * 1024;

/** A copy of a start that was delayed on the way arrives long before this many later commands have ended. */
const MAX_SPENT = 1000;

/** An agent that is slower than this is not healthy. */
const HEALTH_TIMEOUT_MS = 5_000;

export type SavePhase = "begun" | "done" | "failed";

/** A running sandbox that applies its owner's defaults to commands and reports all activity. */
export class LiveSandbox {
  readonly #options: LiveSandboxOptions;
  readonly #onSave = new Set<(phase: SavePhase) => void>();
  /** Ids of processes whose clients have their results and never use the ids again, the oldest first. */
  readonly #spent = new Set<string>();
  #changes = 0;
  #preparing: Promise<void> | undefined;

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

  /** Resolves when the sandbox has ended, for any reason; never rejects. */
  get closed(): Promise<InstanceExit> {
    return this.#options.sandbox.closed;
  }

  /** For activities with a duration, such as attached clients and file watches. */
  hold(activity: Activity): Disposable {
    const hold = this.#options.activity.hold(activity);
    this.#countChange(activity);
    return {
      [Symbol.dispose]: () => {
        this.#countChange(activity);
        hold[Symbol.dispose]();
      },
    };
  }

  /** Counts an open file watch until disposed. Throws `quota_exceeded`. */
  countWatch(): Disposable {
    return this.#options.take("watches");
  }

  /** Increases with every activity that may change the sandbox. Background work of its processes does not count. */
  get changes(): number {
    return this.#changes;
  }

  #countChange(activity: Activity): void {
    if (activity !== "client" && activity !== "output") this.#changes++;
  }

  /** Calls the listener at each phase of every checkpoint until the result is disposed. */
  onSave(listener: (phase: SavePhase) => void): Disposable {
    this.#onSave.add(listener);
    return { [Symbol.dispose]: () => this.#onSave.delete(listener) };
  }

  notifySave(phase: SavePhase): void {
    for (const listener of this.#onSave) listener(phase);
  }

  touch(activity: Activity): void {
    this.#countChange(activity);
    this.#options.activity.touch(activity);
  }

  /** Commands that are started from now on wait for it, and run even if it fails. */
  async prepare(): Promise<void> {
    const preparing = this.#options.prepare();
    this.#preparing = preparing?.catch(() => {});
    await preparing;
  }

  async exec(
    body: CommandBody,
    options: Pick<ExecOptions, "stdin" | "signal" | "onStdout" | "onStderr"> = {},
  ): Promise<ExecResult> {
    using _counted = this.#options.take("processes");
    using _ = this.hold("exec");
    const all = { ...options, ...this.#defaults(body), maxOutputBytes: MAX_BUFFERED_OUTPUT_BYTES };
    const { sandbox } = this.#options;
    if (this.#preparing !== undefined) await this.#preparing;
    if (body.code !== undefined) return await sandbox.executeCode(this.#languageOf(body), body.code, all);
    return await sandbox.exec(commandOf(body) as Command, all);
  }

  /** Starts a process, by default the sandbox's shell, or attaches to the existing one with the id that the caller chose. */
  async start(
    body: StartProcessBody,
    reading: Pick<StartOptions, "isRead" | "lendsMemory" | "isRepeated"> = {},
  ): Promise<ProcessHandle> {
    this.touch("exec");
    const { process: id, stdin, pty, journalBytes } = body;
    if (id !== undefined && this.#spent.has(id)) {
      throw new SandboxError("no_such_process", { message: `process ${id} has already run in sandbox ${this.id}` });
    }
    const options: StartOptions = { ...this.#defaults(body), id, stdin, pty, journalBytes, ...reading };
    using counted = new DisposableStack();
    counted.use(this.#options.take("processes"));
    let started: ProcessHandle;
    try {
      started = await this.#startProgram(body, options);
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      if (id === undefined || error.code !== "already_exists") throw error;
      return await this.attach(id, 0, reading);
    }
    this.#options.processStarted(started, counted.move());
    return started;
  }

  /** Starts source code as a new process. */
  async startCode(source: { readonly language: string; readonly code: string }, id: string): Promise<ProcessHandle> {
    this.touch("exec");
    using counted = new DisposableStack();
    counted.use(this.#options.take("processes"));
    const started = await this.#startProgram(source, { ...this.#defaults({}), id });
    this.#options.processStarted(started, counted.move());
    return started;
  }

  attach(process: string, offset: number, options: Pick<StartOptions, "lendsMemory"> = {}): Promise<ProcessHandle> {
    return this.#options.sandbox.attach(process, { ...options, offset });
  }

  /** Deletes the journal and the exit status of a process that has ended. With `isSpent` its id cannot be started again. */
  async forget(process: string, { isSpent = false } = {}): Promise<void> {
    await this.#options.sandbox.forget(process);
    if (!isSpent) return;
    this.#spent.add(process);
    const [oldest] = this.#spent;
    if (this.#spent.size > MAX_SPENT && oldest !== undefined) this.#spent.delete(oldest);
  }

  /** The processes at the time this node adopted or restored the sandbox. */
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

  /** Whether it is ready and its agent answers; not an activity. */
  isHealthy(): Promise<boolean> {
    return this.#options.sandbox.isHealthy({ timeoutMs: HEALTH_TIMEOUT_MS });
  }

  metrics(): Promise<SandboxMetrics> {
    return this.#options.sandbox.metrics();
  }

  /** Connects to a port of the sandbox's loopback. */
  dial(port: number, options: DialOptions = {}): Promise<Tunnel> {
    return this.#options.sandbox.dial({ port }, options);
  }

  /** TCP ports on which something in it listens. */
  ports(): Promise<readonly GuestPort[]> {
    return this.#options.sandbox.ports();
  }

  /** Reports ports that open and close, beginning with those that are open. */
  watchPorts(signal: AbortSignal): Promise<PortWatcher> {
    return this.#options.sandbox.watchPorts({ signal });
  }

  async #startProgram(body: CommandBody, options: StartOptions): Promise<ProcessHandle> {
    const { sandbox } = this.#options;
    if (this.#preparing !== undefined) await this.#preparing;
    if (body.code !== undefined) return sandbox.startCode(this.#languageOf(body), body.code, options);
    return sandbox.start(commandOf(body), options);
  }

  #languageOf({ language }: CommandBody): string | undefined {
    return language ?? this.record.language ?? undefined;
  }

  #defaults(body: CommandBody) {
    const { env, secrets, cwd, user, timeoutMs } = this.record;
    return {
      env: { ...secretVariables(secrets), ...env, ...body.env },
      cwd: body.cwd ?? cwd ?? undefined,
      user: body.user ?? user ?? undefined,
      timeoutMs: body.timeoutMs ?? timeoutMs ?? undefined,
    };
  }
}

function commandOf({ command, argv }: CommandBody): Command | undefined {
  return command ?? argv;
}
