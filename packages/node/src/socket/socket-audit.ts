import type { SandboxError } from "@sandpiper/core";
import { type AuditEntry, errorCodes, type OperationId, routes } from "@sandpiper/protocol";
import { actorOf, type Principal } from "../auth/principal.ts";

/** Where entries go. */
export interface AuditSink {
  add(entry: Omit<AuditEntry, "id" | "at">): unknown;
}

export interface SocketAuditOptions {
  readonly sink: AuditSink | undefined;
  /** Undefined: nobody that is known. */
  readonly principal: Principal | undefined;
  readonly requestId: string;
}

/** Keeps what is done through sockets under the names that the same has in REST: what changes something, or was not let. */
export class SocketAudit {
  readonly #options: SocketAuditOptions;

  constructor(options: SocketAuditOptions) {
    this.#options = options;
  }

  note(operation: OperationId, sandboxId: string | null, error?: SandboxError): void {
    const { sink, principal, requestId } = this.#options;
    const { readOnly, status: success } = routes[operation];
    const status = error === undefined ? success : errorCodes[error.code].httpStatus;
    if (readOnly && status !== 401 && status !== 403) return;
    const actor = principal === undefined ? null : actorOf(principal);
    sink?.add({ actor, tenant: principal?.tenant ?? null, operation, sandboxId, status, requestId });
  }
}
