import type { IncomingMessage } from "node:http";
import { type Authenticator, actorOf, type Principal } from "../auth/principal.ts";
import { RateLimit, type RateLimitOptions } from "../auth/rate-limit.ts";
import { CallerAddresses, plain } from "./caller-address.ts";

/** How many seconds' worth of requests an idle caller may send at once. */
const BURST_SECONDS = 5;

export interface CallersOptions extends Pick<RateLimitOptions, "clock" | "onRefusal"> {
  readonly authenticator: Authenticator;
  /** Requests per second; 0 for no limit. */
  readonly rateLimits: { readonly perKey: number; readonly perAddress: number };
  readonly trustedProxies: readonly string[];
}

/** Authenticates callers and limits their rates: holders of credentials by key, anonymous ones by address. */
export class Callers {
  readonly #authenticator: Authenticator;
  readonly #addresses: CallerAddresses;
  readonly #keys: RateLimit;
  readonly #anonymous: RateLimit;

  constructor({ authenticator, rateLimits, trustedProxies, ...rest }: CallersOptions) {
    const limit = (name: RateLimitOptions["name"], perSecond: number) =>
      new RateLimit({ ...rest, name, perSecond, burst: perSecond * BURST_SECONDS });
    this.#authenticator = authenticator;
    this.#addresses = new CallerAddresses(trustedProxies);
    this.#keys = limit("key", rateLimits.perKey);
    this.#anonymous = limit("address", rateLimits.perAddress);
  }

  /** Throws `unauthenticated`, or `resource_exhausted` for an address that fails too often. */
  async authenticate(credential: string | undefined, connection: IncomingMessage | undefined): Promise<Principal> {
    return await this.countingRejection(this.#authenticator.admit(credential), connection);
  }

  /** As `countingFailure`, for a check that takes time. */
  async countingRejection<T>(check: Promise<T>, connection: IncomingMessage | undefined): Promise<T> {
    try {
      return await check;
    } catch (thrown) {
      this.countAnonymous(connection);
      throw thrown;
    }
  }

  /** Makes a check that an anonymous caller can fail, such as that of a node's proof. Counts a failure as `authenticate` does. */
  countingFailure<T>(check: () => T, connection: IncomingMessage | undefined): T {
    try {
      return check();
    } catch (thrown) {
      this.countAnonymous(connection);
      throw thrown;
    }
  }

  /** Throws `resource_exhausted`. A node counts requests where they arrive, not again where they are forwarded to. */
  count(principal: Principal): void {
    this.#keys.take(actorOf(principal));
  }

  /** Whether the connection comes from a proxy whose X-Forwarded headers are believed. */
  isTrustedProxy({ socket }: Pick<IncomingMessage, "socket">): boolean {
    const { remoteAddress } = socket;
    return remoteAddress !== undefined && this.#addresses.isTrusted(plain(remoteAddress));
  }

  /** Counts a request that needs no credential, or has no valid one. A caller in this process has no connection. */
  countAnonymous(connection: IncomingMessage | undefined): void {
    const address = connection && this.#addresses.of(connection);
    if (address !== undefined) this.#anonymous.take(address);
  }
}
