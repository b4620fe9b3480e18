import { type Clock, SandboxError } from "@sandpiper/core";
import type { NetworkRequest, SandboxId } from "@sandpiper/protocol";
import type { FlowEvents } from "./flow-events.ts";

/** Beyond it, new hosts of a sandbox are denied at once. */
const MAX_REQUESTS = 64;

export type ApprovalDecision = "allow" | "deny";

/** A connection to a host that no rule of the sandbox is about. */
export interface AskedConnection extends Pick<NetworkRequest, "name" | "address" | "port" | "pid" | "program"> {
  readonly sandboxId: SandboxId;
  readonly tenant: string;
}

export interface FlowApprovalsOptions {
  readonly events: Pick<FlowEvents, "emit">;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly randomUuid?: (() => string) | undefined;
}

interface Pending {
  readonly request: NetworkRequest;
  readonly decision: PromiseWithResolvers<ApprovalDecision>;
  readonly cancel: () => void;
}

/**
 * Holds connections to new hosts until someone decides. A request outlives the connection that caused it, so that a decision
 * also helps a program that has given up and tries again; only time ends it.
 */
export class FlowApprovals implements Disposable {
  readonly #options: FlowApprovalsOptions;
  /** By sandbox, and then by host and port. */
  readonly #pending = new Map<SandboxId, Map<string, Pending>>();

  constructor(options: FlowApprovalsOptions) {
    this.#options = options;
  }

  /** Resolves with a denial if nobody decides in time, or the signal aborts. */
  async decide(connection: AskedConnection, signal: AbortSignal): Promise<ApprovalDecision> {
    if (signal.aborted) return "deny";
    const pending = this.#find(connection) ?? this.#ask(connection);
    if (pending === undefined) return "deny";
    const aborted = Promise.withResolvers<ApprovalDecision>();
    const abort = () => aborted.resolve("deny");
    signal.addEventListener("abort", abort, { once: true });
    try {
      return await Promise.race([pending.decision.promise, aborted.promise]);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** Oldest first. */
  list(sandboxId: SandboxId): readonly NetworkRequest[] {
    return [...(this.#pending.get(sandboxId)?.values() ?? [])].map(({ request }) => request);
  }

  /** Throws `not_found`. */
  get(sandboxId: SandboxId, id: string): NetworkRequest {
    const found = this.list(sandboxId).find((request) => request.id === id);
    if (found !== undefined) return found;
    throw new SandboxError("no_such_network_request", {
      message: `sandbox ${sandboxId} has no network request ${JSON.stringify(id.slice(0, 64))}: it was decided, or timed out`,
    });
  }

  /** Ends a request: its connections continue, or are closed. */
  settle(sandboxId: SandboxId, id: string, decision: ApprovalDecision): void {
    const requests = this.#pending.get(sandboxId);
    for (const [host, pending] of requests ?? []) {
      if (pending.request.id !== id) continue;
      pending.cancel();
      requests?.delete(host);
      if (requests?.size === 0) this.#pending.delete(sandboxId);
      pending.decision.resolve(decision);
    }
  }

  /** Denies everything of a sandbox that leaves this node. */
  end(sandboxId: SandboxId): void {
    for (const { id } of this.list(sandboxId)) this.settle(sandboxId, id, "deny");
  }

  [Symbol.dispose](): void {
    for (const sandboxId of [...this.#pending.keys()]) this.end(sandboxId);
  }

  #find(connection: AskedConnection): Pending | undefined {
    return this.#pending.get(connection.sandboxId)?.get(hostOf(connection));
  }

  #ask(connection: AskedConnection): Pending | undefined {
    const { events, clock, timeoutMs, randomUuid = () => crypto.randomUUID() } = this.#options;
    const { sandboxId, tenant, name, address, port, pid, program } = connection;
    const requests = this.#pending.get(sandboxId) ?? new Map<string, Pending>();
    if (requests.size >= MAX_REQUESTS) return undefined;
    const now = clock.now();
    const id = randomUuid();
    const expiresAt = new Date(now.getTime() + timeoutMs).toISOString();
    const request = { id, sandboxId, name, address, port, pid, program, at: now.toISOString(), expiresAt };
    const cancel = clock.schedule(timeoutMs, () => this.settle(sandboxId, id, "deny"));
    const pending = { request, decision: Promise.withResolvers<ApprovalDecision>(), cancel };
    requests.set(hostOf(connection), pending);
    this.#pending.set(sandboxId, requests);
    const details = { request: id, name, address, port, pid, program, expiresAt };
    events.emit({ kind: "network.asked", sandboxId, tenant, target: hostOf(connection), details });
    return pending;
  }
}

function hostOf({ name, address, port }: AskedConnection): string {
  return `${name ?? address} ${port}`;
}
