import { SandboxError } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { answerOf, connectMcp } from "../testing/mcp-bed.ts";
import { tools } from "../tools/tool-table.ts";

describe("every tool", () => {
  it("has a description, annotations, and schemas for its input and output", async () => {
    const { mcp } = await connectMcp();
    const { tools: listed } = await mcp.listTools();
    expect(listed.map(({ name }) => name)).toEqual(tools.map(({ name }) => name));
    for (const { name, title, description, annotations, inputSchema, outputSchema } of listed) {
      expect([title, description], name).toEqual([expect.any(String), expect.any(String)]);
      expect(Object.keys(annotations ?? {}).sort(), name).toEqual([
        "destructiveHint",
        "idempotentHint",
        "openWorldHint",
        "readOnlyHint",
      ]);
      expect([inputSchema.type, outputSchema?.["type"]], name).toEqual(["object", "object"]);
      expect(annotations?.readOnlyHint === true && annotations.destructiveHint === true, name).toBe(false);
    }
  });

  it("uses the default sandbox if none is named", async () => {
    const { mcp } = await connectMcp();
    const { tools: listed } = await mcp.listTools();
    const without = ["create_sandbox", "list_sandboxes"];
    for (const { name, inputSchema } of listed.filter(({ name }) => !without.includes(name))) {
      expect(inputSchema.properties, name).toHaveProperty("sandbox_id");
      expect(inputSchema.required ?? [], name).not.toContain("sandbox_id");
    }
  });
});

describe("a failure", () => {
  it("is an answer that lists the wrong arguments", async () => {
    const { refusal } = await connectMcp();
    expect(await refusal("run_command", { command: 7 })).toContain("command");
  });

  it("names the next step", async () => {
    const { refusal } = await connectMcp();
    const text = await refusal("read_file", { path: "nothing" });
    expect(text).toContain("(not_found: no_such_file)");
    expect(text).toContain("Call list_directory to see the files.");
  });

  it("about a quota names the quota and the next step", async () => {
    const { client, refusal } = await connectMcp();
    client.sandboxes.create = () =>
      Promise.reject(
        SandboxError.fromFields({
          code: "resource_exhausted",
          reason: "quota_exceeded",
          message: "no sandbox was created: the key k may have 1 sandbox, uses 1 and wants 1 more",
          hint: "destroy a sandbox of this key, ask for less, or use a key with a larger quota",
        }),
      );
    const text = await refusal("run_command", { command: "true" });
    expect(text).toContain("the key k may have 1 sandbox");
    expect(text).toContain("destroy_sandbox");
  });

  it("about an unknown sandbox_id suggests how to find one", async () => {
    const { refusal } = await connectMcp();
    expect(await refusal("run_command", { sandbox_id: crypto.randomUUID(), command: "true" })).toContain(
      "Omit sandbox_id",
    );
  });
});

describe("a command under way", () => {
  it("sends progress to a client that asked for it", async () => {
    const { node, mcp } = await connectMcp({ limits: { progressEveryMs: 5 } });
    const progressed = Promise.withResolvers<void>();
    const messages: (string | undefined)[] = [];
    node.onExec(async () => {
      await progressed.promise;
      return { stdout: "done" };
    });
    const onprogress = ({ progress, message }: { progress: number; message?: string | undefined }) => {
      messages.push(message);
      if (progress >= 2) progressed.resolve();
    };
    const request = { name: "run_command", arguments: { command: "make" } };
    const result = await mcp.callTool(request, { onprogress });
    expect(answerOf(result as never).structured.stdout).toBe("done");
    expect(messages[0]).toMatch(/^running for \d+ s, 0 bytes of output$/);
  });

  it("is killed and forgotten when the client cancels it", async () => {
    const { node, client, session, mcp } = await connectMcp();
    const started = Promise.withResolvers<void>();
    node.onExec(() => {
      started.resolve();
      return new Promise(() => {});
    });
    const controller = new AbortController();
    const calling = mcp.callTool(
      { name: "run_command", arguments: { command: "sleep 100" } },
      { signal: controller.signal },
    );
    calling.catch(() => {});
    await started.promise;
    const sandbox = await client.sandboxes.connect(session.defaultId as string);
    expect(await sandbox.processes()).toMatchObject([{ isRunning: true }]);
    controller.abort();
    await expect(calling).rejects.toThrow();
    await expect.poll(() => sandbox.processes()).toEqual([]);
  });
});
