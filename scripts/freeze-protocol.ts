// Writes the snapshot of a new protocol generation. A frozen one is never written again: agents in the field speak it.
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
    `Generation ${PROTOCOL_GENERATION} is frozen in ${name} already. Raise PROTOCOL_GENERATION in ` +
      "packages/protocol/src/agent/generation.ts and in the agent, then run this again.",
  );
  process.exitCode = 1;
}
