import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it, vi } from "vitest";
import { adoptInstance } from "./adopt-instance.ts";
import type { DockerHost } from "./host.ts";

describe("a program that adopts one container twice at the same time", () => {
  it("refuses the second before the first has claimed it, however slow that is", async () => {
    const id = createSandboxId();
    const record = Promise.withResolvers<undefined>();
    const claim = vi.fn(() => Promise.reject(new Error("the first has come to its claim")));
    const store = {
      directory: () => `/instances/${id}`,
      read: () => record.promise,
      owner: async () => ({ pid: 1 }),
      refuse: () => Promise.reject(new Error("this program has it")),
      claim,
    };
    const host = { store } as unknown as DockerHost;
    const first = adoptInstance(host, id);
    await expect(adoptInstance(host, id)).rejects.toThrow("this program has it");
    expect(claim).not.toHaveBeenCalled();
    record.resolve(undefined);
    await expect(first).rejects.toThrow("the first has come to its claim");
  });
});
