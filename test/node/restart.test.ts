import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProvider } from "@sandpiper/node";
import { afterEach, describe, expect, it } from "vitest";
import { NodeProcess } from "./node-process.ts";

const homes: string[] = [];
afterEach(async () => {
  for (const home of homes.splice(0)) {
    const provider = createProvider("gvisor", { home: join(home, "node") });
    for (const { id } of await provider.list()) await provider.remove(id);
    rmSync(home, { recursive: true, force: true });
  }
});

function makeHome(): string {
  const home = mkdtempSync(join(tmpdir(), "sandpiper-restart-"));
  homes.push(home);
  return home;
}

async function textOf(output: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of output) text += decoder.decode(bytes, { stream: true });
  return text;
}

describe("a node that was killed with -9 and started again", () => {
  it("has its sandboxes with their files, and a command goes on where its reader was", async () => {
    const home = makeHome();
    const first = await NodeProcess.start({ home, port: 0 });
    const sandbox = await first.client.sandboxes.create({ name: "survivor", env: { A: "1" } });
    await sandbox.files.write("/home/user/kept.txt", "kept");
    const count = 'i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo "line $i"; sleep 0.05; done; exit 7';
    const process_ = await sandbox.start(count);
    let seen = "";
    let offset = 0;
    for await (const chunk of process_.output) {
      seen += new TextDecoder().decode(chunk.bytes);
      offset = chunk.offset + chunk.bytes.length;
      if (seen.includes("line 5\n")) break;
    }
    await first.kill();

    await using second = await NodeProcess.start({ home, port: 0 });
    expect(second.started).toMatchObject({ adopted: [sandbox.id], lost: [], removed: [] });
    const again = await second.client.sandboxes.connect(sandbox.id);
    expect(again.info).toMatchObject({ state: "ready", name: "survivor" });
    expect(await again.files.readText("/home/user/kept.txt")).toBe("kept");
    expect((await again.exec('echo "$A"')).stdout).toBe("1\n");
    const attached = await again.attach(process_.id, { offset });
    const rest = await textOf(attached.stdout);
    expect(seen + rest).toBe(Array.from({ length: 40 }, (_, at) => `line ${at + 1}\n`).join(""));
    expect((await attached.wait()).exitCode).toBe(7);
    await again.destroy();
  });

  it("says what died meanwhile, and removes what belongs to nobody", async () => {
    const home = makeHome();
    const first = await NodeProcess.start({ home, port: 0, pools: [{ target: 1 }] });
    const dead = await first.client.sandboxes.create({ memoryMib: 300 });
    while ((await first.client.pools.list())[0]?.ready !== 1) await new Promise((resolve) => setTimeout(resolve, 50));
    await first.kill();
    const provider = createProvider("gvisor", { home: join(home, "node") });
    await provider.remove(dead.id);

    await using second = await NodeProcess.start({ home, port: 0 });
    expect(second.started).toMatchObject({ adopted: [], lost: [dead.id] });
    expect(second.started.removed).toHaveLength(1);
    const found = await second.client.sandboxes.connect(dead.id);
    expect(found.info).toMatchObject({ state: "failed", failure: { reason: "instance_lost" } });
    expect(await provider.list()).toEqual([]);
  });
});
