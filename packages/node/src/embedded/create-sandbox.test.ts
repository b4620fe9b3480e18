import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSandbox } from "./create-sandbox.ts";

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "sandpiper-node-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const instances = () => readdir(join(home, "local/instances"));

describe("createSandbox", () => {
  it("creates a sandbox in this process and destroys it on dispose", async () => {
    {
      await using sandbox = await createSandbox({ provider: "local", home, env: { GREETING: "hello" } });
      expect((await sandbox.exec("echo $GREETING")).stdout).toBe("hello\n");
      expect(await instances()).toEqual([sandbox.id]);
    }
    expect(await instances()).toEqual([]);
  });

  it("rejects invalid options, and names the field", async () => {
    await expect(createSandbox({ provider: "local", home, memoryMib: 0 })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("memoryMib 0"),
    });
  });

  it("leaves nothing behind when its signal aborts", async () => {
    const signal = AbortSignal.abort();
    await expect(createSandbox({ provider: "local", home, signal })).rejects.toMatchObject({ code: "canceled" });
    await using _ = await createSandbox({ provider: "local", home });
    expect(await instances()).toHaveLength(1);
  });

  it("first removes the sandboxes of a killed program, and none of a living one", async () => {
    await using killed = startHostProgram();
    await using living = startHostProgram();
    const [killedId, livingId] = await Promise.all([killed.sandboxId(), living.sandboxId()]);
    await killed.kill();
    expect((await instances()).sort()).toEqual([killedId, livingId].sort());

    await using sandbox = await createSandbox({ provider: "local", home });
    expect((await instances()).sort()).toEqual([livingId, sandbox.id].sort());
  });
});

/** Starts another program that creates a sandbox in the same home and runs until it is killed. */
function startHostProgram() {
  const code = `
    import { createSandbox } from ${JSON.stringify(import.meta.resolve("./create-sandbox.ts"))};
    const sandbox = await createSandbox({ provider: "local", home: ${JSON.stringify(home)} });
    console.log(sandbox.id);
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "close");
  };
  return {
    sandboxId: async () => String((await once(child.stdout, "data"))[0]).trim(),
    kill,
    [Symbol.asyncDispose]: kill,
  };
}
