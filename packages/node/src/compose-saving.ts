import { join } from "node:path";
import type { Clock, ObjectStore, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { CheckpointVault } from "./store/checkpoint-store.ts";
import type { Custody } from "./ownership/ownership.ts";
import { SandboxSaver } from "./checkpoints/save-restore.ts";
import type { SandboxRecords } from "./records/sandbox-record.ts";
import type { LiveSandboxes } from "./sandboxes/sandbox-registry.ts";
import type { Providers } from "./sandboxes/providers.ts";
import { CheckpointRepository } from "./store/checkpoint-repository.ts";

export interface SavingOptions {
  readonly store: ObjectStore;
  readonly home: string;
  readonly custody: Custody;
  readonly providers: Providers;
  readonly records: SandboxRecords;
  readonly live: LiveSandboxes;
  readonly clock: Clock;
  readonly observeCheckpoint?: ((provider: string, seconds: number) => void) | undefined;
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

/** What saves sandboxes to the store and restores them from it. */
export function composeSaving(options: SavingOptions) {
  const { store, home, ...rest } = options;
  const repository = new CheckpointRepository({ store, clock: options.clock });
  const vault = new CheckpointVault({ store, repository, directory: join(home, "checkpoints") });
  return { vault, saver: new SandboxSaver({ ...rest, vault }) };
}
