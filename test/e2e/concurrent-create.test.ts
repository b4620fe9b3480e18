import { SandboxError } from "@sandpiper/core";
import { createManager } from "@sandpiper/node";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { findLeftovers } from "./leftovers.ts";

const scratch = sharedDirectory("e2e");
const CREATES = 100;
const LIMIT = 50;

describe(`${CREATES} concurrent creates with maxSandboxes ${LIMIT}`, () => {
  it("create exactly that many sandboxes, refuse the others at once, and leak none", { timeout: 240_000 }, async () => {
    await using manager = createManager({ home: scratch, maxSandboxes: LIMIT });
    const endings: string[] = [];
    const creates = Array.from({ length: CREATES }, async () => {
      try {
        const sandbox = await manager.create();
        endings.push("created");
        return sandbox;
      } catch (thrown) {
        const { code, reason } = SandboxError.from(thrown);
        endings.push(`${code}/${reason}`);
        return undefined;
      }
    });
    const sandboxes = (await Promise.all(creates)).filter((sandbox) => sandbox !== undefined);

    // Immediately: every refusal came before the first boot was done.
    const refusals = Array.from({ length: CREATES - LIMIT }, () => "resource_exhausted/sandbox_limit");
    expect(endings).toEqual([...refusals, ...Array.from({ length: LIMIT }, () => "created")]);
    expect(manager.count).toBe(LIMIT);
    expect(new Set(sandboxes.map(({ config }) => config.vsockCid)).size).toBe(LIMIT);

    const answers = await Promise.all(sandboxes.map((sandbox) => sandbox.exec(["echo", sandbox.id])));
    expect(answers.map(({ stdout }) => stdout)).toEqual(sandboxes.map(({ id }) => `${id}\n`));

    const ids = sandboxes.map(({ id }) => id);
    expect((await manager.destroyAll()).failed).toEqual([]);
    expect(manager.count).toBe(0);
    expect(findLeftovers(scratch, ids)).toEqual([]);

    const next = await manager.create();
    expect((await next.exec("echo again")).stdout).toBe("again\n");
  });
});
