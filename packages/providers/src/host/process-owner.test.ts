import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { currentOwner, isOwnerAlive } from "./process-owner.ts";

describe("the owner of an instance", () => {
  it("is alive while its process is", async () => {
    expect(await isOwnerAlive(await currentOwner())).toBe(true);
  });

  it("differs from another process with the same id and from one of another boot", async () => {
    const owner = await currentOwner();
    expect(await isOwnerAlive({ ...owner, startTicks: owner.startTicks + 1 })).toBe(false);
    expect(await isOwnerAlive({ ...owner, bootId: "another" })).toBe(false);
  });

  it("is dead once its process has ended, even as a zombie", async () => {
    // The shell starts a child, becomes another program, and never waits for the child.
    const parent = spawn("sh", ["-c", "sleep 0.01 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
    const [output] = await once(parent.stdout, "data");
    const pid = Number(String(output));
    const stat = () => readFile(`/proc/${pid}/stat`, "utf8");
    const fields = (await stat()).split(") ")[1]?.split(" ") ?? [];
    const owner = { ...(await currentOwner()), pid, startTicks: Number(fields[19]) };
    await expect.poll(stat).toContain(") Z ");
    expect(await isOwnerAlive(owner)).toBe(false);
    parent.kill("SIGKILL");
    await once(parent, "exit");
  });
});
