import type { SandboxError } from "@sandpiper/core";
import { errorCodes, type OperationId, routes } from "@sandpiper/protocol";
import type { AuditSink } from "../audit/audit-trail.ts";
import type { Principal } from "../auth/principal.ts";

/** What a stream does, by its name in the audit log. */
export type SocketOperation = OperationId | "connectPort";

/** A TCP connection exists on sockets only, and may do anything to the server in the sandbox. */
const CONNECT_PORT = { readOnly: false, status: 200 };

/** Whether a read-only key may do it, and its status in the audit log. */
export function rightsOf(operation: SocketOperation): { readonly readOnly: boolean; readonly status: number } {
  return operation === "connectPort" ? CONNECT_PORT : routes[operation];
}

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
  async note(operation: SocketOperation, sandboxId: string | null, error?: SandboxError): Promise<void> {
    const { sink, ...caller } = this.#options;
    const { readOnly, status: success } = rightsOf(operation);
    const status = error === undefined ? success : errorCodes[error.code].httpStatus;
    if (readOnly && status !== 401 && status !== 403) return;
    await sink?.note({ ...caller, operation, sandboxId, status });
  }
}
