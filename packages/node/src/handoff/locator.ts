import { type LockView, SandboxError } from "@sandpiper/core";
import { isSandboxId, type SandboxId, type SandboxResource } from "@sandpiper/protocol";
import { mayAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import type { Checkpoints } from "../checkpoints/checkpoints.ts";
import type { Stops } from "../containers/stops.ts";
import type { Ownership } from "../ownership/ownership.ts";
import { recordAtRest, type SavedSandbox } from "../ownership/saved-sandbox.ts";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import type { NodePhase } from "../sandboxes/node-phase.ts";
import type { SandboxAccess } from "../sandboxes/sandbox-access.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import type { HandoffReceiver, Purpose } from "./handoff-receiver.ts";
import type { HandoffSteps } from "./handoff-steps.ts";

/** Another live node that owns a sandbox, and that serves requests from this node. */
export interface NodeLocation {
  readonly kind: "node";
  readonly id: string;
  readonly url: string;
  /** When another node may take over if this one does not renew its lease. */
  readonly leaseEndsInMs?: number | undefined;
}

/** Where a sandbox is, as far as the caller may know. */
export type Location =
  /** This node serves requests for it. `live` is set while it runs. */
  | { readonly kind: "here"; readonly live: LiveSandbox | undefined }
  | NodeLocation
  /** Another live node owns it, which has no URL: a request moves the sandbox here instead of going there. */
  | { readonly kind: "unreachable"; readonly id: string; readonly saved: SavedSandbox }
  /** No node owns it: it is in the store, and the next use restores it. */
  | { readonly kind: "at_rest"; readonly saved: SavedSandbox }
  | { readonly kind: "unknown" };

/** A sandbox that the caller may change. */
export interface FoundSandbox {
  readonly record: SandboxRecord;
  /** The id of the node that owns it; null if it is at rest. */
  readonly owner: string | null;
  /** The runtime that a node needs to run it, if its state names one. */
  readonly runtime?: string | undefined;
}

export interface LocateOptions {
  readonly readOnly: boolean;
}

export interface ClaimOptions extends LocateOptions, Pick<BringOptions, "signal" | "onWaiting"> {
  readonly purpose: Purpose;
  /** Take the sandbox from an unreachable node even if a client is attached to it there; by default only to destroy it. */
  readonly takeover?: boolean | undefined;
  /** The result of `locate`, if the caller has it. */
  readonly location?: Location | undefined;
}

export interface BringOptions {
  /** Take the sandbox even if a client is attached to it on another node. */
  readonly takeover: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called when the sandbox must be restored, which takes a while. */
  readonly onWaiting?: (() => void) | undefined;
}

export interface LocatorOptions {
  readonly registry: SandboxRegistry;
  readonly access: SandboxAccess;
  readonly checkpoints: Checkpoints;
  readonly stops: Pick<Stops, "start">;
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

/** A sandbox that another node owns. */
interface OwnedSandbox {
  readonly saved: SavedSandbox;
  /** Null if other nodes cannot reach the owner. */
  readonly url: string | null;
  /** The handoff's steps so far; by default they begin now. */
  readonly steps?: HandoffSteps | undefined;
}

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

  /** Throws `not_found` unless the caller may change the sandbox. */
  async find(principal: Principal, id: string): Promise<FoundSandbox> {
    const { access, ownership, cluster } = this.#options;
    const location = await this.locate(principal, id, { readOnly: false });
    if (location.kind === "here") {
      const record = access.find(principal, id, { readOnly: false });
      const runtime = (await ownership.peek(record.id))?.requirements["runtime"];
      return { record, owner: ownership.has(record.id) ? (cluster?.nodeId ?? null) : null, runtime };
    }
    const saved = location.kind === "at_rest" ? location.saved : await this.#peek(location, id as SandboxId);
    if (saved === undefined || !mayAccess(principal, "sandbox", { readOnly: false, sandbox: saved.record })) {
      throw noSuchSandbox(id);
    }
    const runtime = saved.requirements["runtime"];
    return { record: saved.record, owner: location.kind === "node" ? location.id : null, runtime };
  }

  async #peek(location: Location, id: SandboxId): Promise<SavedSandbox | undefined> {
    return location.kind === "node" ? await this.#options.ownership.peek(id) : undefined;
  }

  /** Whether this node serves requests for the sandbox, without a request to the store. */
  isHere(id: SandboxId): boolean {
    const { registry } = this.#options;
    return registry.running(id) !== undefined || registry.record(id) !== undefined;
  }

  /** Whether the next use restores a sandbox whose instance has ended. */
  async isRestorable(id: SandboxId): Promise<boolean> {
    const { registry } = this.#options;
    await registry.unlocked(id);
    const record = registry.record(id);
    return record?.endedAt === null && record.stoppedAt === null;
  }

  /** Whether the other node still owns the sandbox. */
  async isOwnedBy(id: SandboxId, nodeId: string): Promise<boolean> {
    const lock = await this.#options.cluster?.leases.read(id);
    return !this.isHere(id) && lock !== undefined && this.#otherOwner(lock)?.id === nodeId;
  }

  /**
   * Makes this node serve the sandbox: waits for a running save or restore, takes over a sandbox at rest or on an unreachable
   * node, and restores a stopped one for use. Resolves to the owner's location if the request can be forwarded there.
   */
  async claim(principal: Principal, id: string, options: ClaimOptions): Promise<Location> {
    const { registry, phase, cluster } = this.#options;
    const { purpose, takeover = purpose === "end", onWaiting } = options;
    let location = options.location ?? (await this.locate(principal, id, options));
    for (;;) {
      if (location.kind === "node" || location.kind === "unknown" || !isSandboxId(id)) return location;
      if (location.kind === "here" && location.live !== undefined) return location;
      if (location.kind === "unreachable") {
        await this.#fetch(principal, { ...location, url: null }, { ...options, takeover });
      } else if (location.kind === "at_rest") {
        if (phase.isDraining) throw draining(id);
        onWaiting?.();
        const { saved } = location;
        await registry.serialize(id, async () => {
          // Another request may have restored it here meanwhile.
          if (!this.isHere(id)) await cluster?.receiver.takeIn(id, saved, purpose);
        });
      } else if (await this.#settleHere(principal, id, options)) {
        return await this.locate(principal, id, options);
      }
      await registry.unlocked(id);
      location = await this.locate(principal, id, options);
    }
  }

  /** Runs the sandbox on this node, regardless of its location and even if it was paused or stopped. */
  async bring(principal: Principal, id: string, options: BringOptions): Promise<SandboxResource> {
    const { registry, ownership, stops, cluster } = this.#options;
    if (registry.running(id as SandboxId) !== undefined) return await stops.start(principal, id);
    const claim = { ...options, purpose: "use", readOnly: false } as const;
    const steps = cluster?.receiver.measure();
    const location = await this.claim(principal, id, claim);
    if (location.kind === "node") {
      const saved = await ownership.peek(id as SandboxId);
      if (saved === undefined) throw noSuchSandbox(id);
      await this.#fetch(principal, { saved, url: location.url, steps }, claim);
    }
    return await stops.start(principal, id);
  }

  /** Takes the sandbox from the node that owns it. */
  async #fetch(
    principal: Principal,
    { saved, url, steps }: OwnedSandbox,
    { readOnly, purpose, takeover, signal, onWaiting }: ClaimOptions & { readonly takeover: boolean },
  ): Promise<void> {
    const { registry, phase, cluster } = this.#options;
    const { id } = saved.record;
    if (phase.isDraining) throw draining(id);
    if (!mayAccess(principal, "sandbox", { readOnly, sandbox: saved.record })) throw noSuchSandbox(id);
    onWaiting?.();
    await registry.serialize(id, async () => {
      // Another request may have brought it here meanwhile.
      if (cluster === undefined || this.isHere(id)) return;
      const { receiver } = cluster;
      await receiver.fetch(saved, { url, purpose, takeover, signal, steps: steps ?? receiver.measure() });
    });
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
    // Its recovery may have failed when it failed itself, for example on a full disk.
    if (isVisible && record.state === "failed" && purpose !== "end") await checkpoints.recover(id);
    if (isVisible && (record.state === "stopped" || record.state === "paused")) onWaiting?.();
    if (isVisible && purpose !== "end") await checkpoints.restoreStopped(id);
    // Waking a paused sandbox uses memory, so it requires the right to use the sandbox.
    const mayWake = mayAccess(principal, "sandbox", { readOnly: false, sandbox: record });
    if (mayWake && purpose === "use") await checkpoints.wake(id);
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
    const owner = this.#otherOwner(lock);
    if (typeof owner?.url === "string") {
      return { kind: "node", id: owner.id, url: owner.url, leaseEndsInMs: lock.liveForMs };
    }
    const saved = await this.#options.ownership.peek(id);
    // The sandbox may have moved here meanwhile.
    if (this.isHere(id)) return await this.locate(principal, id, { readOnly: true });
    const isVisible = saved && mayAccess(principal, "sandbox", { readOnly: true, sandbox: saved.record });
    if (!isVisible) return UNKNOWN;
    if (owner !== undefined) return { kind: "unreachable", id: owner.id, saved };
    return { kind: "at_rest", saved: { ...saved, record: recordAtRest(saved.record) } };
  }

  /** The other node that holds a lock, if that node is alive. */
  #otherOwner({ isLive, owner, url }: LockView): { readonly id: string; readonly url: string | null } | undefined {
    if (!isLive || owner === null || owner === this.#options.cluster?.nodeId) return undefined;
    return { id: owner, url };
  }
}

function draining(id: string): SandboxError {
  return new SandboxError("sandbox_moved", {
    message: `cannot restore sandbox ${id} on this node: it is draining`,
    hint: "send the request to another node, which then restores it",
  });
}
