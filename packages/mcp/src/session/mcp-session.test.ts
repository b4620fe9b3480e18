import { Client, SandboxError } from "@sandpiper/sdk";
import { createMemoryServer } from "@sandpiper/sdk/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { connectMcp } from "../testing/mcp-bed.ts";

describe("a session", () => {
  it("creates no sandbox before one is used", async () => {
    const { node, mcp, call } = await connectMcp();
    await mcp.listTools();
    await call("list_sandboxes");
    await call("destroy_sandbox");
    expect(node.sandboxes).toHaveLength(0);
  });

  it("creates one default sandbox for any number of concurrent calls", async () => {
    const { node, call } = await connectMcp();
    await Promise.all([1, 2, 3].map(() => call("run_command", { command: "true" })));
    expect(node.sandboxes).toHaveLength(1);
  });

  it("creates sandboxes that the node destroys when they are idle, even with running processes", async () => {
    const { node, call } = await connectMcp({ idleTimeoutMs: 1234 });
    await call("run_command", { command: "true" });
    expect(node.sandboxes[0]).toMatchObject({ idleTimeoutMs: 1234, idleExcept: ["process", "output"] });
  });

  it("creates sandboxes with its defaults, unless a call overrides them", async () => {
    const { node, call } = await connectMcp({ defaults: { memoryMib: 64, vcpuCount: 1, name: undefined } });
    await call("run_command", { command: "true" });
    await call("create_sandbox", { memory_mib: 128 });
    expect(node.sandboxes.map(({ memoryMib, vcpuCount }) => [memoryMib, vcpuCount])).toEqual([
      [64, 1],
      [128, 1],
    ]);
  });

  it("destroys its sandboxes at its end, but not kept ones or those of others", async () => {
    const { node, client, session, call } = await connectMcp();
    await client.sandboxes.create({ name: "other" });
    await call("run_command", { command: "true" });
    await call("create_sandbox", { name: "second" });
    await call("create_sandbox", { name: "kept", keep: true });
    await call("fork_sandbox", { name: "copy" });
    expect(node.sandboxes).toHaveLength(5);
    await session[Symbol.asyncDispose]();
    expect(node.sandboxes.map(({ name }) => name)).toEqual(["other", "kept"]);
  });

  it("destroys sandboxes that are still being created when it ends", async () => {
    const { node, client, session, call } = await connectMcp();
    const { sandboxes } = client;
    const create = sandboxes.create.bind(sandboxes);
    const asked = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    sandboxes.create = async (options) => {
      asked.resolve();
      await gate.promise;
      return await create(options);
    };
    const calling = call("run_command", { command: "true" });
    await asked.promise;
    const ending = session[Symbol.asyncDispose]();
    gate.resolve();
    await ending;
    await calling;
    expect(node.sandboxes).toHaveLength(0);
  });

  it("refuses calls after its end", async () => {
    const { session, call } = await connectMcp();
    await session[Symbol.asyncDispose]();
    expect(await call("run_command", { command: "true" })).toMatchObject({ isError: true });
  });

  it("reports a sandbox that could not be destroyed", async () => {
    const reported: SandboxError[] = [];
    const { session, call } = await connectMcp({ onError: (error) => reported.push(error) });
    await call("run_command", { command: "true" });
    const [sandbox] = session.own;
    if (sandbox === undefined) throw new Error("no sandbox was created");
    sandbox.destroy = () =>
      Promise.reject(SandboxError.fromFields({ code: "unavailable", reason: "away", message: "away" }));
    await session[Symbol.asyncDispose]();
    expect(reported).toMatchObject([{ reason: "away" }]);
  });

  it("reports that the default sandbox is gone, and creates another in the next call", async () => {
    const { node, client, session, call, refusal } = await connectMcp();
    const first = await call("run_command", { command: "true" });
    await (await client.sandboxes.connect(first.structured.sandbox_id)).destroy();
    expect(await refusal("run_command", { command: "true" })).toContain(
      "The next call without sandbox_id creates a new one.",
    );
    const second = await call("run_command", { command: "true" });
    expect(second.structured.sandbox_id).not.toBe(first.structured.sandbox_id);
    expect(session.defaultId).toBe(second.structured.sandbox_id);
    expect(node.sandboxes).toHaveLength(1);
  });

  it("keeps all sandboxes when it is configured to", async () => {
    const { node, session, call } = await connectMcp({ keep: "always" });
    await call("run_command", { command: "true" });
    await session[Symbol.asyncDispose]();
    expect(node.sandboxes).toHaveLength(1);
    expect(node.sandboxes[0]?.idleTimeoutMs ?? null).toBeNull();
  });

  it("asks for its client when it is first needed, and again after a failure", async () => {
    const client = new Client(createMemoryServer().clientOptions);
    onTestFinished(() => client.close());
    let asked = 0;
    const connect = async () => {
      asked++;
      if (asked === 1)
        throw SandboxError.fromFields({ code: "unavailable", reason: "no_runsc", message: "runsc not found" });
      return client;
    };
    const { mcp, call } = await connectMcp({ client: connect });
    await mcp.listTools();
    await mcp.listResources();
    expect(asked).toBe(0);
    const failed = await call("run_command", { command: "true" });
    expect(failed).toMatchObject({ isError: true, text: expect.stringContaining("runsc not found") });
    for (const _ of [1, 2]) expect((await call("run_command", { command: "true" })).isError).toBe(false);
    expect(asked).toBe(2);
  });

  it("refuses to keep a sandbox when its node ends with the session", async () => {
    const { node, refusal } = await connectMcp({ keep: "never" });
    expect(await refusal("create_sandbox", { keep: true })).toContain("sandpiper up");
    expect(node.sandboxes).toHaveLength(0);
  });
});
