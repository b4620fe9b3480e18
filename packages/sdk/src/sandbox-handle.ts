import {
  type CheckpointResource,
  type Command,
  type CreateCheckpointBody,
  type DeleteSandboxQuery,
  type ExecOptions,
  type ExecResult,
  type ForkBody,
  type OperationId,
  type PortResource,
  type PreviewResource,
  type ProcessResource,
  SandboxError,
  type SandboxHealth,
  type SandboxId,
  type SandboxMetricsBody,
  type SandboxResource,
  type StopSandboxBody,
  type TerminalSize,
  type UpdateSandboxBody,
} from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import { type EventStream, type EventsOptions, openEvents } from "./event-stream.ts";
import type { FileWatcher, WatchOptions } from "./files/file-watcher.ts";
import { SandboxFiles } from "./files/sandbox-files.ts";
import type { HttpRequest } from "./http/http-transport.ts";
import { SandboxNetwork } from "./network/sandbox-network.ts";
import { connectPort, type PortConnection } from "./ports/port-connection.ts";
import { previewUrl, type UrlOptions } from "./ports/preview-url.ts";
import { exec } from "./process/exec.ts";
import { type AttachOptions, attachProcess, type StartOptions, startProcess } from "./process/open-process.ts";
import type { Process } from "./process/process.ts";
import { type RunCodeOptions, type StartCodeOptions, sourceCode } from "./process/source-code.ts";
import { type Rollback, RollbackWatch } from "./rollback/rollback-watch.ts";
import type { SandboxLink } from "./sandbox-link.ts";

export interface CheckpointOptions extends CreateCheckpointBody, CallOptions {}

export interface ForkOptions extends ForkBody, CallOptions {}

export interface DestroyOptions extends CallOptions {
  /** `keep` leaves the volumes of a container, which `client.volumes` then lists. */
  readonly volumes?: DeleteSandboxQuery["volumes"];
}

export interface StopOptions extends StopSandboxBody, CallOptions {}

export interface MoveOptions extends CallOptions {
  /** Move it even if a client is attached to it with a session. */
  readonly takeover?: boolean | undefined;
}

/** A handle of a sandbox on a node. Dropping the handle does not end the sandbox; `destroy` or `await using` does. */
export class SandboxHandle implements AsyncDisposable {
  readonly files: SandboxFiles;
  readonly network: SandboxNetwork;
  readonly #link: SandboxLink;
  readonly #rollbacks: RollbackWatch;
  #info: SandboxResource;

  constructor(info: SandboxResource, { http, connection }: Pick<SandboxLink, "http" | "connection">) {
    const onRollback = () => this.#rollbacks.look();
    this.#link = { id: info.id, http, connection, forgotten: new Set(), onRollback };
    this.#info = info;
    this.#rollbacks = new RollbackWatch({ link: this.#link, last: info.rolledBackTo, look: () => this.refresh() });
    this.files = new SandboxFiles(this.#link);
    this.network = new SandboxNetwork(info.id, http);
  }

  get id(): SandboxId {
    return this.#link.id;
  }

  /** As of the last answer; `refresh` updates it. */
  get state(): SandboxResource["state"] {
    return this.#info.state;
  }

  /** As of the last answer; `refresh` updates it. */
  get info(): SandboxResource {
    return this.#info;
  }

  /**
   * Grants access to this sandbox alone; pass it as `apiKey` to share the sandbox. Throws `permission_denied` if the client's
   * own key is read-only.
   */
  get token(): string {
    const { token } = this.#info;
    if (token !== null) return token;
    throw new SandboxError("token_withheld", {
      message: `the token of sandbox ${this.id} is not available to a read-only key`,
    });
  }

  refresh({ signal }: CallOptions = {}): Promise<SandboxResource> {
    return this.#request("getSandbox", { signal });
  }

  /** Changes its name, labels, metadata, lifetimes or checkpoint policy; replaces labels and metadata entirely. */
  update(changes: UpdateSandboxBody, { signal }: CallOptions = {}): Promise<SandboxResource> {
    return this.#request("updateSandbox", { json: changes, signal });
  }

  /** Runs a command to its end. A non-zero exit code is a result, not an error. */
  exec(command: Command, options: ExecOptions = {}): Promise<ExecResult> {
    return exec(this.#link, command, options);
  }

  /** Runs source code to its end, in a new interpreter. Files that it writes persist; its variables do not. */
  async runCode(code: string, { language, ...options }: RunCodeOptions = {}): Promise<ExecResult> {
    return await exec(this.#link, sourceCode(code, { language }), options);
  }

  /** Starts source code and resolves with the handle of its process. */
  async startCode(code: string, { language, ...options }: StartCodeOptions = {}): Promise<Process> {
    return await startProcess(this.#link, sourceCode(code, { language }), options);
  }

  /** Starts it after a stop; also resumes it after a pause. */
  start(): Promise<SandboxResource>;
  /** Starts a command and resolves with its handle. */
  start(command: Command, options?: StartOptions): Promise<Process>;
  start(command?: Command, options: StartOptions = {}): Promise<SandboxResource | Process> {
    if (command === undefined) return this.#request("startSandbox", { isRepeatable: true });
    return startProcess(this.#link, command, options);
  }

  /** Starts its shell, `$SHELL`, bash or sh, which reads commands from its input; `pty` runs it on a terminal. */
  shell(options: StartOptions = {}): Promise<Process> {
    return startProcess(this.#link, undefined, { stdin: true, ...options });
  }

  /** Starts a command on a terminal, by default the sandbox's shell: `$SHELL`, bash or sh. */
  pty(options: TerminalSize & Omit<StartOptions, "pty" | "stdin"> & { readonly command?: Command | undefined }) {
    const { rows, cols, command, ...rest } = options;
    return startProcess(this.#link, command, { ...rest, pty: { rows, cols } });
  }

  /** Resolves with a handle of a process that any client started. */
  attach(process: string, options: AttachOptions = {}): Promise<Process> {
    return attachProcess(this.#link, process, options);
  }

  /** Processes that run, or have ended and are not forgotten yet. */
  async processes({ signal }: CallOptions = {}): Promise<readonly ProcessResource[]> {
    const request = { path: this.#path, signal };
    const forgotten = new Set(this.#link.forgotten);
    const { items } = await this.#link.http.json<{ items: ProcessResource[] }>("listProcesses", request);
    return items.filter(({ id }) => !forgotten.has(id));
  }

  /** TCP ports on which something in it listens, with their processes. */
  async ports({ signal }: CallOptions = {}): Promise<readonly PortResource[]> {
    const request = { path: this.#path, signal };
    return (await this.#link.http.json<{ items: PortResource[] }>("listPorts", request)).items;
  }

  /**
   * A URL of a port's preview. By default it is a link that opens the private preview for an hour. `public: true` opens the
   * preview to everyone, and `public: false` makes it private again; the URL then needs a credential.
   */
  url(port: number, options: UrlOptions = {}): Promise<string> {
    return previewUrl(this.#link, port, options);
  }

  /** The address of a port's preview, who may use it, and the traffic token of the sandbox. */
  async preview(port: number, { signal }: CallOptions = {}): Promise<PreviewResource> {
    return await this.#link.http.json("getPreview", { path: { ...this.#path, port: String(port) }, signal });
  }

  /** Revokes all links and the traffic token of its previews. */
  async revokeLinks({ signal }: CallOptions = {}): Promise<void> {
    await this.#link.http.empty("revokeLinks", { path: this.#path, signal, isRepeatable: true });
  }

  /** Connects to a port of it, over TCP. */
  connect(port: number, { signal }: CallOptions = {}): Promise<PortConnection> {
    return connectPort(this.#link, { port, signal });
  }

  /** Resolves when the watch is set and will miss no later change. */
  watch(path: string, options: WatchOptions = {}): Promise<FileWatcher> {
    return this.files.watch(path, options);
  }

  /** Past and new events of this sandbox. */
  events(options: EventsOptions = {}): EventStream {
    return openEvents(this.#link.connection, { ...options, sandbox: this.id });
  }

  /** Whether it is ready and its agent answers. Neither restores a sandbox nor counts as use. */
  async isHealthy({ signal }: CallOptions = {}): Promise<boolean> {
    try {
      return (await this.#link.http.json<SandboxHealth>("getSandboxHealth", { path: this.#path, signal })).healthy;
    } catch (thrown) {
      if (isGone(thrown)) return false;
      throw thrown;
    }
  }

  async metrics({ signal }: CallOptions = {}): Promise<SandboxMetricsBody> {
    return await this.#link.http.json("getSandboxMetrics", { path: this.#path, signal });
  }

  /** Saves it, with its running processes if `info.fidelity` is `memory`. It keeps running unless `stop` is true. */
  async checkpoint({ signal, ...body }: CheckpointOptions = {}): Promise<CheckpointResource> {
    return await this.#link.http.json("createCheckpoint", { path: this.#path, json: body, signal });
  }

  /** Newest first. */
  async checkpoints({ signal }: CallOptions = {}): Promise<readonly CheckpointResource[]> {
    const request = { path: this.#path, signal };
    return (await this.#link.http.json<{ items: CheckpointResource[] }>("listCheckpoints", request)).items;
  }

  /** Takes an id or a name. */
  async deleteCheckpoint(checkpoint: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#link.http.empty("deleteCheckpoint", { path: { ...this.#path, checkpoint }, signal });
  }

  /** Creates copies of its current state, or of a checkpoint; the original does not change. */
  async fork({ signal, ...body }: ForkOptions = {}): Promise<SandboxHandle[]> {
    const request = { path: this.#path, json: body, signal };
    const { items } = await this.#link.http.json<{ items: SandboxResource[] }>("forkSandbox", request);
    return items.map((info) => new SandboxHandle(info, this.#link));
  }

  /** Stops all of its processes until `resume`. */
  pause({ signal }: CallOptions = {}): Promise<SandboxResource> {
    return this.#request("pauseSandbox", { signal, isRepeatable: true });
  }

  /** Continues it after a pause, or after a checkpoint that stopped it. */
  resume({ signal }: CallOptions = {}): Promise<SandboxResource> {
    return this.#request("resumeSandbox", { signal, isRepeatable: true });
  }

  /**
   * Stops its container: its processes end, its files stay. Processes get SIGTERM, and SIGKILL after `timeoutMs`, by default
   * 10 seconds. `start()` starts it again. Providers without containers refuse it; use `pause` there.
   */
  stop({ timeoutMs, signal }: StopOptions = {}): Promise<SandboxResource> {
    return this.#request("stopSandbox", { json: { timeoutMs }, signal, isRepeatable: true });
  }

  /** Restores it to a checkpoint, the newest by default. Later changes are lost, and its streams fail. */
  rollback(checkpoint?: string, { signal }: CallOptions = {}): Promise<SandboxResource> {
    return this.#request("rollbackSandbox", { json: { checkpoint }, signal });
  }

  /**
   * Moves it to another node of its cluster: the one with this id, or the one with the fewest sandboxes that accepts it.
   * Open streams continue there if `info.fidelity` is `memory`. Succeeds if it is on the named node already.
   */
  moveTo(node?: string, { takeover, signal }: MoveOptions = {}): Promise<SandboxResource> {
    // Without a node, a second request would move it again.
    return this.#request("moveSandbox", { json: { node, takeover }, signal, isRepeatable: node !== undefined });
  }

  /**
   * Recreates its container from the current image, also after a failure. Its volumes stay; its processes and all other
   * files are gone, and its streams fail.
   */
  rebuild({ signal }: CallOptions = {}): Promise<SandboxResource> {
    return this.#request("rebuildSandbox", { signal });
  }

  /**
   * Calls back when it was restored to an earlier checkpoint, by a caller or because its node died and another restored it.
   * Until the returned function is called, the client's connection stays open.
   */
  onRollback(callback: (rollback: Rollback) => void): () => void {
    return this.#rollbacks.add(callback);
  }

  /** Ends it and removes all of its data, except volumes that are to be kept. Succeeds if it is already gone. */
  async destroy({ volumes, signal }: DestroyOptions = {}): Promise<void> {
    const query = { volumes };
    try {
      await this.#link.http.empty("deleteSandbox", { path: this.#path, query, signal, isRepeatable: true });
    } catch (thrown) {
      if (!isGone(thrown)) throw thrown;
    }
    this.#info = { ...this.#info, state: "destroyed" };
    this.#link.connection.closeIfIdle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy();
  }

  /** Makes a request whose answer is the sandbox. */
  async #request(operation: OperationId, request: HttpRequest): Promise<SandboxResource> {
    this.#info = await this.#link.http.json<SandboxResource>(operation, { path: this.#path, ...request });
    this.#rollbacks.saw(this.#info.rolledBackTo);
    return this.#info;
  }

  get #path() {
    return { id: this.#link.id };
  }
}

function isGone(thrown: unknown): boolean {
  return ["not_found", "gone"].includes(SandboxError.from(thrown).code);
}
