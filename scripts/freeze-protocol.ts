// Writes the snapshot of a new protocol generation. It never overwrites a frozen one, because deployed agents speak it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROTOCOL_GENERATION } from "../packages/protocol/src/agent/generation.ts";
import { createWireSnapshot } from "../packages/protocol/src/agent/wire-snapshot.ts";

const name = `packages/protocol/snapshots/generation-${PROTOCOL_GENERATION}.json`;
try {
  const text = `${JSON.stringify(createWireSnapshot(), null, 2)}\n`;
  writeFileSync(join(import.meta.dirname, "..", name), text, { flag: "wx" });
  console.log(`Froze generation ${PROTOCOL_GENERATION} in ${name}.`);
} catch (error) {
  if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  console.error(
    `Generation ${PROTOCOL_GENERATION} is already frozen in ${name}. Raise PROTOCOL_GENERATION in ` +
      "packages/protocol/src/agent/generation.ts and in the agent, then run `npm run freeze-protocol` again.",
  );
  process.exitCode = 1;
}
