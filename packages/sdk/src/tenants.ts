import type { TenantResource, UpdateTenantBody } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";
import type { UsageOptions } from "./keys.ts";

/** Tenants and the quotas that all their keys share; needs a key with the scope admin. */
export class Tenants {
  readonly #http: HttpTransport;

  constructor(http: HttpTransport) {
    this.#http = http;
  }

  /** The tenants that have a key or a quota. */
  async list({ usage = false, signal }: UsageOptions = {}): Promise<readonly TenantResource[]> {
    const query = usage ? { usage } : {};
    return (await this.#http.json<{ items: TenantResource[] }>("listTenants", { query, signal })).items;
  }

  /** Changes the given limits of the quota; null removes a limit. */
  async update(tenant: string, changes: UpdateTenantBody, { signal }: CallOptions = {}): Promise<TenantResource> {
    return await this.#http.json("updateTenant", { path: { tenant }, json: changes, signal, isRepeatable: true });
  }
}
