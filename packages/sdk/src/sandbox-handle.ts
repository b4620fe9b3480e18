import {
  type CheckpointResource,
  type Command,
  type CreateCheckpointBody,
  type ExecOptions,
  type ExecResult,
  type ForkBody,
  type ProcessResource,
  SandboxError,
  type SandboxId,
  type SandboxMetricsBody,
  type SandboxResource,
  type TerminalSize,
  type UpdateSandboxBody,
} from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import { type EventStream, type EventsOptions, openEvents } from "./event-stream.ts";
import type { FileWatcher, WatchOptions } from "./files/file-watcher.ts";
import { SandboxFiles } from "./files/sandbox-files.ts";
import { exec } from "./process/exec.ts";
import { type AttachOptions, attachProcess, type StartOptions, startProcess } from "./process/open-process.ts";
import type { Process } from "./process/process.ts";
import { type Rollback, RollbackWatch } from "./rollback/rollback-watch.ts";
import type { SandboxLink } from "./sandbox-link.ts";

export interface CheckpointOptions extends CreateCheckpointBody, CallOptions {}

export interface ForkOptions extends ForkBody, CallOptions {}

/** A sandbox on a node. It lives on when its handle is dropped; `destroy` or `await using` ends it. */
export class SandboxHandle implements AsyncDisposable {
  readonly files: SandboxFiles;
  readonly #link: SandboxLink;
  readonly #rollbacks: RollbackWatch;
  #info: SandboxResource;

  constructor(info: SandboxResource, { http, connection }: Pick<SandboxLink, "http" | "connection">) {
    const onRollback = () => this.#rollbacks.look();
    this.#link = { id: info.id, http, connection, forgotten: new Set(), onRollback };
    this.#info = info;
    this.#rollbacks = new RollbackWatch({ link: this.#link, last: info.rolledBackTo, look: () => this.refresh() });
    this.files = new SandboxFiles(this.#link);
  }

  get id(): SandboxId {
    return this.#link.id;
  }

  /** As of the last answer; `refresh` asks. */
  get state(): SandboxResource["state"] {
    return this.#info.state;
  }

  /** As of the last answer; `refresh` asks. */
  get info(): SandboxResource {
    return this.#info;
  }

  /**
   * Opens this sandbox and nothing else: given as `apiKey` it lets somebody else use it. Throws `permission_denied` where
   * the client's own key may only look.
   */
  get token(): string {
    const { token } = this.#info;
    if (token !== null) return token;
    throw new SandboxError("token_withheld", {
      message: `the token of sandbox ${this.id} is not told to a key that may only look`,
    });
  }

  async refresh({ signal }: CallOptions = {}): Promise<SandboxResource> {
    return this.#learn(await this.#link.http.json<SandboxResource>("getSandbox", { path: this.#path, signal }));
  }

  /** Changes its name, labels, metadata, lifetimes or checkpoint policy; labels and metadata are replaced as a whole. */
  async update(changes: UpdateSandboxBody, { signal }: CallOptions = {}): Promise<SandboxResource> {
    const request = { path: this.#path, json: changes, signal };
    return this.#learn(await this.#link.http.json<SandboxResource>("updateSandbox", request));
  }

  /** Runs a command to its end. A non-zero exit code is a result, not an error. */
  exec(command: Command, options: ExecOptions = {}): Promise<ExecResult> {
    return exec(this.#link, command, options);
  }

  /** Starts a command and gives a handle of it. */
  start(command: Command, options: StartOptions = {}): Promise<Process> {
    return startProcess(this.#link, command, options);
  }

  /** Starts a command on a terminal: a shell by default. */
  pty(options: TerminalSize & Omit<StartOptions, "pty" | "stdin"> & { readonly command?: Command | undefined }) {
    const { rows, cols, command = ["/bin/sh", "-i"], ...rest } = options;
    return startProcess(this.#link, command, { ...rest, pty: { rows, cols } });
  }

  /** A handle of a process that was started before, by whomever. */
  attach(process: string, options: AttachOptions = {}): Promise<Process> {
    return attachProcess(this.#link, process, options);
  }

  /** Running, or not yet forgotten. */
  async processes({ signal }: CallOptions = {}): Promise<readonly ProcessResource[]> {
    const request = { path: this.#path, signal };
    const forgotten = new Set(this.#link.forgotten);
    const { items } = await this.#link.http.json<{ items: ProcessResource[] }>("listProcesses", request);
    return items.filter(({ id }) => !forgotten.has(id));
  }

  /** Resolves when the watch is set: nothing that happens afterwards is missed. */
  watch(path: string, options: WatchOptions = {}): Promise<FileWatcher> {
    return this.files.watch(path, options);
  }

  /** What happened and happens to this sandbox. */
  events(options: EventsOptions = {}): EventStream {
    return openEvents(this.#link.connection, { ...options, sandbox: this.id });
  }

  async metrics({ signal }: CallOptions = {}): Promise<SandboxMetricsBody> {
    return await this.#link.http.json("getSandboxMetrics", { path: this.#path, signal });
  }

  /** Saves it, with its running processes where `info.fidelity` is `memory`. It goes on running unless `stop` is given. */
  async checkpoint({ signal, ...body }: CheckpointOptions = {}): Promise<CheckpointResource> {
    return await this.#link.http.json("createCheckpoint", { path: this.#path, json: body, signal });
  }

  /** Newest first. */
  async checkpoints({ signal }: CallOptions = {}): Promise<readonly CheckpointResource[]> {
    const request = { path: this.#path, signal };
    return (await this.#link.http.json<{ items: CheckpointResource[] }>("listCheckpoints", request)).items;
  }

  /** By its id or name. */
  async deleteCheckpoint(checkpoint: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#link.http.empty("deleteCheckpoint", { path: { ...this.#path, checkpoint }, signal });
  }

  /** Makes sandboxes that go on from where this one is, or from a checkpoint of it; this one is not touched. */
  async fork({ signal, ...body }: ForkOptions = {}): Promise<SandboxHandle[]> {
    const request = { path: this.#path, json: body, signal };
    const { items } = await this.#link.http.json<{ items: SandboxResource[] }>("forkSandbox", request);
    return items.map((info) => new SandboxHandle(info, this.#link));
  }

  /** Holds it as it is, with nothing of it running, until `resume`. */
  async pause({ signal }: CallOptions = {}): Promise<SandboxResource> {
    return this.#learn(
      await this.#link.http.json<SandboxResource>("pauseSandbox", { path: this.#path, signal, isRepeatable: true }),
    );
  }

  /** Lets it go on after a pause, or after a checkpoint that stopped it. */
  async resume({ signal }: CallOptions = {}): Promise<SandboxResource> {
    return this.#learn(
      await this.#link.http.json<SandboxResource>("resumeSandbox", { path: this.#path, signal, isRepeatable: true }),
    );
  }

  /** Sets it back to a checkpoint, the newest by default: what happened since is lost, and streams of it fail. */
  async rollback(checkpoint?: string, { signal }: CallOptions = {}): Promise<SandboxResource> {
    const request = { path: this.#path, json: { checkpoint }, signal };
    return this.#learn(await this.#link.http.json<SandboxResource>("rollbackSandbox", request));
  }

  /**
   * Gives it a new container of what its image means now, also after it has failed. Its volumes stay; what ran in it, and
   * what was written elsewhere, is gone, and streams of it fail.
   */
  async rebuild({ signal }: CallOptions = {}): Promise<SandboxResource> {
    return this.#learn(await this.#link.http.json<SandboxResource>("rebuildSandbox", { path: this.#path, signal }));
  }

  /**
   * Called when it was set back to an earlier checkpoint, by whomever: also when its node died and another went on from the
   * newest one. What it returns ends that; until then the client's connection stays open.
   */
  onRollback(callback: (rollback: Rollback) => void): () => void {
    return this.#rollbacks.add(callback);
  }

  /** Ends it and removes everything in it. One that is gone already is destroyed. */
  async destroy({ signal }: CallOptions = {}): Promise<void> {
    try {
      await this.#link.http.empty("deleteSandbox", { path: this.#path, signal, isRepeatable: true });
    } catch (thrown) {
      if (!["not_found", "gone"].includes(SandboxError.from(thrown).code)) throw thrown;
    }
    this.#info = { ...this.#info, state: "destroyed" };
    this.#link.connection.closeIfIdle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy();
  }

  #learn(info: SandboxResource): SandboxResource {
    this.#info = info;
    this.#rollbacks.saw(info.rolledBackTo);
    return info;
  }

  get #path() {
    return { id: this.#link.id };
  }
}
