import { describe, expect, it } from "vitest";
import { connectMcp } from "../testing/mcp-bed.ts";

describe("run_command", () => {
  it("runs in the default sandbox, which is created once and kept for the next call", async () => {
    const { node, call } = await connectMcp();
    node.onExec(({ command }) => ({ stdout: `ran ${command}\n` }));
    const first = await call("run_command", { command: "a" });
    const second = await call("run_command", { command: "b" });
    expect(first).toMatchObject({ isError: false, structured: { exit_code: 0, stdout: "ran a\n", stderr: "" } });
    expect(second.structured.sandbox_id).toBe(first.structured.sandbox_id);
    expect(node.sandboxes).toHaveLength(1);
  });

  it("answers with both outputs of a command that failed", async () => {
    const { node, call } = await connectMcp();
    node.onExec(() => ({ stdout: "out", stderr: "no such file", exitCode: 2 }));
    const { isError, text, structured } = await call("run_command", { command: "false" });
    expect(isError).toBe(false);
    expect(structured).toMatchObject({ exit_code: 2, stdout: "out", stderr: "no such file", left_out: null });
    expect(text).toMatch(/^Exit code 2 after .*\nstdout:\nout\nstderr:\nno such file$/s);
  });
});
