import type { CheckpointResource, NodeResource, SandboxResource } from "@sandpiper/protocol";
import { SandboxError, type SandboxId } from "@sandpiper/protocol";
import type { CheckpointService, NodeDirectory } from "../../service/checkpoint-service.ts";
import type { SandboxService } from "../../service/sandbox-service.ts";

/** Checkpoints of nothing: what is asked, by whom and in which order is what a test of the interface is about. */
export class FakeCheckpoints implements CheckpointService {
  readonly kept: CheckpointResource[] = [];
  readonly #service: SandboxService;

  constructor(service: SandboxService) {
    this.#service = service;
  }

  create: CheckpointService["create"] = async (principal, id, { name = null, ttlMs = null }) => {
    this.#service.open(principal, id);
    const createdAt = new Date();
    const made: CheckpointResource = {
      id: crypto.randomUUID(),
      sandboxId: id as SandboxId,
      name,
      fidelity: "memory",
      createdAt: createdAt.toISOString(),
      expiresAt: ttlMs === null ? null : new Date(createdAt.getTime() + ttlMs).toISOString(),
      sizeBytes: 1000,
      uploadedBytes: 10,
      pausedMs: 1.5,
      isAutomatic: false,
      requirements: { runtime: "fake" },
    };
    this.kept.unshift(made);
    return made;
  };

  list: CheckpointService["list"] = async (principal, id) => {
    this.#service.get(principal, id);
    return this.kept.filter(({ sandboxId }) => sandboxId === id);
  };

  get: CheckpointService["get"] = async (principal, id, checkpoint) => {
    const found = (await this.list(principal, id)).find((each) => each.id === checkpoint || each.name === checkpoint);
    if (found !== undefined) return found;
    const message = `sandbox ${id} has no checkpoint ${checkpoint}`;
    throw new SandboxError("not_found", { reason: "no_such_checkpoint", message });
  };

  remove: CheckpointService["remove"] = async (principal, id, checkpoint) => {
    this.kept.splice(this.kept.indexOf(await this.get(principal, id, checkpoint)), 1);
  };

  fork: CheckpointService["fork"] = async (principal, id, { count = 1, checkpoint, ...own }) => {
    const { provider } = this.#service.get(principal, id);
    if (checkpoint !== undefined) await this.get(principal, id, checkpoint);
    const forks = Array.from({ length: count }, () => this.#service.create(principal, { provider, ...own }));
    return Promise.all(forks);
  };

  pause: CheckpointService["pause"] = async (principal, id) => this.#in("paused", this.#service.get(principal, id));

  resume: CheckpointService["resume"] = async (principal, id) => this.#in("ready", this.#service.get(principal, id));

  rollback: CheckpointService["rollback"] = async (principal, id, { checkpoint = this.kept[0]?.id ?? "none" }) => {
    const resource = this.#service.get(principal, id);
    const { id: found, createdAt } = await this.get(principal, id, checkpoint);
    return { ...resource, rolledBackTo: { checkpoint: found, createdAt, at: new Date().toISOString() } };
  };

  handoff: CheckpointService["handoff"] = async (principal, id, { takeover = false }) => {
    const resource = this.#service.get(principal, id);
    return { ...resource, node: takeover ? "taken over" : "handed over" };
  };

  #in(state: SandboxResource["state"], resource: SandboxResource): SandboxResource {
    return { ...resource, state };
  }
}

/** A node that knows one other. */
export class FakeNodes implements NodeDirectory {
  readonly drains: (number | undefined)[] = [];

  async list(): Promise<readonly NodeResource[]> {
    const at = new Date().toISOString();
    const node = { startedAt: at, seenAt: at, isAlive: true, isDraining: false, sandboxes: 0, version: "1.2.3" };
    return [true, false].map((isThisNode) => ({
      ...node,
      id: crypto.randomUUID(),
      url: "http://127.0.0.1:1",
      isThisNode,
    }));
  }

  drain: NodeDirectory["drain"] = async ({ deadlineMs }) => {
    this.drains.push(deadlineMs);
  };
}
