import {
  type CreateSandboxBody,
  createSandboxId,
  type EventBody,
  type EventKind,
  type FileEventBody,
  SandboxError,
  type SandboxId,
  type SandboxResource,
  type StartProcessBody,
} from "@sandpiper/protocol";
import { type ExecHandler, MemoryProcess } from "./memory-process.ts";

export interface MemorySandbox {
  resource: SandboxResource;
  readonly env: Readonly<Record<string, string>>;
  /** By absolute path. */
  readonly files: Map<string, Uint8Array<ArrayBuffer>>;
  readonly processes: Map<string, MemoryProcess>;
}

/** What the in-memory server knows, and the rules of how it changes. */
export class MemoryState {
  readonly apiKey = "memory-key";
  readonly sandboxes = new Map<string, MemorySandbox>();
  readonly events: EventBody[] = [];
  readonly listeners = new Set<(change: { event?: EventBody; file?: FileEventBody & { sandbox: string } }) => void>();
  handler: ExecHandler = ({ command, argv }) => ({
    stderr: `no answer was scripted for ${JSON.stringify(command ?? argv)}; script one with server.onExec`,
    exitCode: 127,
  });
  readonly #idempotency = new Map<string, string>();

  create(body: CreateSandboxBody, idempotencyKey: string | null): SandboxResource {
    const known = idempotencyKey === null ? undefined : this.#idempotency.get(idempotencyKey);
    if (known !== undefined) return this.sandbox(known).resource;
    const id = createSandboxId();
    if (idempotencyKey !== null) this.#idempotency.set(idempotencyKey, id);
    const { env = {}, ...rest } = body;
    this.sandboxes.set(id, { resource: newResource(id, rest), env, files: new Map(), processes: new Map() });
    this.tell("sandbox.created", id);
    this.tell("sandbox.ready", id);
    return this.sandbox(id).resource;
  }

  sandbox(id: string): MemorySandbox {
    const found = this.sandboxes.get(id);
    if (found !== undefined) return found;
    throw new SandboxError("not_found", { reason: "no_such_sandbox", message: `there is no sandbox ${id}` });
  }

  destroy(id: string): void {
    const { processes, resource } = this.sandbox(id);
    this.sandboxes.delete(id);
    for (const process of processes.values()) process.end(137, "SIGKILL");
    this.tell("sandbox.destroyed", resource.id);
  }

  process(sandboxId: string, id: string): MemoryProcess {
    const found = this.sandbox(sandboxId).processes.get(id);
    if (found !== undefined) return found;
    throw new SandboxError("not_found", {
      reason: "no_such_process",
      message: `sandbox ${sandboxId} has no process ${id}`,
    });
  }

  /** Starts it unless it is there. */
  start(sandboxId: string, body: StartProcessBody): MemoryProcess {
    const { processes, env } = this.sandbox(sandboxId);
    const id = body.process ?? crypto.randomUUID();
    const known = processes.get(id);
    if (known !== undefined) return known;
    const process = new MemoryProcess(id, sandboxId, body);
    processes.set(id, process);
    void process.run(this.handler, env);
    return process;
  }

  tell(kind: EventKind, sandboxId: SandboxId): void {
    const event = { id: this.events.length + 1, at: new Date().toISOString(), kind, sandboxId, details: {} };
    this.events.push(event);
    for (const listener of this.listeners) listener({ event });
  }

  fileChanged(sandbox: string, kind: FileEventBody["kind"], path: string): void {
    for (const listener of this.listeners) listener({ file: { sandbox, kind, path, to: null } });
  }
}

function newResource(id: SandboxId, body: Omit<CreateSandboxBody, "env">): SandboxResource {
  return {
    id,
    state: "ready",
    provider: "mock",
    name: null,
    labels: {},
    metadata: {},
    createdAt: new Date().toISOString(),
    token: `spt_${id}_memory`,
    image: "host",
    memoryMib: 256,
    vcpuCount: 2,
    diskMib: 1024,
    maxProcesses: 256,
    language: null,
    cwd: null,
    user: null,
    timeoutMs: null,
    ttlMs: null,
    idleTimeoutMs: null,
    idleExcept: [],
    onExpiry: "destroy",
    expiresAt: null,
    failure: null,
    ...(body as Partial<SandboxResource>),
  };
}
