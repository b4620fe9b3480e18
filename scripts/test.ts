// `npm test` runs everything; `npm test -- packages/core` only the Vitest suites whose paths match.
import { join } from "node:path";
import { runCargoTests } from "./test/cargo-tests.ts";
import { countFailures, formatTally, sumTallies, type Tally } from "./test/tally.ts";
import { runVitestTests } from "./test/vitest-tests.ts";

const filters = process.argv.slice(2);
const tallies: Tally[] = [];
if (filters.length === 0) tallies.push(await runCargoTests(join(import.meta.dirname, "../agent")));
tallies.push(await runVitestTests(filters));

const total = sumTallies(tallies);
console.log(`\n${formatTally(total)}`);
process.exitCode = countFailures(total) === 0 ? 0 : 1;
