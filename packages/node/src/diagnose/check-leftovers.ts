import { type Provider, SandboxError } from "@sandpiper/core";
import type { Check } from "./check.ts";

const ABSENT = ["engine_missing", "engine_unreachable"];

/** Instances whose program has ended without removing them. */
export async function checkLeftovers(
  providers: readonly Provider[],
  { remove }: { readonly remove: boolean },
): Promise<Check> {
  const name = "leftovers";
  try {
    const found = await Promise.all(providers.map((provider) => leftoversOf(provider)));
    const orphans = found.flat();
    if (orphans.length === 0) return { name, status: "ok", detail: "none of dead programs" };
    const what = `${orphans.length} of dead programs: ${orphans.map(({ id }) => id).join(", ")}`;
    if (!remove) {
      const hint = "Run: sandpiper doctor --fix, or just go on: the next sandpiper run removes them too.";
      return { name, status: "warning", detail: what, hint };
    }
    for (const { provider, id } of orphans) await provider.remove(id, { keepsVolumes: true });
    return { name, status: "ok", detail: `removed ${what}` };
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return { name, status: "warning", detail: message, ...(hint === undefined ? {} : { hint }) };
  }
}

async function leftoversOf(provider: Provider) {
  // That an engine is missing, or does not answer, is told of where providers are; most machines have none.
  const found = await provider.list().catch((thrown) => {
    if (!ABSENT.includes(SandboxError.from(thrown).reason)) throw thrown;
    return [];
  });
  const orphans = found.filter(({ isOrphan }) => isOrphan);
  return orphans.map(({ id }) => ({ provider, id }));
}
