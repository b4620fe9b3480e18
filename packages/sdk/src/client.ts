import type { EventBody, Health, SandboxId, SandboxResource } from "@sandpiper/protocol";
import { Audit } from "./audit.ts";
import { Caches } from "./caches.ts";
import type { CallOptions } from "./call-options.ts";
import { type ClientOptions, parseClientOptions } from "./client-options.ts";
import { type EventStream, type EventsOptions, openEvents } from "./event-stream.ts";
import { CookieJar } from "./http/cookie-jar.ts";
import { findRefusal } from "./http/find-refusal.ts";
import { HttpTransport } from "./http/http-transport.ts";
import { Images } from "./images.ts";
import { Keys } from "./keys.ts";
import { Machines } from "./machines.ts";
import { Nodes } from "./nodes.ts";
import { Pools } from "./pools.ts";
import { SandboxHandle } from "./sandbox-handle.ts";
import { Sandboxes } from "./sandboxes.ts";
import { Secrets } from "./secrets.ts";
import { Connection } from "./socket/connection.ts";
import { Tenants } from "./tenants.ts";
import { Volumes } from "./volumes.ts";
import { Webhooks } from "./webhooks.ts";

export interface PastEventsOptions extends EventsOptions {
  readonly sandbox?: SandboxId | undefined;
  readonly limit?: number | undefined;
}

/** A client of a node. All its sandboxes share one connection, which is open while it is used. */
export class Client implements AsyncDisposable {
  /** The node's URL. */
  readonly url: string;
  readonly sandboxes: Sandboxes;
  readonly images: Images;
  readonly caches: Caches;
  readonly volumes: Volumes;
  readonly machines: Machines;
  readonly nodes: Nodes;
  readonly pools: Pools;
  readonly keys: Keys;
  readonly secrets: Secrets;
  readonly tenants: Tenants;
  readonly webhooks: Webhooks;
  readonly audit: Audit;
  readonly #http: HttpTransport;
  readonly #connection: Connection;

  constructor(options: ClientOptions = {}) {
    const spec = parseClientOptions(options);
    const cookies = new CookieJar();
    const http = new HttpTransport(spec, cookies);
    const connection = new Connection(spec, { cookies, explain: () => findRefusal(http) });
    this.url = spec.baseUrl;
    this.#http = http;
    this.#connection = connection;
    this.images = new Images(http);
    this.caches = new Caches(http);
    this.volumes = new Volumes(http);
    this.machines = new Machines(http);
    const handle = (info: SandboxResource) => new SandboxHandle(info, { http, connection });
    this.sandboxes = new Sandboxes(http, { handle, images: this.images });
    this.nodes = new Nodes(http);
    this.pools = new Pools(http);
    this.keys = new Keys(http);
    this.secrets = new Secrets(http);
    this.tenants = new Tenants(http);
    this.webhooks = new Webhooks(http);
    this.audit = new Audit(http);
  }

  /** Past and new events of the node that the key may see. */
  events(options: EventsOptions & { readonly sandbox?: SandboxId | undefined } = {}): EventStream {
    return openEvents(this.#connection, options);
  }

  /** Past events after an id, oldest first; at most `limit`, 100 by default. With `replay`, the states of all sandboxes. */
  async pastEvents({ after, replay, sandbox, limit, signal }: PastEventsOptions = {}): Promise<readonly EventBody[]> {
    const query = { after, replay, sandbox, limit };
    return (await this.#http.json<{ items: EventBody[] }>("listEvents", { query, signal })).items;
  }

  /** Asks once, without retries, to find out whether a node answers. */
  async health({ signal }: CallOptions = {}): Promise<Health> {
    return await this.#http.json("getHealth", { signal, isRepeatable: false });
  }

  /** Ends all operations on its connection. Processes and sandboxes keep running. */
  close(): void {
    this.#connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
