import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { LeaseWhereabouts } from "./whereabouts.ts";

const live = { owner: "b", url: "http://b", epoch: 1, expiresAt: new Date(0), isLive: true, isReleased: false };
const lock = { ...live, isAttached: false, waiter: null };

describe("a sandbox", () => {
  it.each([
    ["another node holds it", lock, { kind: "node", id: "b", url: "http://b" }],
    ["another node held it, and is gone", { ...lock, isLive: false }, { kind: "here" }],
    ["it was given back", { ...lock, owner: null, url: null, isLive: false, isReleased: true }, { kind: "here" }],
    ["this node holds it", { ...lock, owner: "a", url: "http://a" }, { kind: "here" }],
    ["nobody ever held it", undefined, { kind: "here" }],
  ])("is looked for when %s", async (_, found, expected) => {
    const leases = { read: async () => found };
    const whereabouts = new LeaseWhereabouts({ nodeId: "a", isHere: () => false, leases });
    expect(await whereabouts.find(createSandboxId())).toEqual(expected);
  });

  it("that runs here is not looked for", async () => {
    const leases = { read: () => Promise.reject(new Error("looked")) };
    const whereabouts = new LeaseWhereabouts({ nodeId: "a", isHere: () => true, leases });
    expect(await whereabouts.find(createSandboxId())).toEqual({ kind: "here" });
  });
});
