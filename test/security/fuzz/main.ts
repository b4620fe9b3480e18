// `npm run fuzz -- --inputs 10000 --seed 7 --only rest,mcp`; the same seed sends the same inputs in the same order.
import { parseArgs } from "node:util";
import { FuzzNode } from "./fuzz-node.ts";
import { fuzzInterface, interfaces, isInterface } from "./interfaces.ts";

const { values } = parseArgs({
  options: {
    inputs: { type: "string", default: "10000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    only: { type: "string", default: interfaces.join(",") },
  },
});
const [inputs, seed, names] = [Number(values.inputs), Number(values.seed), values.only.split(",")];
if (!(inputs >= 10) || !Number.isInteger(seed) || !names.every(isInterface)) {
  console.error(`usage: npm run fuzz -- [--inputs 10000] [--seed n] [--only ${interfaces.join(",")}]`);
  process.exit(2);
}
for (const name of names.filter(isInterface)) {
  console.log(`${name}: ${inputs} inputs, seed ${seed}`);
  const startedAt = performance.now();
  try {
    await using node = await FuzzNode.start();
    const report = await fuzzInterface(name, node, { inputs, seed });
    console.log(JSON.stringify({ ...report, seconds: Math.round((performance.now() - startedAt) / 1000) }));
  } catch (thrown) {
    console.error(String(thrown));
    process.exitCode = 1;
  }
}
