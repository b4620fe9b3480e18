import type { Clock } from "@sandpiper/core";
import type { ListedSandbox } from "../records/sandbox-record.ts";
import type { Providers } from "../sandboxes/providers.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";

export interface ForgetEndedOptions {
  readonly registry: SandboxRegistry;
  readonly providers: Providers;
  readonly clock: Clock;
  /** How long the records of ended sandboxes are kept. */
  readonly keepMs: number;
}

const PAGE = 100;

/** Deletes the records of sandboxes that ended long ago. Until then a failed sandbox keeps its volumes for a rebuild. */
export async function forgetEnded({ registry, providers, clock, keepMs }: ForgetEndedOptions): Promise<void> {
  const before = new Date(clock.now().getTime() - keepMs);
  for (const { id, provider } of failedBefore(registry, before)) {
    if (!providers.byName.get(provider)?.capabilities.supportsContainers) continue;
    await registry.serialize(id, async () => {
      if (registry.record(id)?.state === "failed") await providers.remove(provider, id);
    });
  }
  registry.prune(before);
}

function failedBefore(registry: SandboxRegistry, before: Date): readonly ListedSandbox[] {
  const records: ListedSandbox[] = [];
  let cursor: string | undefined;
  do {
    const page = registry.list({ state: "failed", limit: PAGE, cursor });
    records.push(...page.items.filter(({ endedAt }) => endedAt !== null && endedAt < before));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return records;
}
