import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { frozenKinds, startFrozen } from "./frozen-homes.ts";

const archives = fileURLToPath(new URL("homes/", import.meta.url));
const versions = readdirSync(archives).map((name) => name.replace(".tar.gz", ""));

describe.each(versions)("what Sandpiper %s left", (version) => {
  it.each(frozenKinds)(
    "is opened by this version: a paused sandbox of a %s node, its checkpoints and keys",
    async (kind) => {
      const directory = mkdtempSync(join(tmpdir(), "sandpiper-frozen-"));
      onTestFinished(() => rmSync(directory, { recursive: true }));
      execFileSync("tar", ["-xzf", join(archives, `${version}.tar.gz`), "-C", directory]);
      const { node, client } = await startFrozen(directory, kind);
      onTestFinished(() => node.stop());
      const [found] = await Array.fromAsync(client.sandboxes.list());
      const sandbox = await client.sandboxes.connect(found?.id as string);
      expect(sandbox.info).toMatchObject({ name: "paused", state: "paused", labels: { frozen: "yes" } });
      expect((await sandbox.checkpoints()).map(({ name }) => name)).toContain("first");
      expect((await sandbox.resume()).state).toBe("ready");
      expect(await sandbox.files.readText("/kept")).toBe("kept");
      const keys = await client.keys.list();
      expect(keys.find(({ name }) => name === "limited")).toMatchObject({
        tenant: "other",
        quota: { maxSandboxes: 3 },
      });
    },
  );
});
