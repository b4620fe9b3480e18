import { tmpdir } from "node:os";
import { describe, expect, it } from "vitest";
import { checkReserve } from "./check-reserve.ts";

describe("the check of the host's reserve", () => {
  it("shows what is free and what a node keeps of it", async () => {
    const reserve = { SANDPIPER_RESERVE_DISK_MIB: "1", SANDPIPER_RESERVE_MEMORY_MIB: "0", SANDPIPER_RESERVE_PIDS: "2" };
    expect(await checkReserve(tmpdir(), reserve)).toEqual({
      name: "reserve",
      status: "ok",
      detail: expect.stringMatching(
        /^\d+ MiB of disk free, reserve 1; \d+ MiB of memory free, no reserve; \d+ pids free, reserve 2$/,
      ),
    });
  });

  it("warns about a resource of which less is free", async () => {
    const check = await checkReserve(tmpdir(), { SANDPIPER_RESERVE_DISK_MIB: "999999999" });
    expect(check).toMatchObject({ status: "warning", hint: expect.stringContaining("free some disk") });
  });

  it("warns about a setting that is wrong", async () => {
    const check = await checkReserve(tmpdir(), { SANDPIPER_RESERVE_PIDS: "many" });
    expect(check).toMatchObject({ status: "warning", detail: expect.stringContaining("SANDPIPER_RESERVE_PIDS") });
  });
});
