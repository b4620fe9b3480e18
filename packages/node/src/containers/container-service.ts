import type { PullProgress } from "@sandpiper/core";
import type { CacheResource, PullImageBody, SandboxResource } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";

export interface PullImageOptions {
  /** Whoever waits has gone. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PullProgress) => void;
}

/** What callers can do on a node that makes containers; caches of other tenants do not exist. */
export interface ContainerService {
  /** Throws at once where there is no provider that could; what it gives pulls. */
  pull(body: PullImageBody): (options: PullImageOptions) => Promise<void>;
  /** Of the caller's own tenant. */
  listCaches(principal: Principal): Promise<readonly CacheResource[]>;
  clearCache(principal: Principal, cache: Pick<CacheResource, "project" | "name">): Promise<void>;
  rebuild(principal: Principal, id: string): Promise<SandboxResource>;
}
