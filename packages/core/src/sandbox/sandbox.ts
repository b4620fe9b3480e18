import {
  type Command,
  commandTarget,
  type ExecOptions,
  type ExecResult,
  SandboxError,
  type SandboxId,
  systemClock,
} from "@sandpiper/protocol";
import type { AgentClient, CallOptions } from "../agent/agent-client.ts";
import type { AgentLink } from "../agent/agent-link.ts";
import { exitError } from "../agent/exit-error.ts";
import { type DialOptions, type DialTarget, dial, type Tunnel } from "../agent/tunnel.ts";
import type { ByteSource, UploadOptions } from "../agent/upload.ts";
import type { DirEntry } from "../files/file-entry.ts";
import { listDir } from "../files/list-dir.ts";
import { type ReadFileOptions, readWholeFile } from "../files/read-whole-file.ts";
import { type FileOptions, type OwnershipOptions, SandboxFiles } from "../files/sandbox-files.ts";
import { GuestNetwork } from "../network/guest-network.ts";
import { type GuestPort, type PortWatcher, type WatchPortsOptions, watchPorts } from "../network/listening-ports.ts";
import type { NetworkHandler } from "../network/serve-network.ts";
import { type SpawnTarget, spawnOptions, withDefaults } from "../process/command.ts";
import { EarlierProcesses } from "../process/earlier-processes.ts";
import { exec } from "../process/exec.ts";
import { type AttachOptions, ProcessHandle, type StartOptions, startParams } from "../process/process-handle.ts";
import { type ProcessSummary, processSummary } from "../process/process-summary.ts";
import { executeCode, runnableLanguages, runSource, type StripTypes } from "../process/run-code.ts";
import { startProcess } from "../process/start-process.ts";
import type {
  CheckpointOptions,
  DestroyOptions,
  Instance,
  InstanceExit,
  InstanceRecord,
  PreparedInstance,
  PrepareInstanceOptions,
  Provider,
  ProviderCapabilities,
  ProviderName,
} from "../provider.ts";
import {
  type BootedInstance,
  bootSandbox,
  connectInstance,
  findInstance,
  openInstance,
  type SandboxOptions,
} from "./boot-sandbox.ts";
import { configFromSpec, instanceSpec } from "./instance-spec.ts";
import { parseSandboxConfig, type SandboxConfig, type SandboxConfigOptions } from "./sandbox-config.ts";
import { type SandboxMetrics, sandboxMetrics } from "./sandbox-metrics.ts";
import { canTransition, requireReady, type SandboxState, transition } from "./sandbox-state.ts";
import { type CheckpointTiming, saveInstance } from "./save-instance.ts";

export interface PrepareOptions extends PrepareInstanceOptions {
  readonly id: SandboxId;
  readonly signal?: AbortSignal | undefined;
}

export interface RestoreOptions extends Omit<SandboxOptions, "id"> {
  readonly prepared: PreparedInstance;
  /** The directory with the files of the checkpoint. */
  readonly directory: string;
  readonly createdAt: Date;
}

interface SandboxParts extends BootedInstance {
  readonly provider: Provider;
  readonly config: SandboxConfig;
  readonly createdAt: Date;
  /** It was started or restored without its earlier processes. */
  readonly hasLostProcesses?: boolean | undefined;
  readonly stripTypes?: StripTypes | undefined;
}

/** An isolated environment with its own files and processes, until it is destroyed. */
export class Sandbox implements AsyncDisposable {
  readonly id: SandboxId;
  readonly config: SandboxConfig;
  readonly createdAt: Date;
  readonly provider: ProviderName;
  readonly capabilities: ProviderCapabilities;
  readonly files: SandboxFiles;
  /** The service of its container, if this program started it. */
  readonly startedService: ProcessHandle | undefined;
  /** Resolves when its instance has ended for any reason; never rejects. */
  readonly closed: Promise<InstanceExit>;
  readonly #instance: Instance;
  readonly #link: AgentLink;
  readonly #earlier: EarlierProcesses;
  readonly #stripTypes: StripTypes | undefined;
  #state: SandboxState = "creating";
  #failure: SandboxError | undefined;
  #wasStopped = false;
  /** Open calls that do not make the sandbox busy: pings of the instance, and the service of its network. */
  #quietCalls = 0;
  #destroying: Promise<void> | undefined;

  private constructor(parts: SandboxParts) {
    this.id = parts.instance.id;
    this.config = parts.config;
    this.createdAt = parts.createdAt;
    this.provider = parts.provider.name;
    this.capabilities = parts.provider.capabilities;
    this.startedService = parts.startedService;
    this.#instance = parts.instance;
    this.#link = parts.link;
    this.#earlier = new EarlierProcesses(parts.instance, parts.hasLostProcesses);
    this.#stripTypes = parts.stripTypes;
    this.files = new SandboxFiles(() => this.#client());
    this.#become("ready");
    this.closed = parts.instance.exited.then((exit) => this.#ended(exit));
    parts.instance.watchAgent?.((signal) => this.#ask(signal));
  }

  /** Starts an instance and waits for its agent. On failure or abort it removes everything it created. */
  static async create(
    provider: Provider,
    options: SandboxConfigOptions = {},
    sandboxOptions: SandboxOptions = {},
  ): Promise<Sandbox> {
    const config = parseSandboxConfig(options);
    const createdAt = (sandboxOptions.clock ?? systemClock).now();
    const booted = await bootSandbox(provider, config, sandboxOptions);
    // An instance that keeps its volumes existed before, with other processes.
    const parts = { provider, config, createdAt, ...booted, hasLostProcesses: sandboxOptions.keepsVolumes };
    return new Sandbox({ ...sandboxOptions, ...parts });
  }

  /** Takes over a sandbox that an earlier program left running. A record spares the search for the instance. */
  static async adopt(
    provider: Provider,
    found: SandboxId | InstanceRecord,
    { hasLostProcesses, ...options }: Omit<SandboxOptions, "id"> & Pick<SandboxParts, "hasLostProcesses"> = {},
  ): Promise<Sandbox> {
    const record = typeof found === "string" ? await findInstance(provider, found) : found;
    const config = configFromSpec(record.spec);
    const adopted = await connectInstance(await provider.adopt(record.id), { ...options, env: config.env });
    return new Sandbox({ provider, config, createdAt: record.createdAt, ...adopted, hasLostProcesses, ...options });
  }

  /** Prepares an instance for a restore, under the sandbox's own id or, for a fork, another. */
  static prepare(provider: Provider, config: SandboxConfig, options: PrepareOptions): Promise<PreparedInstance> {
    const { id, signal = new AbortController().signal, saved } = options;
    return provider.prepare(instanceSpec(id, config), signal, { saved });
  }

  /** Restores a saved sandbox in a prepared instance. */
  static async restore(
    provider: Provider,
    config: SandboxConfig,
    { prepared, directory, createdAt, ...options }: RestoreOptions,
  ): Promise<Sandbox> {
    const signal = options.signal ?? new AbortController().signal;
    const instance = await prepared.restore(directory, signal);
    const opened = await openInstance(instance, { ...options, env: config.env });
    const hasLostProcesses = provider.capabilities.checkpoint === "filesystem";
    return new Sandbox({ provider, config, createdAt, ...opened, hasLostProcesses, ...options });
  }

  get state(): SandboxState {
    return this.#state;
  }

  /** Set once its state is `failed`. */
  get failure(): SandboxError | undefined {
    return this.#failure;
  }

  /** Languages that executeCode accepts. */
  get languages(): readonly string[] {
    return runnableLanguages(this.#link.latest, this.#stripTypes);
  }

  /** Its processes when the channel was opened, which saves a call after an adoption. */
  get greetedProcesses(): readonly ProcessSummary[] {
    return this.#link.latest.hello.processes.map(processSummary);
  }

  /** The addresses of its published ports, by port. */
  get addresses(): Readonly<Record<string, string>> {
    return this.#instance.addresses ?? {};
  }

  /** Runs a command to its end. A non-zero exit code is a result, not an error. */
  async exec(command: Command, options: ExecOptions = {}): Promise<ExecResult> {
    return exec(await this.#client(), commandTarget(command), { ...options, ...withDefaults(options, this.config) });
  }

  /** An alias of exec. */
  execute(command: Command, options: ExecOptions = {}): Promise<ExecResult> {
    return this.exec(command, options);
  }

  /** Runs source code, by default in the sandbox's primary language. */
  async executeCode(language: string | undefined, code: string, options: ExecOptions = {}): Promise<ExecResult> {
    const all = { ...options, ...withDefaults(options, this.config), stripTypes: this.#stripTypes };
    return executeCode(await this.#client(), { language: language ?? this.config.language, code }, all);
  }

  /** Starts a command, or without one the sandbox's shell, without waiting for it. */
  async start(command: Command | undefined, options: StartOptions = {}): Promise<ProcessHandle> {
    return this.#start(await this.#client(), commandTarget(command), options);
  }

  /** Starts source code, by default in the sandbox's primary language, without waiting for it. */
  async startCode(language: string | undefined, code: string, options: StartOptions = {}): Promise<ProcessHandle> {
    const client = await this.#client();
    const run = (target: SpawnTarget) => this.#start(client, target, options);
    return runSource(
      client,
      { language: language ?? this.config.language, code },
      { ...withDefaults(options, this.config), stripTypes: this.#stripTypes, run },
    );
  }

  /** Returns a handle of a process that was started earlier. */
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

  /** Drops the status and output of a process that has ended. */
  async forget(processId: string): Promise<void> {
    await (await this.#client()).call("process.forget", { process: processId });
  }

  /** Processes that were started through the agent, running or not yet forgotten. */
  async processes(options: CallOptions = {}): Promise<readonly ProcessSummary[]> {
    return (await (await this.#client()).call("process.list", {}, options)).processes.map(processSummary);
  }

  async process(processId: string, options: CallOptions = {}): Promise<ProcessSummary> {
    const found = (await this.processes(options)).find((candidate) => candidate.id === processId);
    if (found !== undefined) return found;
    throw this.#earlier.missing(processId);
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

  /** Decides about what comes out of it, also after a lost channel. Rejects with `unimplemented` for an old agent. */
  network(handler: NetworkHandler): Promise<GuestNetwork> {
    return GuestNetwork.open({
      handler,
      clock: this.#link.latest.clock,
      client: () => this.#client(),
      isAlive: () => this.#state === "ready" || this.#state === "checkpointing",
      onServing: (change) => {
        this.#quietCalls += change;
      },
    });
  }

  /** TCP ports on which something inside listens. */
  async ports(options: CallOptions = {}): Promise<readonly GuestPort[]> {
    return (await (await this.#client()).call("port.list", {}, options)).ports;
  }

  /** Reports ports that open and close, beginning with those that are open. */
  async watchPorts(options: WatchPortsOptions = {}): Promise<PortWatcher> {
    // An open watch does not show that the agent answers.
    return watchPorts(await this.#client(), { ...options, onServing: (change) => (this.#quietCalls += change) });
  }

  async metrics(options: CallOptions = {}): Promise<SandboxMetrics> {
    return sandboxMetrics(await (await this.#client()).call("system.metrics", {}, options));
  }

  /**
   * Saves it as files in an existing, empty directory; reads and writes wait meanwhile. Without `keepsRunning` it is then
   * stopped, and `destroy` removes its instance. Restored processes continue if the provider's checkpoints keep memory.
   */
  async checkpoint(directory: string, options: CheckpointOptions): Promise<CheckpointTiming> {
    const client = await this.#client();
    if (!options.keepsRunning) this.#become("checkpointing");
    try {
      const earlier = this.capabilities.checkpoint === "memory" ? undefined : this.#earlier;
      const timing = await saveInstance(this.#instance, client, { ...options, directory, earlier });
      if (!options.keepsRunning) this.#stopped();
      return timing;
    } catch (thrown) {
      if (this.#state === "checkpointing") this.#become("ready");
      throw SandboxError.from(thrown);
    }
  }

  /** False when not ready, true when busy, otherwise whether the agent answers a ping. */
  async isHealthy(options: CallOptions = {}): Promise<boolean> {
    if (this.#state !== "ready") return false;
    const { latest } = this.#link;
    if (!latest.isClosed && latest.openCalls > this.#quietCalls) return true;
    try {
      await (await this.#client()).ping(options);
      return true;
    } catch {
      return false;
    }
  }

  /** Ends everything in it and removes all of its data. May be called again, also after a failure. */
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

  /** Before a rollback: open operations fail with an error that says to retry. */
  halt(): void {
    this.#become("checkpointing");
    this.#stopped();
  }

  /** Its processes continue elsewhere, where callers can wait for them again. */
  #stopped(): void {
    this.#become("stopped");
    this.#wasStopped = true;
    this.#link.close(exitError(`sandbox ${this.id}`, { reason: "checkpointed", message: "it was saved" }));
  }

  #ended(exit: InstanceExit): InstanceExit {
    if (this.#wasStopped) return { reason: "checkpointed", message: "it was saved" };
    const error = exitError(`sandbox ${this.id}`, exit);
    const next = exit.reason === "destroyed" || exit.reason === "stopped" ? exit.reason : "failed";
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
    this.#quietCalls += 1;
    try {
      await latest.ping({ signal, timeoutMs: Number.POSITIVE_INFINITY });
    } finally {
      this.#quietCalls -= 1;
    }
  }

  async #start({ randomUuid }: AgentClient, target: SpawnTarget, options: StartOptions): Promise<ProcessHandle> {
    if (options.isRepeated && options.id !== undefined) this.#earlier.refuse(options.id);
    const params = {
      process: options.id ?? randomUuid(),
      ...target,
      ...spawnOptions(withDefaults(options, this.config)),
      ...startParams(options),
    };
    const { isRead = false, lendsMemory = false } = options;
    return startProcess({ params, isRead, lendsMemory, client: () => this.#client() });
  }

  async #client(): Promise<AgentClient> {
    requireReady(this.id, this.#state, this.#failure);
    return this.#link.client();
  }
}
