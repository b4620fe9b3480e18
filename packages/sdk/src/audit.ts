import type { AuditEntry, AuditVerification, ListAuditQuery } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpRequest, HttpTransport } from "./http/http-transport.ts";

export interface ListAuditOptions extends ListAuditQuery, CallOptions {}

/** The audit log of the node that answers; needs a key with the scope admin. */
export class Audit {
  readonly #http: HttpTransport;

  constructor(http: HttpTransport) {
    this.#http = http;
  }

  /** Entries after an id, oldest first; at most `limit`, 100 by default. */
  async list({ after, limit, signal }: ListAuditOptions = {}): Promise<readonly AuditEntry[]> {
    const query = { after, limit };
    return (await this.#http.json<{ items: AuditEntry[] }>("listAudit", { query, signal })).items;
  }

  /** Whether the log has every entry, unchanged. */
  async verify({ signal }: CallOptions = {}): Promise<AuditVerification> {
    return await this.#http.json("verifyAudit", { signal });
  }

  /** Whether files that the node shipped, joined oldest first, have every entry from their first on, unchanged. */
  async verifyFile(file: NonNullable<HttpRequest["body"]>, { signal }: CallOptions = {}): Promise<AuditVerification> {
    return await this.#http.json("verifyAuditFile", { body: file, signal });
  }
}
