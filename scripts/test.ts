// `npm test` runs every test, `npm test -- PATTERN…` those that match, and `npm run unit` those that start no program.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { readSourceFiles } from "../test/architecture/source-files.ts";
import { runCargoTests } from "./test/cargo-tests.ts";
import { selectTests } from "./test/selection.ts";
import { countFailures, formatTally, sumTallies, type Tally } from "./test/tally.ts";
import { listUnitTests } from "./test/unit-tests.ts";
import { runVitestTests } from "./test/vitest-tests.ts";

/** Besides the npm packages; unit tests need none of them. */
const SET_UP_STEPS = [
  ...["agent", "runsc", "cgroups", "cluster", "network", "docker", "podman", "servers", "python", "qemu", "kernel"],
  ...["docker-image", "node-image"],
];
const directory = join(import.meta.dirname, "..");
const agentDirectory = join(directory, "agent");

const isUnitRun = process.argv.includes("--unit");
const patterns = process.argv.slice(2).filter((argument) => argument !== "--unit");
const sources = readSourceFiles();
const unitTests = listUnitTests(sources);
const allTests = sources.map(({ path }) => path).filter((path) => path.endsWith(".test.ts"));
const { files, cargo, unmatched } = selectTests(patterns, { files: isUnitRun ? unitTests : allTests, directory });

const total = sumTallies(unmatched.length > 0 ? [nothingMatches()] : await runTests());
console.log(`\n${formatTally(total)}`);
process.exitCode = countFailures(total) === 0 ? 0 : 1;

async function runTests(): Promise<Tally[]> {
  const units = files.filter((file) => unitTests.includes(file));
  const others = files.filter((file) => !unitTests.includes(file));
  if (others.length > 0) setUp();
  if (isUnitRun) hideEngines();
  const tallies: Tally[] = [];
  for (const args of cargo) tallies.push(await runCargoTests(agentDirectory, isUnitRun ? ["--lib", ...args] : args));
  // Unit tests share processes also in a run of all tests, which saves the start of hundreds of them.
  if (units.length > 0) tallies.push(await runVitestTests(units, { isIsolated: false }));
  if (others.length > 0) tallies.push(await runVitestTests(others, { isIsolated: true }));
  return tallies;
}

/** Makes a test that is listed as a unit test by mistake fail here, too, and not only on machines without engines. */
function hideEngines(): void {
  for (const name of ["SANDPIPER_RUNSC", "SANDPIPER_QEMU", "XDG_CACHE_HOME"])
    process.env[name] = "/hidden-from-unit-tests";
}

function setUp(): void {
  const argv = [join(directory, "scripts/setup.mjs"), "--quiet", ...SET_UP_STEPS];
  const { status } = spawnSync(process.execPath, argv, { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

function nothingMatches(): Tally {
  const faults = unmatched.map(
    (pattern) =>
      `no ${isUnitRun ? "unit " : ""}test matches "${pattern}": give a part of a test file's path (packages/core), ` +
      "a path in agent/ (agent/src/files), or the name of a Rust test (outbox::tests)",
  );
  return { passed: 0, failures: [], skips: [], faults };
}
