import { type Provider, SandboxError } from "@sandpiper/core";
import type { Check } from "./check.ts";

const ABSENT = ["engine_missing", "engine_unreachable"];

/** Looks for instances whose program has ended, and removes them if asked to. */
export async function checkLeftovers(
  providers: readonly Provider[],
  { remove }: { readonly remove: boolean },
): Promise<Check> {
  const name = "leftovers";
  try {
    const found = await Promise.all(providers.map((provider) => leftoversOf(provider)));
    const orphans = found.flat();
    if (orphans.length === 0) return { name, status: "ok", detail: "none" };
    const ids = orphans.map(({ id }) => id).join(", ");
    if (!remove) {
      const detail = `${orphans.length} left by dead programs: ${ids}`;
      const hint = "Run: sandpiper doctor --fix. The next sandpiper run removes them too.";
      return { name, status: "warning", detail, hint };
    }
    for (const { provider, id } of orphans) await provider.remove(id, { keepsVolumes: true });
    return { name, status: "ok", detail: `removed ${orphans.length} left by dead programs: ${ids}` };
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return { name, status: "warning", detail: message, ...(hint === undefined ? {} : { hint }) };
  }
}

async function leftoversOf(provider: Provider) {
  // The checks of the providers report a missing engine; most machines have none.
  const found = await provider.list().catch((thrown) => {
    if (!ABSENT.includes(SandboxError.from(thrown).reason)) throw thrown;
    return [];
  });
  const orphans = found.filter(({ isOrphan }) => isOrphan);
  return orphans.map(({ id }) => ({ provider, id }));
}
