import type {
  CreateSandboxBody,
  ListSandboxesQuery,
  SandboxId,
  SandboxPage,
  SandboxResource,
  UpdateSandboxBody,
} from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { LiveSandbox } from "./live-sandbox.ts";

export interface CreateOptions {
  readonly idempotencyKey?: string | undefined;
  /** The caller has gone: a creation under way is undone. */
  readonly signal?: AbortSignal | undefined;
  /** Told the id before the instance boots. */
  readonly onId?: ((id: SandboxId, token: string) => void) | undefined;
}

export interface OpenOptions {
  /** Only to look, which a key that may only look may do. */
  readonly readOnly?: boolean | undefined;
}

/**
 * Sandboxes as callers see them. Everything is checked before it has any effect; what belongs to another tenant does not
 * exist (`not_found`).
 */
export interface SandboxService {
  create(principal: Principal, body: CreateSandboxBody, options?: CreateOptions): Promise<SandboxResource>;
  get(principal: Principal, id: string): SandboxResource;
  list(principal: Principal, query: ListSandboxesQuery): SandboxPage;
  /** What a principal who may see the sandbox sees of it. `node`: that has it; this one unless given. */
  resource(principal: Principal, record: SandboxRecord, node?: string | null): SandboxResource;
  update(principal: Principal, id: string, body: UpdateSandboxBody): Promise<SandboxResource>;
  remove(principal: Principal, id: string): Promise<void>;
  /** A sandbox that is ready to be used; throws `not_found`, or why it cannot be used. */
  open(principal: Principal, id: string, options?: OpenOptions): LiveSandbox;
}
