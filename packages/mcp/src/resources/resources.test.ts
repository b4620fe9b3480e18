import { describe, expect, it } from "vitest";
import { connectMcp } from "../testing/mcp-bed.ts";

describe("resources", () => {
  it("are listed as templates, without creating a sandbox", async () => {
    const { node, mcp } = await connectMcp();
    const { resourceTemplates } = await mcp.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
      "sandbox://{id}/files{+path}",
      "sandbox://{id}/processes/{process}/output",
    ]);
    expect((await mcp.listResources()).resources).toEqual([]);
    expect(node.sandboxes).toHaveLength(0);
  });

  it("are files, as text or as bytes, with any name", async () => {
    const { mcp, session, call } = await connectMcp();
    await call("write_file", { path: "/d/a b%.md", content: "# hi" });
    await call("upload_file", { path: "/d/p.png", content_base64: "AAEC" });
    const base = `sandbox://${session.defaultId}/files`;
    const text = await mcp.readResource({ uri: `${base}/d/${encodeURIComponent("a b%.md")}` });
    expect(text.contents).toMatchObject([{ mimeType: "text/markdown", text: "# hi" }]);
    const bytes = await mcp.readResource({ uri: `${base}/d/p.png` });
    expect(bytes.contents).toMatchObject([{ mimeType: "image/png", blob: "AAEC" }]);
    const missing = mcp.readResource({ uri: `${base}/none` });
    await expect(missing).rejects.toThrow("none");
  });

  it("are the output of processes", async () => {
    const { node, mcp, session, call } = await connectMcp({ limits: { outputBytes: 4 } });
    node.onExec(() => ({ stdout: "first last" }));
    const { process_id } = (await call("start_process", { command: "job" })).structured;
    await call("write_process_input", { process_id, input: "", close: true });
    await call("read_process_output", { process_id, wait_seconds: 20, wait_for: "exit" });
    const { resources } = await mcp.listResources();
    const uri = `sandbox://${session.defaultId}/processes/${process_id}/output`;
    expect(resources).toContainEqual(expect.objectContaining({ uri, name: "job" }));
    expect((await mcp.readResource({ uri })).contents).toMatchObject([{ text: "last" }]);
  });

  it("are completed: ids of sandboxes and processes, and paths", async () => {
    const { mcp, session, call } = await connectMcp();
    await call("write_file", { path: "/d/one.txt", content: "" });
    await call("write_file", { path: "/d/two.txt", content: "" });
    const { process_id } = (await call("start_process", { command: "job" })).structured;
    const id = session.defaultId as string;
    const complete = async (uri: string, argument: { name: string; value: string }) => {
      const ref = { type: "ref/resource" as const, uri };
      const { completion } = await mcp.complete({ ref, argument, context: { arguments: { id } } });
      return completion.values;
    };
    const files = "sandbox://{id}/files{+path}";
    expect(await complete(files, { name: "id", value: id.slice(0, 4) })).toEqual([id]);
    expect(await complete(files, { name: "path", value: "/d/o" })).toEqual(["/d/one.txt"]);
    const output = "sandbox://{id}/processes/{process}/output";
    expect(await complete(output, { name: "process", value: "" })).toEqual([process_id]);
  });
});
