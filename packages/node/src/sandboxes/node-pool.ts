import { type Clock, type Sandbox, SandboxConfig, SandboxError, WarmPool } from "@sandpiper/core";
import type { PoolKeyBody, PoolResource, SetPoolBody } from "@sandpiper/protocol";
import type { HostReserve } from "./host-reserve.ts";
import { instanceKeyText } from "./instance-key.ts";
import { imageOf, type SandboxDefaults } from "./new-sandbox.ts";
import type { Providers } from "./providers.ts";

export interface NodePoolOptions {
  readonly providers: Providers;
  readonly defaults: SandboxDefaults;
  readonly reserve: Pick<HostReserve, "require">;
  readonly clock: Clock;
  readonly maxBoots: number;
  readonly maxAgeMs: number;
  readonly sweepIntervalMs: number;
  readonly onError: (error: SandboxError) => void;
}

/** A caller that has just claimed an instance is about to run a command, which a boot at the same time would slow down. */
const REFILL_DELAY_MS = 50;

/** The statistics of a pool without a target. */
const emptyStats = { ready: 0, booting: 0, hits: 0, misses: 0, failures: 0, meanWaitMs: null, retryInMs: null };

/** The node's warm pools. */
export class NodePool {
  readonly #options: NodePoolOptions;
  readonly #pool: WarmPool<PoolKeyBody, Sandbox>;

  constructor(options: NodePoolOptions) {
    const { providers, reserve, clock, maxBoots, maxAgeMs, sweepIntervalMs, onError } = options;
    this.#options = options;
    this.#pool = new WarmPool<PoolKeyBody, Sandbox>({
      keyOf: instanceKeyText,
      boot: async (key, signal) => {
        reserve.require("start an instance of a warm pool");
        const sandbox = await providers.boot(key, { signal, isWarm: true });
        sandbox.closed.then(() => this.#pool.remove(sandbox));
        return sandbox;
      },
      discard: (sandbox) => providers.destroy(sandbox.provider, sandbox.id),
      isHealthy: (sandbox) => sandbox.isHealthy(),
      clock,
      maxBoots,
      maxAgeMs,
      sweepIntervalMs,
      backOff: { firstMs: 500, mostMs: 60_000 },
      refillDelayMs: REFILL_DELAY_MS,
      onError,
    });
  }

  /** Undefined if no instance is ready for this key. */
  claim(key: PoolKeyBody, signal: AbortSignal): Promise<Sandbox | undefined> {
    return this.#pool.claim(key, signal);
  }

  /** Boots an instance for a waiting caller, before any boot for the warm pools. */
  boot<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#pool.withBootSlot(work, signal);
  }

  list(): PoolResource[] {
    return this.#pool.stats().map((stats) => ({ ...stats }));
  }

  set({ target, ...body }: SetPoolBody): PoolResource {
    const { defaults, providers } = this.#options;
    const { memoryMib, vcpuCount, diskMib, maxProcesses } = SandboxConfig.parse({
      memoryMib: body.memoryMib ?? defaults.memoryMib,
      vcpuCount: body.vcpuCount ?? defaults.vcpuCount,
      diskMib: body.diskMib ?? defaults.diskMib,
      maxProcesses: body.maxProcesses ?? defaults.maxProcesses,
    });
    const provider = body.provider ?? defaults.provider;
    // Reports an unusable provider now rather than at every boot.
    const found = providers.require(provider);
    if (found.machines !== undefined && target > 0) throw noProject(provider);
    const image = imageOf(body.image, found, defaults);
    const key = { provider, image, memoryMib, vcpuCount, diskMib, maxProcesses };
    this.#pool.setTarget(key, target);
    const text = instanceKeyText(key);
    return this.list().find((pool) => instanceKeyText(pool.key) === text) ?? { key, target, ...emptyStats };
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

function noProject(provider: string): SandboxError {
  return new SandboxError("project_required", {
    message: `a warm pool cannot hold sandboxes of provider ${provider}: each belongs to a project, and a pool to none`,
    hint: "keep one small sandbox in the project, which keeps its machine running",
  });
}
