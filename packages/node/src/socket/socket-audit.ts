import type { SandboxError } from "@sandpiper/core";
import { errorCodes, type OperationId, routes } from "@sandpiper/protocol";
import type { AuditSink } from "../audit/audit-trail.ts";
import type { Principal } from "../auth/principal.ts";

export interface SocketAuditOptions {
  readonly sink: AuditSink | undefined;
  /** Undefined for an anonymous caller. */
  readonly principal: Principal | undefined;
  readonly requestId: string;
  readonly address: string | undefined;
}

/** Records changes and refusals of a socket in the audit log, under the names of the same operations in REST. */
export class SocketAudit {
  readonly #options: SocketAuditOptions;

  constructor(options: SocketAuditOptions) {
    this.#options = options;
  }

  /** Resolves once the entry is written; answers wait for it. Never rejects for a log that cannot be written. */
  async note(operation: OperationId, sandboxId: string | null, error?: SandboxError): Promise<void> {
    const { sink, ...caller } = this.#options;
    const { readOnly, status: success } = routes[operation];
    const status = error === undefined ? success : errorCodes[error.code].httpStatus;
    if (readOnly && status !== 401 && status !== 403) return;
    await sink?.note({ ...caller, operation, sandboxId, status });
  }
}
