// Saves the homes and the store that this version of Sandpiper leaves, for test/node/frozen-homes.test.ts:
//   node scripts/freeze-home.ts
// Run it for each release, and commit the archive. Later versions must open it.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import manifest from "../package.json" with { type: "json" };
import { frozenKinds, startFrozen } from "../test/node/frozen-homes.ts";

const directory = mkdtempSync(join(tmpdir(), "sandpiper-frozen-"));
for (const kind of frozenKinds) {
  const { node, client } = await startFrozen(directory, kind);
  const paused = await client.sandboxes.create({
    provider: "mock",
    name: "paused",
    labels: { frozen: "yes" },
    env: { A: "1" },
  });
  await paused.files.write("/kept", "kept");
  await paused.checkpoint({ name: "first" });
  await paused.pause();
  await client.keys.create({ name: "limited", tenant: "other", quota: { maxSandboxes: 3 } });
  await node.stop();
}
const archive = fileURLToPath(new URL(`../test/node/homes/${manifest.version}.tar.gz`, import.meta.url));
execFileSync("tar", ["-czf", archive, "-C", directory, "."]);
rmSync(directory, { recursive: true });
console.log(`Wrote ${archive}.`);
process.exit(0);
