import type { Clock, KeyedMutex } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { SandboxRecord, SandboxRecords } from "../records/sandbox-record.ts";
import type { Providers } from "./providers.ts";

export interface ForgetEndedOptions {
  readonly records: SandboxRecords;
  readonly providers: Providers;
  readonly turns: KeyedMutex<SandboxId>;
  readonly clock: Clock;
  /** How long what has ended can be looked up. */
  readonly keepMs: number;
}

const PAGE = 100;

/** Forgets sandboxes that ended long ago. One that has failed keeps its volumes until then, in case it is rebuilt. */
export async function forgetEnded({ records, providers, turns, clock, keepMs }: ForgetEndedOptions): Promise<void> {
  const before = new Date(clock.now().getTime() - keepMs);
  for (const { id, provider } of failedBefore(records, before)) {
    if (!providers.byName.get(provider)?.capabilities.supportsContainers) continue;
    await turns.run(id, async () => {
      if (records.get(id)?.state === "failed") await providers.remove(provider, id);
    });
  }
  records.prune(before);
}

function failedBefore(records: SandboxRecords, before: Date): readonly SandboxRecord[] {
  const found: SandboxRecord[] = [];
  let cursor: string | undefined;
  do {
    const page = records.list({ state: "failed", limit: PAGE, cursor });
    found.push(...page.items.filter(({ endedAt }) => endedAt !== null && endedAt < before));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}
