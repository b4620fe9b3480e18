import { describe, expect, it } from "vitest";
import { connectMcp } from "../testing/mcp-bed.ts";

describe("output that does not fit into an answer", () => {
  const lines = Array.from({ length: 100 }, (_, index) => `line ${index} €€\n`).join("");

  it("is cut in the middle, and can be read from the given offset", async () => {
    const { node, call } = await connectMcp({ limits: { outputBytes: 100 } });
    node.onExec(() => ({ stdout: lines }));
    const { text, structured } = await call("run_command", { command: "seq" });
    const { process_id, left_out } = structured;
    expect(structured.stdout.startsWith("line 0 €€\n")).toBe(true);
    expect(structured.stdout.endsWith("line 99 €€\n")).toBe(true);
    expect(text).toContain(`read_process_output, process_id "${process_id}", offset ${left_out.offset}`);

    let output = Buffer.from(lines).subarray(0, left_out.offset).toString();
    let offset = left_out.offset;
    for (let more = true; more; ) {
      const { structured: part } = await call("read_process_output", { process_id, offset });
      expect(Buffer.byteLength(part.output)).toBeLessThanOrEqual(100);
      output += part.output;
      offset = part.next_offset;
      more = part.has_more;
    }
    expect(output).toBe(lines);
  });

  it("is kept for the newest commands, and only if it did not fit", async () => {
    const { node, call, refusal } = await connectMcp({ limits: { outputBytes: 10, keptCommands: 2 } });
    node.onExec(({ command }) => ({ stdout: command === "long" ? lines : "short" }));
    const ids = [];
    for (const command of ["long", "short", "long", "long"]) {
      ids.push((await call("run_command", { command })).structured.process_id);
    }
    await expect
      .poll(async () => {
        const { structured } = await call("list_processes");
        return structured.processes.map(({ process_id }: { process_id: string }) => process_id).sort();
      })
      .toEqual([ids[2], ids[3]].sort());
    expect(ids[1]).toBeNull();
    expect(await refusal("read_process_output", { process_id: ids[0] })).toContain("its processes:");
  });
});

describe("a process in the background", () => {
  it("is read when it has written something, and again when it has ended", async () => {
    const { node, call } = await connectMcp();
    const answer = Promise.withResolvers<{ stdout: string; exitCode: number }>();
    node.onExec(() => answer.promise);
    const { structured } = await call("start_process", { command: "serve" });
    const { process_id } = structured;
    const early = await call("read_process_output", { process_id });
    expect(early.structured).toMatchObject({ output: "", next_offset: 0, is_running: true, exit_code: null });
    const none = await call("read_process_output", { process_id, wait_seconds: 0.05 });
    expect(none.structured).toMatchObject({ output: "", is_running: true });
    await call("write_process_input", { process_id, input: "go\n", close: true });
    const waiting = call("read_process_output", { process_id, wait_seconds: 20, wait_for: "exit" });
    answer.resolve({ stdout: "served", exitCode: 3 });
    const late = await waiting;
    expect(late.structured).toMatchObject({ output: "served", next_offset: 6, is_running: false, exit_code: 3 });
    expect(late.text).toBe("served\n[process has ended with exit code 3; next offset 6]");
  });

  it("receives its input and the end of it", async () => {
    const { node, call, refusal } = await connectMcp();
    node.onExec(({ stdin }) => ({ stdout: `read ${stdin}` }));
    const { process_id } = (await call("start_process", { command: "cat" })).structured;
    await call("write_process_input", { process_id, input: "one " });
    await call("write_process_input", { process_id, input: "two", close: true });
    const { structured } = await call("read_process_output", { process_id, wait_seconds: 20, wait_for: "exit" });
    expect(structured.output).toBe("read one two");
    expect(await refusal("write_process_input", { process_id, input: "three" })).toContain("process_ended");
  });

  it("is the sandbox's shell without a command", async () => {
    const { node, call } = await connectMcp();
    node.onExec(({ command, argv, stdin }) => ({ stdout: `${command} ${argv} ${stdin}` }));
    const { process_id } = (await call("start_process")).structured;
    await call("write_process_input", { process_id, input: "pwd", close: true });
    const { structured } = await call("read_process_output", { process_id, wait_seconds: 20, wait_for: "exit" });
    expect(structured.output).toBe("undefined undefined pwd");
  });

  it("can be killed, and its end can be read", async () => {
    const { call } = await connectMcp();
    const { process_id } = (await call("start_process", { command: "sleep 100" })).structured;
    const killed = await call("kill_process", { process_id });
    expect(killed.structured).toMatchObject({ is_running: false, signal: "SIGKILL" });
    expect(killed.text).toBe(`Process ${process_id} was ended by SIGKILL.`);
    const again = await call("kill_process", { process_id });
    expect(again.isError).toBe(false);
  });
});
