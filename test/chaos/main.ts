// `npm run chaos -- --rounds 200 --seed 7 --store s3`; the same seed injects the same faults in the same order.
import { parseArgs } from "node:util";
import type { StoreKind } from "./chaos-bed.ts";
import { runChaos } from "./run-chaos.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "200" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    store: { type: "string", default: "s3" },
    logs: { type: "string" },
  },
});
const [rounds, seed] = [Number(values.rounds), Number(values.seed)];
if (!(rounds > 0) || !Number.isInteger(seed) || !["file", "s3"].includes(values.store)) {
  console.error("usage: npm run chaos -- [--rounds 200] [--seed n] [--store s3|file] [--logs directory]");
  process.exit(2);
}
console.log(`${rounds} rounds, seed ${seed}, store ${values.store}`);
const store = values.store as StoreKind;
const report = await runChaos({ rounds, seed, store, log: (line) => console.log(line), logDirectory: values.logs });
console.log(JSON.stringify({ seed, ...report }, null, 2));
process.exitCode = report.violations.length === 0 ? 0 : 1;
