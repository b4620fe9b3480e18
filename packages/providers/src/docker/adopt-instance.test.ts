import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it, vi } from "vitest";
import { adoptInstance } from "./adopt-instance.ts";
import type { DockerHost } from "./host.ts";

describe("adopting one container twice at the same time", () => {
  it("refuses the second attempt even before the first has claimed the container", async () => {
    const id = createSandboxId();
    const record = Promise.withResolvers<undefined>();
    const claim = vi.fn(() => Promise.reject(new Error("the first reached its claim")));
    const store = {
      directory: () => `/instances/${id}`,
      read: () => record.promise,
      owner: async () => ({ pid: 1 }),
      refuse: () => Promise.reject(new Error("owned by this program")),
      claim,
    };
    const host = { store } as unknown as DockerHost;
    const first = adoptInstance(host, id);
    await expect(adoptInstance(host, id)).rejects.toThrow("owned by this program");
    expect(claim).not.toHaveBeenCalled();
    record.resolve(undefined);
    await expect(first).rejects.toThrow("the first reached its claim");
  });
});
