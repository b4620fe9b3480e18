import type { SandboxId } from "@sandpiper/protocol";
import type { AgentClient, CallOptions } from "../agent/agent-client.ts";
import { AgentLink } from "../agent/agent-link.ts";
import { exitError } from "../agent/exit-error.ts";
import { type DialOptions, type DialTarget, dial, type Tunnel } from "../agent/tunnel.ts";
import type { ByteSource, UploadOptions } from "../agent/upload.ts";
import { systemClock } from "../clock.ts";
import type { DirEntry } from "../files/file-entry.ts";
import { listDir } from "../files/list-dir.ts";
import { type ReadFileOptions, readWholeFile } from "../files/read-whole-file.ts";
import { type FileOptions, type OwnershipOptions, SandboxFiles } from "../files/sandbox-files.ts";
import { type Command, type CommandOptions, spawnOptions, spawnTarget } from "../process/command.ts";
import { type ExecOptions, type ExecResult, exec } from "../process/exec.ts";
import { executeCode } from "../process/execute-code.ts";
import { noSuchProcess, processLost } from "../process/no-such-process.ts";
import { type AttachOptions, ProcessHandle, type StartOptions, startParams } from "../process/process-handle.ts";
import { type ProcessSummary, processSummary } from "../process/process-summary.ts";
import { type StartCodeOptions, startCode } from "../process/start-code.ts";
import { startProcess } from "../process/start-process.ts";
import type {
  CheckpointOptions,
  DestroyOptions,
  Instance,
  InstanceExit,
  InstanceRecord,
  PreparedInstance,
  Provider,
  ProviderCapabilities,
  ProviderName,
} from "../provider.ts";
import { SandboxError } from "../sandbox-error.ts";
import { bootSandbox, openLink, type SandboxOptions } from "./boot-sandbox.ts";
import { configFromSpec, instanceSpec } from "./instance-spec.ts";
import { parseSandboxConfig, type SandboxConfig, type SandboxConfigOptions } from "./sandbox-config.ts";
import { type SandboxMetrics, sandboxMetrics } from "./sandbox-metrics.ts";
import { canTransition, requireReady, type SandboxState, transition } from "./sandbox-state.ts";

export interface PrepareOptions {
  readonly id: SandboxId;
  readonly signal?: AbortSignal | undefined;
}

export interface RestoreOptions extends Omit<SandboxOptions, "id"> {
  readonly prepared: PreparedInstance;
  /** With the files of the checkpoint. */
  readonly directory: string;
  readonly createdAt: Date;
}

export interface CheckpointTiming {
  /** How long it stood still. */
  readonly pausedMs: number;
}

interface SandboxParts {
  readonly provider: Provider;
  readonly config: SandboxConfig;
  readonly createdAt: Date;
  readonly instance: Instance;
  readonly link: AgentLink;
  /** It goes on from files alone: what ran in it before is gone. */
  readonly hasLostProcesses?: boolean | undefined;
}

/** A place to run code: its own files and processes, until it is destroyed. */
export class Sandbox implements AsyncDisposable {
  readonly id: SandboxId;
  readonly config: SandboxConfig;
  readonly createdAt: Date;
  readonly provider: ProviderName;
  readonly capabilities: ProviderCapabilities;
  readonly files: SandboxFiles;
  /** Resolves when its instance has ended, whoever ended it; never rejects. */
  readonly closed: Promise<InstanceExit>;
  readonly #instance: Instance;
  readonly #link: AgentLink;
  readonly #hasLostProcesses: boolean;
  #state: SandboxState = "creating";
  #failure: SandboxError | undefined;
  #wasStopped = false;
  /** Calls that its own instance makes, and that say nothing about how busy it is. */
  #openQuestions = 0;
  #destroying: Promise<void> | undefined;

  private constructor(parts: SandboxParts) {
    this.id = parts.instance.id;
    this.config = parts.config;
    this.createdAt = parts.createdAt;
    this.provider = parts.provider.name;
    this.capabilities = parts.provider.capabilities;
    this.#instance = parts.instance;
    this.#link = parts.link;
    this.#hasLostProcesses = parts.hasLostProcesses ?? false;
    this.files = new SandboxFiles(() => this.#client());
    this.#become("ready");
    this.closed = parts.instance.exited.then((exit) => this.#ended(exit));
    parts.instance.heedAgent?.((signal) => this.#ask(signal));
  }

  /** Boots an instance and waits for its agent; on failure or abort nothing is left behind. */
  static async create(
    provider: Provider,
    options: SandboxConfigOptions = {},
    sandboxOptions: SandboxOptions = {},
  ): Promise<Sandbox> {
    const config = parseSandboxConfig(options);
    const createdAt = (sandboxOptions.clock ?? systemClock).now();
    const booted = await bootSandbox(provider, config, sandboxOptions);
    // Whose volumes are kept was there before.
    return new Sandbox({ provider, config, createdAt, ...booted, hasLostProcesses: sandboxOptions.keepsVolumes });
  }

  /** Takes over a sandbox that an earlier program left running; whoever has its record spares the search for it. */
  static async adopt(
    provider: Provider,
    found: SandboxId | InstanceRecord,
    options: Omit<SandboxOptions, "id"> = {},
  ): Promise<Sandbox> {
    const record = typeof found === "string" ? await findInstance(provider, found) : found;
    const config = configFromSpec(record.spec);
    const instance = await provider.adopt(record.id);
    const link = await AgentLink.open(instance, options);
    return new Sandbox({ provider, config, createdAt: record.createdAt, instance, link });
  }

  /** Makes a place for a sandbox that is to be restored; under its own id, or as a fork under another. */
  static prepare(provider: Provider, config: SandboxConfig, options: PrepareOptions): Promise<PreparedInstance> {
    return provider.prepare(instanceSpec(options.id, config), options.signal ?? new AbortController().signal);
  }

  /** Brings one that was saved to life, in a place made for it. */
  static async restore(
    provider: Provider,
    config: SandboxConfig,
    { prepared, directory, createdAt, ...options }: RestoreOptions,
  ): Promise<Sandbox> {
    const signal = options.signal ?? new AbortController().signal;
    const instance = await prepared.restore(directory, signal);
    const link = await openLink(instance, options);
    const hasLostProcesses = provider.capabilities.checkpoint === "filesystem";
    return new Sandbox({ provider, config, createdAt, instance, link, hasLostProcesses });
  }

  get state(): SandboxState {
    return this.#state;
  }

  /** Why it failed, once it has. */
  get failure(): SandboxError | undefined {
    return this.#failure;
  }

  /** Languages that executeCode knows here. */
  get languages(): readonly string[] {
    return this.#link.latest.hello.languages;
  }

  /** Its processes as its agent told of them when the channel was opened: nobody needs to ask again for an adopted one. */
  get greetedProcesses(): readonly ProcessSummary[] {
    return this.#link.latest.hello.processes.map(processSummary);
  }

  /** Where its published ports are reached, by port. */
  get addresses(): Readonly<Record<string, string>> {
    return this.#instance.addresses ?? {};
  }

  /** Runs a command to its end. A non-zero exit code is a result, not an error. */
  async exec(command: Command, options: ExecOptions = {}): Promise<ExecResult> {
    const env = this.#env(options.env);
    return exec(await this.#client(), spawnTarget(command), { ...options, env, ...this.#defaults(options) });
  }

  /** Another name of exec. */
  execute(command: Command, options: ExecOptions = {}): Promise<ExecResult> {
    return this.exec(command, options);
  }

  /** Runs source code; without a language in the sandbox's primary one. */
  async executeCode(language: string | undefined, code: string, options: ExecOptions = {}): Promise<ExecResult> {
    const source = { language: language ?? this.config.language, code };
    const env = this.#env(options.env);
    return executeCode(await this.#client(), source, { ...options, env, ...this.#defaults(options) });
  }

  /** Starts a command that is read from, written to and waited for at leisure. */
  async start(command: Command, options: StartOptions = {}): Promise<ProcessHandle> {
    const { randomUuid } = await this.#client();
    const params = {
      process: options.id ?? randomUuid(),
      ...spawnTarget(command),
      ...spawnOptions(this.#defaults(options)),
      env: this.#env(options.env),
      ...startParams(options),
    };
    const { isRead = false, lendsMemory = false } = options;
    return startProcess({ params, isRead, lendsMemory, client: () => this.#client() });
  }

  /** Starts source code as `start` does a command. */
  async startCode(language: string, code: string, options: StartCodeOptions = {}): Promise<ProcessHandle> {
    const defaults = { id: options.id, env: this.#env(options.env), ...this.#defaults(options) };
    const { id, pid } = await startCode(await this.#client(), { language, code }, defaults);
    return new ProcessHandle({ id, pid, offset: 0, lendsMemory: false, client: () => this.#client() });
  }

  /** A handle of a process that was started earlier, here or by an earlier program. */
  async attach(processId: string, options: AttachOptions = {}): Promise<ProcessHandle> {
    const found = await this.process(processId);
    return new ProcessHandle({
      id: found.id,
      pid: found.pid,
      offset: options.offset ?? 0,
      lendsMemory: options.lendsMemory ?? false,
      client: () => this.#client(),
    });
  }

  /** Drops what the agent keeps of a process that has ended: its status and its output. */
  async forget(processId: string): Promise<void> {
    await (await this.#client()).call("process.forget", { process: processId });
  }

  /** Processes that were started through the agent, running or not yet forgotten. */
  async processes(options: CallOptions = {}): Promise<readonly ProcessSummary[]> {
    const client = await this.#client();
    return (await client.call("process.list", {}, options)).processes.map(processSummary);
  }

  /** One of them. */
  async process(processId: string, options: CallOptions = {}): Promise<ProcessSummary> {
    const found = (await this.processes(options)).find((candidate) => candidate.id === processId);
    if (found !== undefined) return found;
    throw this.#hasLostProcesses ? processLost(this.id, processId) : noSuchProcess(this.id, processId);
  }

  async readFile(path: string, options: ReadFileOptions = {}): Promise<Uint8Array> {
    return (await readWholeFile(this.files, path, options)).bytes();
  }

  async readTextFile(path: string, options: ReadFileOptions = {}): Promise<string> {
    return (await readWholeFile(this.files, path, options)).text();
  }

  async writeFile(path: string, content: ByteSource, options: UploadOptions & OwnershipOptions = {}): Promise<void> {
    await this.files.write(path, content, options);
  }

  listDir(path: string, options: FileOptions = {}): Promise<readonly DirEntry[]> {
    return listDir(this.files, path, options);
  }

  /** Connects to something that listens inside the sandbox. */
  async dial(target: DialTarget, options: DialOptions = {}): Promise<Tunnel> {
    return dial(await this.#client(), target, options);
  }

  async metrics(options: CallOptions = {}): Promise<SandboxMetrics> {
    const client = await this.#client();
    return sandboxMetrics(await client.call("system.metrics", {}, options));
  }

  /**
   * Saves it as files in a directory that exists and is empty. Whoever reads or writes meanwhile only waits. Running processes
   * go on here; where it is restored they do if its provider's checkpoints keep memory. Unless it keeps running it is stopped
   * afterwards, and what is left of its instance is removed by `destroy`.
   */
  async checkpoint(directory: string, options: CheckpointOptions): Promise<CheckpointTiming> {
    const client = await this.#client();
    const { clock } = client;
    if (!options.keepsRunning) this.#become("checkpointing");
    const startedAtMs = clock.monotonicMs();
    let going: Promise<CheckpointTiming> | undefined;
    const goOn = async () => {
      await client.thaw();
      return { pausedMs: clock.monotonicMs() - startedAtMs };
    };
    const onCaptured = () => {
      going ??= options.keepsRunning ? goOn() : undefined;
      // Whoever saves it is told, once that is done.
      going?.catch(() => {});
    };
    try {
      await client.quiesce();
      await this.#instance.checkpoint(directory, { ...options, onCaptured });
    } catch (thrown) {
      // Whether or not it was quiesced already.
      await (going ?? client.thaw()).catch(() => {});
      if (this.#state === "checkpointing") this.#become("ready");
      throw SandboxError.from(thrown);
    }
    if (options.keepsRunning) return await (going ?? goOn());
    this.#stopped();
    return { pausedMs: clock.monotonicMs() - startedAtMs };
  }

  /** Not ready: false. Busy: true. Else whether the agent answers a ping. */
  async isHealthy(options: CallOptions = {}): Promise<boolean> {
    if (this.#state !== "ready") return false;
    const { latest } = this.#link;
    if (!latest.isClosed && latest.openCalls > this.#openQuestions) return true;
    try {
      await (await this.#client()).ping(options);
      return true;
    } catch {
      return false;
    }
  }

  /** Ends everything in it and removes every trace of it. May be called again, also after a failure. */
  destroy(options: DestroyOptions = {}): Promise<void> {
    this.#destroying ??= this.#destroy(options).catch((thrown) => {
      this.#destroying = undefined;
      throw SandboxError.from(thrown);
    });
    return this.#destroying;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.destroy();
  }

  async #destroy(options: DestroyOptions): Promise<void> {
    if (this.#state !== "destroyed") this.#become("destroyed");
    this.#link.close(exitError(`sandbox ${this.id}`, { reason: "destroyed", message: "destroy() was called" }));
    await this.#instance.destroy(options);
  }

  /** It is about to go on as something else, at an earlier moment: whoever waits for it here is told to ask again. */
  halt(): void {
    this.#become("checkpointing");
    this.#stopped();
  }

  /** Its processes go on elsewhere: whoever waited for them here may ask again there. */
  #stopped(): void {
    this.#become("stopped");
    this.#wasStopped = true;
    this.#link.close(exitError(`sandbox ${this.id}`, { reason: "checkpointed", message: "it was saved" }));
  }

  #ended(exit: InstanceExit): InstanceExit {
    if (this.#wasStopped) return { reason: "checkpointed", message: "it was saved" };
    const error = exitError(`sandbox ${this.id}`, exit);
    const next = exit.reason === "destroyed" ? "destroyed" : "failed";
    if (canTransition(this.#state, next)) {
      this.#failure = error;
      this.#become(next);
    }
    this.#link.close(error);
    return exit;
  }

  #become(state: SandboxState): void {
    this.#state = transition(this.id, this.#state, state);
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { latest } = this.#link;
    if (latest.isClosed) return;
    this.#openQuestions += 1;
    try {
      await latest.ping({ signal, timeoutMs: Number.POSITIVE_INFINITY });
    } finally {
      this.#openQuestions -= 1;
    }
  }

  async #client(): Promise<AgentClient> {
    requireReady(this.id, this.#state, this.#failure);
    return this.#link.client();
  }

  #env(given: CommandOptions["env"]): CommandOptions["env"] {
    return Object.keys(this.config.env).length === 0 ? given : { ...this.config.env, ...given };
  }

  #defaults(options: CommandOptions): CommandOptions {
    return {
      cwd: options.cwd ?? this.config.cwd,
      user: options.user ?? this.config.user,
      timeoutMs: options.timeoutMs ?? this.config.timeoutMs,
    };
  }
}

async function findInstance(provider: Provider, id: SandboxId): Promise<InstanceRecord> {
  const record = (await provider.list()).find((candidate) => candidate.id === id);
  if (record !== undefined) return record;
  throw new SandboxError("no_such_sandbox", {
    message: `sandbox ${id} cannot be adopted: provider ${provider.name} has no instance of it`,
    hint: "list the provider's instances",
  });
}
