import type {
  DecideNetworkRequestBody,
  FlowRecord,
  NetworkBody,
  NetworkLog,
  NetworkPolicy,
  NetworkRequest,
  NetworkSuggestion,
  SandboxId,
} from "@sandpiper/protocol";
import type { CallOptions } from "../call-options.ts";
import type { HttpTransport } from "../http/http-transport.ts";
import { followLog } from "./follow-log.ts";

export interface NetworkLogOptions extends CallOptions {
  /** Only denials. */
  readonly denied?: boolean | undefined;
  /** Only what began at or after this time. */
  readonly since?: Date | string | undefined;
}

export interface NetworkLogPageOptions extends NetworkLogOptions {
  /** Only what was recorded, or ended, after the `cursor` of an earlier page; without it, the newest records. */
  readonly after?: number | undefined;
  /** At most this many, up to 1000; 100 by default. */
  readonly limit?: number | undefined;
}

export interface FollowLogOptions extends NetworkLogOptions {
  /** Begin after the `cursor` of a page; by default with the oldest record. */
  readonly after?: number | undefined;
  /** Continue with what is recorded from now on, until the loop is left or the sandbox is destroyed. */
  readonly follow?: boolean | undefined;
}

export interface SuggestOptions extends CallOptions {
  /** Only from what began at or after this time. */
  readonly since?: Date | string | undefined;
}

const PAGE = 1000;

/** What a sandbox may reach, and what it did. */
export class SandboxNetwork {
  readonly #http: HttpTransport;
  readonly #path: { readonly id: SandboxId };

  constructor(id: SandboxId, http: HttpTransport) {
    this.#http = http;
    this.#path = { id };
  }

  /** Which hosts it may reach, with everything that was left out when it was set. */
  async get({ signal }: CallOptions = {}): Promise<NetworkPolicy> {
    return await this.#http.json("getSandboxNetwork", { path: this.#path, signal });
  }

  /** Applies at once: connections that are no longer allowed end. Needs an API key, not the sandbox's token. */
  async set(network: NetworkBody, { signal }: CallOptions = {}): Promise<NetworkPolicy> {
    return await this.#http.json("setSandboxNetwork", { path: this.#path, json: network, signal, isRepeatable: true });
  }

  /**
   * Its connections and DNS queries, oldest first. With `follow`, a connection is yielded when it begins, with `endedAt`
   * null, and again when it has ended.
   */
  async *log(options: FollowLogOptions = {}): AsyncGenerator<FlowRecord, void, undefined> {
    const { follow = false, signal } = options;
    let { after = 0 } = options;
    for (;;) {
      const { items, cursor } = await this.logPage({ ...queryOf(options), after, limit: PAGE, signal });
      yield* items;
      after = cursor;
      // The node may return fewer at a time than requested.
      if (items.length === 0) break;
    }
    if (follow) yield* followLog(this.#http, { path: this.#path, query: queryOf(options), after, signal });
  }

  /** The newest records, or those after a cursor, and how many the node no longer has. */
  async logPage({ after, limit, signal, ...options }: NetworkLogPageOptions = {}): Promise<NetworkLog> {
    const query = { ...queryOf(options), after, limit };
    return await this.#http.json("getNetworkLog", { path: this.#path, query, signal });
  }

  /** The fewest rules that allow what was recorded, also as the text for `network`. */
  async suggest({ since, signal }: SuggestOptions = {}): Promise<NetworkSuggestion> {
    const query = { since: instantOf(since) };
    return await this.#http.json("getNetworkSuggestion", { path: this.#path, query, signal });
  }

  /** Hosts that no rule is about and that wait for `approve` or `deny`, if the network is `ask`. */
  async requests({ signal }: CallOptions = {}): Promise<readonly NetworkRequest[]> {
    const request = { path: this.#path, signal };
    return (await this.#http.json<{ items: NetworkRequest[] }>("listNetworkRequests", request)).items;
  }

  /** Allows the host of a request, by a rule of the sandbox; held connections continue. Needs an API key. */
  async approve(request: string, { signal }: CallOptions = {}): Promise<NetworkPolicy> {
    return await this.#decide(request, { decision: "allow" }, signal);
  }

  /** Denies the host of a request, by a rule of the sandbox. Needs an API key. */
  async deny(request: string, { signal }: CallOptions = {}): Promise<NetworkPolicy> {
    return await this.#decide(request, { decision: "deny" }, signal);
  }

  async #decide(request: string, json: DecideNetworkRequestBody, signal: AbortSignal | undefined) {
    const path = { ...this.#path, request };
    return await this.#http.json<NetworkPolicy>("decideNetworkRequest", { path, json, signal });
  }
}

function queryOf({ denied, since }: NetworkLogOptions) {
  return { denied, since: instantOf(since) };
}

function instantOf(since: Date | string | undefined): string | undefined {
  return since instanceof Date ? since.toISOString() : since;
}
