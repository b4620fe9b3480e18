import { type LockView, SandboxError } from "@sandpiper/core";
import { isSandboxId, type SandboxId, type SandboxResource } from "@sandpiper/protocol";
import { mayAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import type { Checkpoints } from "../checkpoints/checkpoints.ts";
import type { Ownership } from "../ownership/ownership.ts";
import { recordAtRest, type SavedSandbox } from "../ownership/saved-sandbox.ts";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import type { NodePhase } from "../sandboxes/node-phase.ts";
import type { SandboxAccess } from "../sandboxes/sandbox-access.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import type { HandoffReceiver, Purpose } from "./handoff-receiver.ts";

/** Another live node that owns a sandbox. */
export interface NodeLocation {
  readonly kind: "node";
  readonly id: string;
  readonly url: string;
}

/** Where a sandbox is, as far as the caller may know. */
export type Location =
  /** This node serves requests for it. `live` is set while it runs. */
  | { readonly kind: "here"; readonly live: LiveSandbox | undefined }
  | NodeLocation
  /** No node owns it: it is in the store, and the next use restores it. */
  | { readonly kind: "at_rest"; readonly saved: SavedSandbox }
  | { readonly kind: "unknown" };

export interface LocateOptions {
  readonly readOnly: boolean;
}

export interface ClaimOptions extends LocateOptions {
  readonly purpose: Purpose;
  /** The result of `locate`, if the caller has it. */
  readonly location?: Location | undefined;
  /** Called when the claim must restore the sandbox, which takes a while. */
  readonly onWaiting?: (() => void) | undefined;
}

export interface BringOptions {
  /** Take the sandbox even if a client is attached to it on another node. */
  readonly takeover: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly onWaiting?: (() => void) | undefined;
}

export interface LocatorOptions {
  readonly registry: SandboxRegistry;
  readonly access: SandboxAccess;
  readonly checkpoints: Checkpoints;
  readonly ownership: Ownership;
  readonly phase: NodePhase;
  /** Undefined on a standalone node. */
  readonly cluster?: LocatorCluster | undefined;
}

interface LocatorCluster {
  readonly nodeId: string;
  readonly leases: { read(id: SandboxId): Promise<LockView | undefined> };
  readonly receiver: HandoffReceiver;
}

const UNKNOWN: Location = { kind: "unknown" };
const HERE: Location = { kind: "here", live: undefined };
/** A sandbox in one of these states has no operation in progress while its mutex is free. */
const RESTING: readonly SandboxRecord["state"][] = ["ready", "stopped", "paused", "restoring"];

/** The only component that knows where a sandbox is. REST, sockets, sessions and MCP use it. */
export class Locator {
  readonly #options: LocatorOptions;

  constructor(options: LocatorOptions) {
    this.#options = options;
  }

  /** Changes nothing, and returns synchronously for a sandbox that runs here. */
  locate(principal: Principal, id: string, options: LocateOptions): Location | Promise<Location> {
    const { access, registry, cluster } = this.#options;
    const live = access.running(principal, id, options);
    if (live !== undefined) return { kind: "here", live };
    if (!isSandboxId(id)) return UNKNOWN;
    if (registry.record(id) !== undefined) return HERE;
    return cluster === undefined ? UNKNOWN : this.#locateInStore(principal, id, cluster);
  }

  /** Whether this node serves requests for the sandbox, without a request to the store. */
  isHere(id: SandboxId): boolean {
    const { registry } = this.#options;
    return registry.running(id) !== undefined || registry.record(id) !== undefined;
  }

  /** Whether the other node still owns the sandbox. */
  async isOwnedBy(id: SandboxId, nodeId: string): Promise<boolean> {
    const lock = await this.#options.cluster?.leases.read(id);
    return !this.isHere(id) && lock !== undefined && this.#owner(lock)?.id === nodeId;
  }

  /**
   * Makes this node serve the sandbox: waits for a running save or restore, takes over a sandbox at rest, and restores a stopped
   * one for use. Resolves to the owner's location if another node owns the sandbox.
   */
  async claim(principal: Principal, id: string, options: ClaimOptions): Promise<Location> {
    const { registry, phase, cluster } = this.#options;
    const { purpose, onWaiting } = options;
    let location = options.location ?? (await this.locate(principal, id, options));
    for (;;) {
      if (location.kind === "node" || location.kind === "unknown" || !isSandboxId(id)) return location;
      if (location.kind === "here" && location.live !== undefined) return location;
      if (location.kind === "at_rest") {
        if (phase.isDraining) throw draining(id);
        onWaiting?.();
        const { saved } = location;
        await registry.serialize(id, async () => cluster?.receiver.takeIn(id, saved, purpose));
      } else if (await this.#settleHere(principal, id, options)) {
        return await this.locate(principal, id, options);
      }
      await registry.unlocked(id);
      location = await this.locate(principal, id, options);
    }
  }

  /** Runs the sandbox on this node, regardless of its location and even if it was paused. */
  async bring(principal: Principal, id: string, options: BringOptions): Promise<SandboxResource> {
    const { registry, ownership, checkpoints, phase, cluster } = this.#options;
    if (registry.running(id as SandboxId) !== undefined) return await checkpoints.resume(principal, id);
    const { takeover, signal, onWaiting } = options;
    const steps = cluster?.receiver.measure();
    const location = await this.claim(principal, id, { purpose: "use", readOnly: false, onWaiting });
    if (location.kind === "node") {
      if (phase.isDraining) throw draining(id);
      const saved = await ownership.peek(id as SandboxId);
      if (saved === undefined || !mayAccess(principal, "sandbox", { readOnly: false, sandbox: saved.record })) {
        throw noSuchSandbox(id);
      }
      onWaiting?.();
      await registry.serialize(id as SandboxId, async () => {
        if (steps !== undefined) await cluster?.receiver.fetch(saved, location.url, { takeover, signal, steps });
      });
    }
    return await checkpoints.resume(principal, id);
  }

  /** Handles a sandbox with a record on this node. Resolves to false if the sandbox is elsewhere. */
  async #settleHere(principal: Principal, id: SandboxId, { purpose, onWaiting }: ClaimOptions): Promise<boolean> {
    const { registry, checkpoints, cluster } = this.#options;
    await registry.unlocked(id);
    const record = registry.record(id);
    if (registry.running(id) !== undefined || record === undefined) return registry.running(id) !== undefined;
    if (cluster !== undefined && this.#isAbandoned(record, purpose)) {
      const lock = await cluster.leases.read(id);
      // No node owns an ended sandbox without a lock, so this node still shows its record.
      if (lock === undefined && record.endedAt !== null) return true;
      await registry.serialize(id, () => cluster.receiver.forget(record));
      return false;
    }
    const isVisible = mayAccess(principal, "sandbox", { readOnly: true, sandbox: record });
    if (isVisible && (record.state === "stopped" || record.state === "paused")) onWaiting?.();
    if (isVisible && record.state === "stopped" && purpose === "use") await checkpoints.restoreStopped(id);
    return true;
  }

  /** Whether this node has a record but no lease: then only the store knows the sandbox's current state. */
  #isAbandoned({ id, state, endedAt }: SandboxRecord, purpose: Purpose): boolean {
    if (this.#options.ownership.has(id)) return false;
    // A failed sandbox's record is shown until the sandbox is destroyed.
    return endedAt === null ? RESTING.includes(state) : state === "failed" && purpose === "end";
  }

  async #locateInStore(principal: Principal, id: SandboxId, { leases }: LocatorCluster): Promise<Location> {
    const lock = await leases.read(id);
    if (lock === undefined) return UNKNOWN;
    const owner = this.#owner(lock);
    if (owner !== undefined) return owner;
    const saved = await this.#options.ownership.peek(id);
    // The sandbox may have moved here meanwhile.
    if (this.isHere(id)) return await this.locate(principal, id, { readOnly: true });
    const isVisible = saved && mayAccess(principal, "sandbox", { readOnly: true, sandbox: saved.record });
    return isVisible ? { kind: "at_rest", saved: { ...saved, record: recordAtRest(saved.record) } } : UNKNOWN;
  }

  /** The other node that holds a lock, if that node is alive. */
  #owner({ isLive, owner, url }: LockView): NodeLocation | undefined {
    if (!isLive || owner === null || owner === this.#options.cluster?.nodeId || url === null) return undefined;
    return { kind: "node", id: owner, url };
  }
}

function draining(id: string): SandboxError {
  return new SandboxError("sandbox_moved", {
    message: `cannot restore sandbox ${id} on this node: it is draining`,
    hint: "send the request to another node, which then restores it",
  });
}
