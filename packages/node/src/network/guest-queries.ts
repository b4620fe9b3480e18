import type { DnsOutcome, GuestQuery } from "@sandpiper/core";
import { type FlowReason, type NetworkLimits, parseHostName, ruleText } from "@sandpiper/protocol";
import type { CompiledPolicy } from "./compiled-policy.ts";
import type { EgressParts } from "./egress-parts.ts";
import type { FlowRecords } from "./flow-records.ts";
import { TokenBucket } from "./token-bucket.ts";

export interface GuestQueriesOptions {
  readonly parts: EgressParts;
  readonly policy: () => CompiledPolicy;
  readonly records: FlowRecords;
  readonly limits: NetworkLimits;
}

/** Names that the node resolves for one sandbox at a time: a sandbox must not occupy the resolver. */
const MAX_RUNNING = 64;

/** Answers the DNS queries of a sandbox. A name that its policy does not allow is never resolved. */
export class GuestQueries {
  readonly #options: GuestQueriesOptions;
  readonly #rate: TokenBucket;
  #running = 0;

  constructor(options: GuestQueriesOptions) {
    this.#options = options;
    this.#rate = new TokenBucket(options.limits.maxQueriesPerSecond, options.parts.clock);
  }

  setLimits({ maxQueriesPerSecond }: NetworkLimits): void {
    this.#rate.setLimit(maxQueriesPerSecond);
  }

  /** Answers and records a query. */
  serve(query: GuestQuery): void {
    const answer = this.#answer(query);
    if (!(answer instanceof Promise)) {
      this.#finish(query, answer);
      return;
    }
    this.#running++;
    answer.then((resolved) => this.#finish(query, resolved)).finally(() => this.#running--);
  }

  #answer({ name: text, type }: GuestQuery): Answer | Promise<Answer> {
    if (!this.#rate.tryTake() || this.#running >= MAX_RUNNING)
      return { decision: "denied", outcome: "refused", reason: "query_rate_limit" };
    const name = parseHostName(text);
    if (name === undefined) return { decision: "denied", outcome: "name_error", reason: "invalid_name" };
    const { action, rule } = this.#options.policy().decideQuery(name);
    const suggestion = ruleText({ allow: name });
    if (action === "deny" && rule === "default")
      return { decision: "denied", outcome: "name_error", reason: "default", rule, suggestion };
    if (action === "deny") return { decision: "denied", outcome: "name_error", reason: "rule", rule, suggestion };
    // Only connections can be approved, and before that nothing outside learns the name.
    if (action === "ask") return { decision: "allowed", outcome: "stand_in", rule };
    return type === "A" ? this.#resolve(name, rule) : { decision: "allowed", outcome: "empty", rule };
  }

  async #resolve(name: string, rule: string): Promise<Answer> {
    const { resolver, reachable } = this.#options.parts;
    const resolution = await resolver.resolve(name);
    const allowed = { decision: "allowed", rule } as const;
    if (resolution.kind === "not_found") return { ...allowed, outcome: "name_error", reason: "name_not_found" };
    if (resolution.kind === "failed") return { ...allowed, outcome: "server_failure", reason: "resolution_failed" };
    if (resolution.kind === "empty") return { ...allowed, outcome: "empty" };
    if (resolution.addresses.some((address) => reachable.isReachable(address, 0)))
      return { ...allowed, outcome: "stand_in" };
    return { decision: "denied", outcome: "name_error", reason: "special_address" };
  }

  #finish({ name, type, answer }: GuestQuery, { outcome, ...fields }: Answer): void {
    answer(outcome);
    this.#options.records.record({ kind: "query", name, queryType: type, ...fields });
  }
}

interface Answer {
  readonly decision: "allowed" | "denied";
  readonly outcome: DnsOutcome;
  readonly rule?: string;
  readonly reason?: FlowReason;
  readonly suggestion?: string;
}
