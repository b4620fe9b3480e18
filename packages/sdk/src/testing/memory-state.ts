import {
  type CreateSandboxBody,
  createSandboxId,
  type EventBody,
  type EventKind,
  type FileEventBody,
  findLanguage,
  languages,
  type NodeResource,
  SandboxError,
  type SandboxId,
  type SandboxResource,
  type StartProcessBody,
  type VolumeResource,
} from "@sandpiper/protocol";
import { MemoryCheckpoints } from "./memory-checkpoints.ts";
import { type ExecHandler, MemoryProcess } from "./memory-process.ts";
import { type MemoryFileMap, type MemorySandbox, newResource } from "./memory-sandbox.ts";

/** The state of the in-memory server. */
export class MemoryState {
  readonly apiKey = "memory-key";
  readonly url = "http://sandpiper.memory";
  readonly #nodeId = crypto.randomUUID();
  readonly #startedAt = new Date().toISOString();
  readonly sandboxes = new Map<string, MemorySandbox>();
  readonly checkpoints = new MemoryCheckpoints(this);
  /** Volumes that destroyed sandboxes left, by name. */
  readonly volumes: Map<string, VolumeResource> = new Map();
  readonly events: EventBody[] = [];
  readonly listeners = new Set<(change: { event?: EventBody; file?: FileEventBody & { sandbox: string } }) => void>();
  /** Called with sandboxes that were rolled back. */
  readonly rollbackListeners = new Set<(sandboxId: string) => void>();
  handler: ExecHandler = ({ command, argv, code }) => ({
    stderr: `no answer was scripted for ${JSON.stringify(command ?? argv ?? code)}; script one with server.onExec`,
    exitCode: 127,
  });
  readonly #idempotency = new Map<string, string>();

  /** It is a standalone node. */
  get node(): NodeResource {
    return {
      id: this.#nodeId,
      url: this.url,
      startedAt: this.#startedAt,
      seenAt: new Date().toISOString(),
      isAlive: true,
      isDraining: false,
      isThisNode: true,
      sandboxes: this.sandboxes.size,
      version: "memory",
    };
  }

  create(body: CreateSandboxBody, idempotencyKey: string | null): SandboxResource {
    const known = idempotencyKey === null ? undefined : this.#idempotency.get(idempotencyKey);
    if (known !== undefined) return this.sandbox(known).resource;
    const { checkpoint, ...rest } = body;
    const content = checkpoint === undefined ? { env: rest.env } : this.checkpoints.content(checkpoint);
    const { resource } = this.add({ ...rest, ...content });
    if (idempotencyKey !== null) this.#idempotency.set(idempotencyKey, resource.id);
    return resource;
  }

  add({ env = {}, files, ...body }: CreateSandboxBody & { readonly files?: MemoryFileMap | undefined }): MemorySandbox {
    const resource = newResource(createSandboxId(), body);
    const network = { flows: [], requests: [] };
    const sandbox = { resource, env, files: new Map(files), processes: new Map(), network, rollbacks: 0 };
    this.sandboxes.set(resource.id, sandbox);
    this.emit("sandbox.created", resource.id);
    this.emit("sandbox.ready", resource.id);
    return sandbox;
  }

  sandbox(id: string): MemorySandbox {
    const found = this.sandboxes.get(id);
    if (found !== undefined) return found;
    throw new SandboxError("no_such_sandbox", { message: `sandbox ${id} not found` });
  }

  /** Throws for a paused or stopped sandbox. */
  readySandbox(id: string): MemorySandbox {
    const sandbox = this.sandbox(id);
    const { state, stoppedAt } = sandbox.resource;
    if (state === "ready") return sandbox;
    if (stoppedAt !== null) {
      const details = { id, state };
      throw new SandboxError("stopped_by_owner", { message: `sandbox ${id} was stopped at ${stoppedAt}`, details });
    }
    throw new SandboxError("not_ready", { message: `sandbox ${id} is ${state}`, hint: "resume it first" });
  }

  destroy(id: string, { keepsVolumes }: { readonly keepsVolumes: boolean }): void {
    const { processes, resource } = this.sandbox(id);
    if (keepsVolumes) this.#keepVolume(resource);
    this.sandboxes.delete(id);
    this.checkpoints.forget(id);
    for (const process of processes.values()) process.end(137, "SIGKILL");
    this.emit("sandbox.destroyed", resource.id);
  }

  removeVolume(name: string): void {
    if (this.volumes.delete(name)) return;
    throw new SandboxError("no_such_volume", { message: `kept volume ${name} not found`, details: { volume: name } });
  }

  #keepVolume({ id, provider }: SandboxResource): void {
    const name = `sandpiper-data-${id}`;
    const keptAt = new Date().toISOString();
    this.volumes.set(name, { name, provider, sandbox: id, path: "/.data", sizeBytes: 0, keptAt, usedBy: [] });
  }

  /** Ends its processes, because a checkpoint has only files. */
  stop(id: string): void {
    const sandbox = this.sandbox(id);
    for (const process of sandbox.processes.values()) process.end(137, "SIGKILL");
    sandbox.resource = { ...sandbox.resource, state: "stopped" };
  }

  /** Running commands continue, because the test answers them. */
  pause(id: string): SandboxResource {
    if (this.sandbox(id).resource.state === "paused") return this.sandbox(id).resource;
    const sandbox = this.readySandbox(id);
    sandbox.resource = { ...sandbox.resource, state: "paused" };
    this.emit("sandbox.paused", sandbox.resource.id);
    return sandbox.resource;
  }

  /** Ends its processes; its files stay. */
  stopByOwner(id: string): SandboxResource {
    if (this.sandbox(id).resource.stoppedAt !== null) return this.sandbox(id).resource;
    const sandbox = this.readySandbox(id);
    this.stop(id);
    sandbox.resource = { ...sandbox.resource, stoppedAt: new Date().toISOString() };
    this.emit("sandbox.stopped", sandbox.resource.id);
    return sandbox.resource;
  }

  resume(id: string): SandboxResource {
    const sandbox = this.sandbox(id);
    if (sandbox.resource.state === "ready") return sandbox.resource;
    const kind = sandbox.resource.stoppedAt === null ? "sandbox.resumed" : "sandbox.started";
    sandbox.resource = { ...sandbox.resource, state: "ready", stoppedAt: null };
    this.emit(kind, sandbox.resource.id);
    return sandbox.resource;
  }

  /** Nothing is enforced. */
  setNetwork(id: string, network: SandboxResource["network"]): SandboxResource["network"] {
    const sandbox = this.sandbox(id);
    sandbox.resource = { ...sandbox.resource, network };
    this.emit("sandbox.updated", sandbox.resource.id);
    return network;
  }

  /** It is a standalone node. */
  move(id: string): never {
    this.sandbox(id);
    throw new SandboxError("no_cluster", {
      message: `cannot move sandbox ${id}: this node is standalone`,
      hint: "start nodes with a shared store",
    });
  }

  /** Images never change here, and all files stay. */
  rebuild(id: string): SandboxResource {
    const sandbox = this.readySandbox(id);
    for (const process of sandbox.processes.values()) process.end(137, "SIGKILL");
    sandbox.processes.clear();
    this.emit("sandbox.rebuilt", sandbox.resource.id);
    return sandbox.resource;
  }

  rollBack(id: string, files: MemoryFileMap, rolledBackTo: SandboxResource["rolledBackTo"]): SandboxResource {
    const sandbox = this.sandbox(id);
    sandbox.rollbacks++;
    sandbox.resource = { ...sandbox.resource, state: "ready", rolledBackTo };
    sandbox.files.clear();
    for (const [path, bytes] of files) sandbox.files.set(path, bytes);
    sandbox.processes.clear();
    for (const listener of [...this.rollbackListeners]) listener(id);
    this.emit("sandbox.rolled_back", sandbox.resource.id);
    return sandbox.resource;
  }

  process(sandboxId: string, id: string): MemoryProcess {
    const found = this.sandbox(sandboxId).processes.get(id);
    if (found !== undefined) return found;
    throw new SandboxError("no_such_process", { message: `sandbox ${sandboxId} has no process ${id}` });
  }

  /** Starts the process unless it exists. */
  start(sandboxId: string, body: StartProcessBody): MemoryProcess {
    const { processes, env, resource } = this.readySandbox(sandboxId);
    const id = body.process ?? crypto.randomUUID();
    const known = processes.get(id);
    if (known !== undefined) return known;
    const program = body.code === undefined ? body : { ...body, language: languageOf(body, resource) };
    const process = new MemoryProcess(id, sandboxId, program);
    processes.set(id, process);
    void process.run(this.handler, env);
    return process;
  }

  /** The replay of an event stream. */
  states(): EventBody[] {
    return [...this.sandboxes.values()].map(({ resource: { id: sandboxId, state, name, provider } }) => ({
      id: this.events.length,
      at: new Date().toISOString(),
      kind: "sandbox.state",
      sandboxId,
      details: { state, name, provider },
    }));
  }

  emit(kind: EventKind, sandboxId: SandboxId): void {
    const event = { id: this.events.length + 1, at: new Date().toISOString(), kind, sandboxId, details: {} };
    this.events.push(event);
    for (const listener of this.listeners) listener({ event });
  }

  fileChanged(sandbox: string, kind: FileEventBody["kind"], path: string): void {
    for (const listener of this.listeners) listener({ file: { sandbox, kind, path, to: null } });
  }
}

function languageOf({ language: given }: StartProcessBody, resource: SandboxResource): string {
  const language = given ?? resource.language ?? undefined;
  const found = language === undefined ? undefined : findLanguage(language);
  if (found !== undefined) return found;
  throw new SandboxError("unknown_language", {
    message: language === undefined ? "no language was given" : `${JSON.stringify(language)} is not a known language`,
    hint: `use one of ${languages.join(", ")}`,
  });
}
