import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProvider } from "@sandpiper/node";
import { afterAll, describe, expect, it } from "vitest";
import { NodeProcess } from "../node/node-process.ts";

const home = mkdtempSync(join(tmpdir(), "sandpiper-sdk-restart-"));
afterAll(async () => {
  const provider = createProvider("gvisor", { home: join(home, "node") });
  for (const { id } of await provider.list()) await provider.remove(id);
  rmSync(home, { recursive: true, force: true });
});

describe("a node that is killed and started again while a client uses it", () => {
  it("costs the client nothing but time: the command goes on, and so does its output", async () => {
    const first = await NodeProcess.start({ home, port: 0 });
    const { client } = first;
    const port = Number(new URL(first.started.url).port);
    const sandbox = await client.sandboxes.create();
    let lines = 0;
    const reached = Promise.withResolvers<void>();
    const running = sandbox.exec('i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo "line $i"; sleep 0.05; done; exit 7', {
      onStdout: (bytes) => {
        lines += bytes.filter((byte) => byte === 10).length;
        if (lines >= 5) reached.resolve();
      },
    });
    await reached.promise;
    await first.kill();
    await using _second = await NodeProcess.start({ home, port });
    const { stdout, exitCode, truncated } = await running;
    expect({ exitCode, truncated }).toEqual({ exitCode: 7, truncated: false });
    expect(stdout).toBe(Array.from({ length: 60 }, (_, at) => `line ${at + 1}\n`).join(""));
    await sandbox.destroy();
    client.close();
  });
});
