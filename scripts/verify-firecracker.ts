// Checks that Sandpiper works with a Firecracker of this machine, through a node of its own.
import { parseArguments, USAGE } from "./verify-firecracker/arguments.ts";
import { hasFailed, reportOf } from "./verify-firecracker/report.ts";
import { runSteps } from "./verify-firecracker/run-steps.ts";
import { VerifiedNode } from "./verify-firecracker/verified-node.ts";

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  let options: ReturnType<typeof parseArguments>;
  try {
    options = parseArguments(args);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return 2;
  }
  if (options === "help") {
    console.log(USAGE);
    return 0;
  }
  await using node = await VerifiedNode.create(options);
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => interrupted.abort(new Error(`interrupted by ${signal}`)));
  }
  const results = await runSteps(node, {
    signal: interrupted.signal,
    onStep: ({ name, status, ms, detail }) => console.error(`${status.padEnd(7)} ${name} (${ms} ms) ${detail}`),
  });
  console.log(reportOf(await node.describe(), results));
  return hasFailed(results) ? 1 : 0;
}
