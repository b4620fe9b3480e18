import {
  composedProviders,
  createProvider,
  defaultProvider,
  optionalProviders,
  stateDirectory,
} from "../embedded/create-provider.ts";
import type { Check } from "./check.ts";
import { checkIoWeights } from "./check-io-weights.ts";
import { checkLanguages } from "./check-languages.ts";
import { checkLeftovers } from "./check-leftovers.ts";
import { checkDisk, checkMachine } from "./check-machine.ts";
import { checkParts } from "./check-parts.ts";
import { checkProvider } from "./check-provider.ts";
import { checkReleases } from "./check-releases.ts";
import { checkReserve } from "./check-reserve.ts";
import { checkStore } from "./check-store.ts";
import { checkTools } from "./check-tools.ts";

export interface DiagnoseOptions {
  readonly home?: string | undefined;
  /** Removes the leftovers of dead programs instead of only listing them. */
  readonly removeLeftovers?: boolean | undefined;
}

export interface Diagnosis {
  /** Whether the default provider works. */
  readonly works: boolean;
  readonly checks: readonly Check[];
}

/** Checks this host and suggests fixes. */
export async function diagnose(options: DiagnoseOptions = {}): Promise<Diagnosis> {
  const { home = stateDirectory(), removeLeftovers = false } = options;
  const providers = composedProviders.map((name) => createProvider(name, { home, vmDocker: { idleMs: 0 } }));
  const leftovers = await checkLeftovers(providers, { remove: removeLeftovers });
  const [tools, parts, disk, reserve, store, releases] = await Promise.all([
    checkTools(),
    checkParts(),
    checkDisk(home),
    checkReserve(home),
    checkStore(),
    checkReleases(),
  ]);
  // One after the other, because each check measures a start-up time.
  const providerChecks: Check[] = [];
  for (const provider of providers) {
    const isOptional = optionalProviders.some((name) => name === provider.name);
    providerChecks.push(await checkProvider(provider, { isOptional }));
  }
  const works = providerChecks[composedProviders.indexOf(defaultProvider)]?.status === "ok";
  return {
    works,
    checks: [
      ...checkMachine(),
      ...tools,
      ...parts,
      checkLanguages(),
      disk,
      checkIoWeights(home),
      reserve,
      ...store,
      ...releases,
      leftovers,
      ...providerChecks,
    ],
  };
}
