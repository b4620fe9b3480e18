// `npm run chaos -- --faults 100 --runs 10 --seed 1`; the same seed injects the same faults in the same order.
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { StoreKind } from "./chaos-bed.ts";
import { type ChaosReport, sumReports } from "./chaos-report.ts";
import type { ProviderName } from "./chaos-sandbox.ts";
import { runChaos } from "./run-chaos.ts";

const PROVIDERS = ["gvisor", "docker", "qemu"];
const STORES = ["s3", "file"];

const { values } = parseArgs({
  options: {
    faults: { type: "string", default: "100" },
    runs: { type: "string", default: "1" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    store: { type: "string", default: STORES.join(",") },
    providers: { type: "string", default: PROVIDERS.join(",") },
    logs: { type: "string" },
  },
});
const [faults, runs, firstSeed] = [Number(values.faults), Number(values.runs), Number(values.seed)];
const stores = values.store.split(",") as StoreKind[];
const providers = values.providers.split(",") as ProviderName[];
const areKnown = (names: readonly string[], known: readonly string[]) => names.every((name) => known.includes(name));
if (
  ![faults, runs].every((count) => Number.isInteger(count) && count > 0) ||
  !Number.isInteger(firstSeed) ||
  !areKnown(stores, STORES) ||
  !areKnown(providers, PROVIDERS)
) {
  console.error(
    "usage: npm run chaos -- [--faults 100] [--runs 1] [--seed n] [--store s3,file] [--providers gvisor,docker,qemu] [--logs directory]",
  );
  process.exit(2);
}
const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => {
    console.log(`${name}: stopping after this round`);
    interrupted.abort(new Error(`interrupted by ${name}`));
  });
}
const reports: ChaosReport[] = [];
for (let run = 0; run < runs && !interrupted.signal.aborted; run++) {
  const [seed, store] = [firstSeed + run, stores[run % stores.length] as StoreKind];
  console.log(`run ${run + 1} of ${runs}: ${faults} faults, seed ${seed}, store ${store}, ${providers.join(", ")}`);
  const logDirectory = values.logs === undefined ? undefined : join(values.logs, `seed-${seed}-${store}`);
  const log = (line: string) => console.log(line);
  const report = await runChaos({
    ...{ faults, seed, store, providers, log, logDirectory },
    signal: interrupted.signal,
  }).catch(abandonedRun);
  reports.push(report);
  console.log(JSON.stringify({ seed, store, ...report }, null, 2));
}

/** A run that cannot continue is a violation, and the next one starts. */
function abandonedRun(thrown: unknown): ChaosReport {
  console.error(thrown);
  return {
    violations: [`the run ended early: ${thrown}`],
    broken: { stuck: 1 },
    counts: { abandonedRuns: 1 },
    happened: {},
  };
}

console.log(JSON.stringify({ total: sumReports(reports) }, null, 2));
process.exitCode = reports.every(({ violations }) => violations.length === 0) ? 0 : 1;
