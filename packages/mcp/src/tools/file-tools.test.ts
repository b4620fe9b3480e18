import { describe, expect, it } from "vitest";
import { connectMcp } from "../testing/mcp-bed.ts";

const picture = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 255);

describe("files", () => {
  it("are written and read as text", async () => {
    const { call } = await connectMcp();
    const written = await call("write_file", { path: "/a/b.txt", content: "grüße" });
    expect(written.structured).toMatchObject({ path: "/a/b.txt", size_bytes: 7 });
    const read = await call("read_file", { path: "/a/b.txt" });
    expect(read).toMatchObject({ text: "grüße", structured: { content: "grüße", size_bytes: 7, next_offset: null } });
    const listed = await call("list_directory", { path: "/a" });
    expect(listed.text).toContain("b.txt");
    expect(listed.structured.entries).toMatchObject([{ kind: "file", size_bytes: 7 }]);
  });

  it("that are long are read in parts that never split a character", async () => {
    const { call } = await connectMcp({ limits: { fileBytes: 4 } });
    const content = "ab€€cd€";
    await call("write_file", { path: "/long", content });
    let read = "";
    for (let offset: number | null = 0; offset !== null; ) {
      const { structured, text } = await call("read_file", { path: "/long", offset });
      if (structured.next_offset !== null) expect(text).toContain(`offset ${structured.next_offset}`);
      read += structured.content;
      offset = structured.next_offset;
    }
    expect(read).toBe(content);
  });

  it("that are binary are refused with a pointer to download_file", async () => {
    const { call, refusal } = await connectMcp();
    await call("upload_file", { path: "/p.bin", content_base64: picture.toBase64() });
    expect(await refusal("read_file", { path: "/p.bin" })).toContain("download_file");
  });

  it("are transferred as bytes in both directions, long ones in parts", async () => {
    const { node, session, call, refusal } = await connectMcp({ limits: { transferBytes: 8 } });
    await call("upload_file", { path: "/p.bin", content_base64: picture.toBase64() });
    expect(node.files(session.defaultId as string).get("/p.bin")).toEqual(picture);
    const part = await call("download_file", { path: "/p.bin", length: 5 });
    expect(part.structured).toMatchObject({ size_bytes: 8, next_offset: 5 });
    const rest = await call("download_file", { path: "/p.bin", offset: 5 });
    expect(rest.structured.next_offset).toBeNull();
    const both = [part, rest].flatMap(({ structured }) => [...Uint8Array.fromBase64(structured.content_base64)]);
    expect(both).toEqual([...picture]);
    expect(await refusal("upload_file", { path: "/q", content_base64: new Uint8Array(9).toBase64() })).toContain(
      "at most 8",
    );
    expect(await call("upload_file", { path: "/q", content_base64: "no base64!" })).toMatchObject({ isError: true });
  });

  it("that are images are returned as images", async () => {
    const { mcp, call } = await connectMcp();
    await call("upload_file", { path: "/p.png", content_base64: picture.toBase64() });
    const { content } = await mcp.callTool({ name: "download_file", arguments: { path: "/p.png" } });
    expect(content).toMatchObject([{ type: "text" }, { type: "image", mimeType: "image/png" }]);
  });

  it("of a very large directory are listed only up to the limit", async () => {
    const { call } = await connectMcp({ limits: { directoryEntries: 2 } });
    for (const name of ["c", "a", "b"]) await call("write_file", { path: `/d/${name}`, content: "" });
    const { text, structured } = await call("list_directory", { path: "/d" });
    expect(structured.entries.map(({ path }: { path: string }) => path)).toEqual(["a", "b"]);
    expect(structured.has_more).toBe(true);
    expect(text).toContain("… and 1 more");
  });
});

describe("code", () => {
  it("runs in the given language, the sandbox's, or python", async () => {
    const { node, call } = await connectMcp();
    const seen: unknown[] = [];
    node.onExec(({ code, language }) => {
      seen.push([language, code]);
      return { stdout: "42\n" };
    });
    const { structured } = await call("execute_code", { code: "print(6 * 7)" });
    expect(structured).toMatchObject({ exit_code: 0, stdout: "42\n" });
    await call("execute_code", { code: "1", language: "node" });
    const { structured: created } = await call("create_sandbox", { language: "bash" });
    await call("execute_code", { code: "true", sandbox_id: created.sandbox_id });
    expect(seen).toEqual([
      ["python", "print(6 * 7)"],
      ["javascript", "1"],
      ["bash", "true"],
    ]);
  });

  it("in an unknown language is refused with the known ones", async () => {
    const { refusal } = await connectMcp();
    expect(await refusal("execute_code", { code: "x", language: "cobol" })).toContain("python");
  });
});
