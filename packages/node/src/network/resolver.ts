import { Resolver as DnsResolver } from "node:dns";
import type { Clock } from "@sandpiper/core";

export interface ResolverOptions {
  /** Addresses of DNS servers, with or without a port; empty for those of the system. */
  readonly servers: readonly string[];
  readonly clock: Clock;
  readonly hasIpv6: () => boolean;
}

export type Resolution =
  /** IPv6 first, in the order of the servers' answers. */
  | { readonly kind: "addresses"; readonly addresses: readonly string[] }
  | { readonly kind: "not_found" }
  /** The name exists, without addresses. */
  | { readonly kind: "empty" }
  | { readonly kind: "failed" };

/** One kind of record of a name. */
interface Answer {
  readonly kind: Resolution["kind"];
  readonly addresses: readonly string[];
  readonly ttlSeconds: number;
}

/** c-ares doubles it for the second try. */
const TRY_MS = 2000;
const TRIES = 2;
/** How long one kind of record may keep the other waiting. */
const LATE_ANSWER_MS = 50;
const MIN_TTL_MS = 1000;
const MAX_TTL_MS = 300_000;
const NEGATIVE_TTL_MS = 2000;
const MAX_CACHED = 20_000;
const MAX_ADDRESSES = 16;

/** Resolves names through DNS only: neither the hosts file nor the thread pool of the system's resolver. */
export class Resolver {
  readonly #options: ResolverOptions;
  readonly #dns = new DnsResolver({ timeout: TRY_MS, tries: TRIES });
  /** The least recently resolved first. */
  readonly #cache = new Map<string, { readonly resolution: Resolution; readonly untilMs: number }>();
  readonly #running = new Map<string, Promise<Resolution>>();

  constructor(options: ResolverOptions) {
    this.#options = options;
    if (options.servers.length > 0) this.#dns.setServers([...options.servers]);
  }

  /** `name` is as `parseHostName` returns it. Never rejects. */
  resolve(name: string): Resolution | Promise<Resolution> {
    const cached = this.#cache.get(name);
    if (cached !== undefined && cached.untilMs > this.#options.clock.monotonicMs()) return cached.resolution;
    const running = this.#running.get(name) ?? this.#resolve(name).finally(() => this.#running.delete(name));
    this.#running.set(name, running);
    return running;
  }

  /** Ends running queries. */
  close(): void {
    this.#dns.cancel();
  }

  async #resolve(name: string): Promise<Resolution> {
    const { clock, hasIpv6 } = this.#options;
    const answers = hasIpv6()
      ? await bothAnswers([this.#ask("resolve6", name), this.#ask("resolve4", name)], clock)
      : [await this.#ask("resolve4", name)];
    const resolution = combined(answers);
    const ttlMs = Math.min(...answers.map(({ ttlSeconds }) => ttlSeconds * 1000));
    const keptMs =
      resolution.kind === "addresses" ? Math.min(Math.max(ttlMs, MIN_TTL_MS), MAX_TTL_MS) : NEGATIVE_TTL_MS;
    this.#cache.delete(name);
    // A failure is not kept: the next attempt may succeed.
    if (resolution.kind !== "failed") this.#cache.set(name, { resolution, untilMs: clock.monotonicMs() + keptMs });
    if (this.#cache.size > MAX_CACHED) this.#cache.delete(this.#cache.keys().next().value as string);
    return resolution;
  }

  #ask(method: "resolve4" | "resolve6", name: string): Promise<Answer> {
    return new Promise((resolve) => {
      this.#dns[method](name, { ttl: true }, (error, records) => {
        if (error !== null) resolve({ kind: kindOf(error.code), addresses: [], ttlSeconds: Number.POSITIVE_INFINITY });
        else {
          const kept = records.slice(0, MAX_ADDRESSES);
          const ttlSeconds = Math.min(...kept.map(({ ttl }) => ttl));
          resolve({ kind: "addresses", addresses: kept.map(({ address }) => address), ttlSeconds });
        }
      });
    });
  }
}

/** Waits only briefly for the second answer once the first has addresses. */
async function bothAnswers(asked: readonly Promise<Answer>[], clock: Clock): Promise<readonly Answer[]> {
  const found: (Answer | undefined)[] = asked.map(() => undefined);
  await new Promise<void>((resolve) => {
    let stopTimer = () => {};
    const finish = () => {
      stopTimer();
      resolve();
    };
    for (const [index, answer] of asked.entries()) {
      answer.then((arrived) => {
        found[index] = arrived;
        if (found.every((each) => each !== undefined)) finish();
        else if (arrived.kind === "addresses") stopTimer = clock.schedule(LATE_ANSWER_MS, finish);
      });
    }
  });
  return found.filter((answer) => answer !== undefined);
}

function combined(answers: readonly Answer[]): Resolution {
  const addresses = answers.flatMap((answer) => answer.addresses);
  if (addresses.length > 0) return { kind: "addresses", addresses };
  const kinds = answers.map(({ kind }) => kind);
  if (kinds.includes("not_found")) return { kind: "not_found" };
  return { kind: kinds.includes("failed") ? "failed" : "empty" };
}

function kindOf(code: string | undefined): "not_found" | "empty" | "failed" {
  if (code === "ENOTFOUND") return "not_found";
  return code === "ENODATA" ? "empty" : "failed";
}
