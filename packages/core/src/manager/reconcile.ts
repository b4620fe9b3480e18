import { SandboxError, type SandboxId } from "@sandpiper/protocol";
import type { InstanceRecord, Provider } from "../provider.ts";

export interface ReconcileOptions {
  /** How to treat running instances whose program has ended. Stopped ones are always removed. */
  readonly orphans: "adopt" | "destroy";
}

export interface ReconcileResult {
  readonly adopted: readonly SandboxId[];
  readonly destroyed: readonly SandboxId[];
  /** Instances that another running program owns. */
  readonly owned: readonly SandboxId[];
  readonly failed: readonly { readonly id: SandboxId; readonly error: SandboxError }[];
}

interface ReconcileWork extends ReconcileOptions {
  readonly adopt: (record: InstanceRecord) => Promise<unknown>;
  readonly isKnown: (id: SandboxId) => boolean;
}

/** Enough to keep the host busy, but hundreds of orphans do not open their channels at the same time. */
const CONCURRENT_RECORDS = 16;

export async function reconcile(provider: Provider, work: ReconcileWork): Promise<ReconcileResult> {
  const result = {
    adopted: [] as SandboxId[],
    destroyed: [] as SandboxId[],
    owned: [] as SandboxId[],
    failed: [] as { id: SandboxId; error: SandboxError }[],
  };
  const records = (await provider.list()).filter(({ id }) => !work.isKnown(id));
  const handle = async (record: InstanceRecord) => {
    const { id } = record;
    try {
      if (!record.isOrphan) result.owned.push(id);
      else if (work.orphans === "adopt" && record.isRunning) {
        requireAdopt(provider, id);
        await work.adopt(record);
        result.adopted.push(id);
      } else {
        await provider.remove(id, { keepsVolumes: true });
        result.destroyed.push(id);
      }
    } catch (thrown) {
      result.failed.push({ id, error: SandboxError.from(thrown) });
    }
  };
  for (let at = 0; at < records.length; at += CONCURRENT_RECORDS) {
    await Promise.all(records.slice(at, at + CONCURRENT_RECORDS).map(handle));
  }
  return result;
}

function requireAdopt(provider: Provider, id: SandboxId): void {
  if (provider.capabilities.supportsAdopt) return;
  throw new SandboxError("provider_lacks_capability", {
    message: `sandbox ${id} was not adopted: provider ${provider.name} cannot take over instances`,
    hint: "reconcile with orphans: destroy",
    details: { id, provider: provider.name, capability: "supportsAdopt" },
  });
}
