import { expect, it } from "vitest";
import { StdioBed } from "./stdio-bed.ts";

it("an MCP client writes, runs, fixes, checkpoints, restores and forks a program, and leaves nothing behind", async () => {
  const bed = new StdioBed();
  await using agent = await bed.connect(["--memory", "256"]);
  const { call } = { call: agent.call.bind(agent) };

  const made = await call("create_sandbox", { name: "work" });
  const sandbox_id = made.structured.sandbox_id as string;
  expect(made.structured).toMatchObject({ provider: "gvisor", memory_mib: 256, is_temporary: true, is_default: false });

  await call("write_file", {
    sandbox_id,
    path: "mean.py",
    content: "import sys\nprint(sum(map(int, sys.stdin)) / n)\n",
  });
  const failed = await call("run_command", { sandbox_id, command: "python3 mean.py", stdin: "1\n2\n3\n" });
  expect(failed.isError).toBe(false);
  expect(failed.structured).toMatchObject({ exit_code: 1, stdout: "" });
  expect(failed.text).toContain("NameError: name 'n' is not defined");

  const content = "import sys\nnumbers = list(map(int, sys.stdin))\nprint(sum(numbers) / len(numbers))\n";
  await call("write_file", { sandbox_id, path: "mean.py", content });
  const mended = await call("run_command", { sandbox_id, command: "python3 mean.py", stdin: "1\n2\n3\n" });
  expect(mended.structured).toMatchObject({ exit_code: 0, stdout: "2.0\n" });

  const started = await call("start_process", {
    sandbox_id,
    command: 'echo ready; while read -r word; do echo "got $word"; done; echo bye >&2; exit 4',
  });
  const { process_id } = started.structured;
  const first = await call("read_process_output", { sandbox_id, process_id, wait_seconds: 20 });
  expect(first.structured).toMatchObject({ output: "ready\n", next_offset: 6, is_running: true });
  await call("write_process_input", { sandbox_id, process_id, input: "one\n" });
  const second = await call("read_process_output", { sandbox_id, process_id, offset: 6, wait_seconds: 20 });
  expect(second.structured).toMatchObject({ output: "got one\n", next_offset: 14 });

  const saved = await call("checkpoint_sandbox", { sandbox_id, name: "before" });
  expect(saved.structured).toMatchObject({ keeps: "memory" });
  await call("write_process_input", { sandbox_id, process_id, input: "two\n", close: true });
  const ended = await call("read_process_output", {
    sandbox_id,
    process_id,
    offset: 14,
    wait_seconds: 20,
    wait_for: "exit",
  });
  expect(ended.structured).toMatchObject({ output: "got two\nbye\n", is_running: false, exit_code: 4 });
  await call("run_command", { sandbox_id, command: "rm mean.py" });
  expect(await call("read_file", { sandbox_id, path: "mean.py" })).toMatchObject({ isError: true });

  const restored = await call("restore_sandbox", { sandbox_id, checkpoint: "before" });
  expect(restored.structured.checkpoint_id).toBe(saved.structured.checkpoint_id);
  expect((await call("read_file", { sandbox_id, path: "mean.py" })).structured.content).toBe(content);
  // The restored process runs as it did at the checkpoint, before it read the second word.
  await call("write_process_input", { sandbox_id, process_id, input: "three\n" });
  const again = await call("read_process_output", { sandbox_id, process_id, offset: 14, wait_seconds: 20 });
  expect(again.structured).toMatchObject({ output: "got three\n", is_running: true });

  const forked = await call("fork_sandbox", { sandbox_id });
  const copy = forked.structured.forks[0].sandbox_id as string;
  bed.saw(copy);
  await call("run_command", { sandbox_id: copy, command: "echo changed > mean.py" });
  expect((await call("read_file", { sandbox_id, path: "mean.py" })).structured.content).toBe(content);

  const default_ = await call("execute_code", { code: "print(6 * 7)" });
  expect(default_.structured).toMatchObject({ exit_code: 0, stdout: "42\n" });
  expect([sandbox_id, copy]).not.toContain(default_.structured.sandbox_id);
  const { resources } = await agent.mcp.listResources();
  expect(resources.map(({ name }) => name)).toEqual(expect.arrayContaining(["/home/user/mean.py"]));
  const uri = `sandbox://${copy}/files/home/user/mean.py`;
  expect((await agent.mcp.readResource({ uri })).contents).toMatchObject([{ text: "changed\n" }]);

  const listed = await call("list_sandboxes");
  expect(listed.structured.sandboxes).toHaveLength(3);
  for (const id of [sandbox_id, copy]) await call("destroy_sandbox", { sandbox_id: id });
  const after = await call("list_sandboxes");
  expect(after.structured.sandboxes).toMatchObject([{ sandbox_id: default_.structured.sandbox_id, is_default: true }]);

  await agent.close();
  await bed.expectNothingLeft();
});

it("the newest protocol revision uses one default sandbox for all calls", async () => {
  const bed = new StdioBed();
  await using agent = await bed.connect([], { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  expect(agent.mcp.getNegotiatedProtocolVersion()).toBe("2026-07-28");
  const written = await agent.call("write_file", { path: "a", content: "one" });
  const read = await agent.call("read_file", { path: "a" });
  expect(read.structured).toMatchObject({ content: "one", sandbox_id: written.structured.sandbox_id });
  await agent.close();
  await bed.expectNothingLeft();
});

it("a client that only lists tools and resources starts no node", async () => {
  const bed = new StdioBed();
  await using agent = await bed.connect();
  expect((await agent.mcp.listTools()).tools).toHaveLength(20);
  expect((await agent.mcp.listResources()).resources).toEqual([]);
  expect(bed.nodeHomes()).toEqual([]);
});
