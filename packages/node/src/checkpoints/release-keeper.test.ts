import type { KeptRelease, Provider, Releases } from "@sandpiper/core";
import { createSandboxId, type NodeResource } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";
import { sandboxRecord } from "../testing/sandbox-record.ts";
import { ReleaseKeeper } from "./release-keeper.ts";

const release = (version: string, more: Partial<KeptRelease> = {}): KeptRelease => ({
  program: "runsc",
  version,
  isCurrent: version === "3",
  instances: [],
  ...more,
});
const saved = (version: string): SavedSandbox => ({
  record: sandboxRecord(),
  requirements: { runtime: `runsc ${version}` },
  checkpoints: [],
});
const otherNode = (runtimes: string[] | undefined) => ({ isAlive: true, isThisNode: false, runtimes }) as NodeResource;

function keeper(
  kept: KeptRelease[],
  { sandboxes = [], nodes = [] }: { sandboxes?: SavedSandbox[]; nodes?: NodeResource[] } = {},
) {
  const releases: Releases = {
    list: async () => [...kept],
    add: async () => release("0"),
    remove: async ({ version }) =>
      void kept.splice(
        kept.findIndex((each) => each.version === version),
        1,
      ),
    isRequired: ({ program, version }, { runtime }) => runtime === `${program} ${version}`,
  };
  const providers = [{ name: "gvisor", releases } as unknown as Provider];
  return new ReleaseKeeper({ providers, saved: async () => sandboxes, nodes: async () => nodes });
}

describe("the releases of gVisor", () => {
  it("stay while an instance here, a sandbox in the store, or new sandboxes of another node need them", async () => {
    const kept = [
      release("0"),
      release("1", { instances: [createSandboxId()] }),
      release("2"),
      release("3"),
      release("4"),
    ];
    const keeping = keeper(kept, { sandboxes: [saved("2")], nodes: [otherNode(["runsc 4", "runsc 0"])] });
    expect((await keeping.prune()).map(({ version }) => version)).toEqual(["0"]);
    expect(kept.map(({ version }) => version)).toEqual(["1", "2", "3", "4"]);
    expect(keeping.runtimes).toEqual(["runsc 3", "runsc 1", "runsc 2", "runsc 4"]);
  });

  it("all stay beside a node of an earlier version, which does not announce what its sandboxes need", async () => {
    const kept = [release("1"), release("3")];
    expect(await keeper(kept, { nodes: [otherNode(undefined)] }).prune()).toEqual([]);
  });

  it("all stay if a sandbox in the store cannot be read", async () => {
    const kept = [release("1"), release("3")];
    const sandboxes = {
      ...saved("3"),
      get requirements(): never {
        throw new Error("unreadable");
      },
    };
    await expect(keeper(kept, { sandboxes: [sandboxes] }).prune()).rejects.toThrow("unreadable");
    expect(kept).toHaveLength(2);
  });
});
