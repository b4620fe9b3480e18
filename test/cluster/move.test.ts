import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { runCli, sandpiper } from "../e2e/run-cli.ts";
import { collectOutput, undisturbed } from "../node/numbered-output.ts";
import type { ClusterNode } from "./cluster-node.ts";
import { startSharedBed } from "./shared-bed.ts";

const COUNT = "i=0; while [ ! -e /tmp/enough ]; do i=$((i+1)); echo $i; sleep 0.02; done; echo total $i";
const UNKNOWN = "00000000-0000-4000-8000-000000000000";

describe("a sandbox that is moved on request", () => {
  it("keeps its processes and terminals connected, through the SDK and the command line", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const [first, second, third] = bed.nodes as [ClusterNode, ClusterNode, ClusterNode];
    await using client = first.client();
    const ids = new Map<ClusterNode, string>();
    for (const node of bed.nodes) ids.set(node, await nodeId(node, first.apiKey));
    const idOf = (node: ClusterNode) => ids.get(node) as string;
    const sandbox = await client.sandboxes.create({ name: "moving", memoryMib: 128 });
    expect(sandbox.info.node).toBe(idOf(first));
    const counting = collectOutput(await sandbox.start(COUNT));
    const shell = await sandbox.pty({ rows: 24, cols: 80 });
    const screen = collectOutput(shell);
    await shell.write("kept=memory; echo is $((40 + 2))\n");
    await expect.poll(screen.text).toContain("is 42");

    expect(await sandbox.moveTo(idOf(second))).toMatchObject({ state: "ready", node: idOf(second) });
    await shell.write("echo $kept $((50 + 5))\n");
    await expect.poll(screen.text).toContain("memory 55");
    expect(await sandbox.moveTo(idOf(second))).toMatchObject({ node: idOf(second) });

    const env = { SANDPIPER_URL: second.url, SANDPIPER_API_KEY: first.apiKey };
    const cli = (...argv: string[]) => runCli(argv, { env });
    const short = (node: ClusterNode) => idOf(node).slice(0, 8);
    expect(await cli("move", "moving", "--to", short(third))).toMatchObject({
      exitCode: 0,
      stdout: `moved to node ${short(third)}\n`,
    });
    expect(await cli("move", "moving", "--to", short(third))).toMatchObject({
      exitCode: 0,
      stdout: `already on node ${short(third)}\n`,
    });
    const completed = spawnSync("bash", ["--norc", "-c", await completionOf("--to", short(first).slice(0, 4))], {
      encoding: "utf8",
      env: { ...process.env, ...env, PATH: `${join(sandpiper, "..")}:${process.env["PATH"]}` },
    });
    expect(completed.stdout).toContain(idOf(first));

    const { stdout } = await cli("move", "moving", "--json");
    expect([idOf(first), idOf(second)]).toContain(JSON.parse(stdout).node);
    await shell.write("echo $kept $((60 + 6)); exit 7\n");
    await expect.poll(screen.text).toContain("memory 66");
    expect(await shell.wait()).toMatchObject({ exitCode: 7 });
    await sandbox.exec("touch /tmp/enough");
    const text = await counting.ended;
    expect(text).toBe(undisturbed(text));
    expect((await sandbox.refresh()).rolledBackTo).toBeNull();
  });

  it("stays where it is if the node is unknown or gone, with an error that names it", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const [first, second] = bed.nodes as [ClusterNode, ClusterNode, ClusterNode];
    await using client = first.client();
    const sandbox = await client.sandboxes.create({ memoryMib: 128 });
    const { node } = sandbox.info;
    const process = await sandbox.start("cat", { stdin: true });
    expect(await rejection(sandbox.moveTo(UNKNOWN))).toMatchObject({ code: "not_found", reason: "no_such_node" });
    const gone = await nodeId(second, first.apiKey);
    await second.kill9();
    const error = await rejection(sandbox.moveTo(gone));
    expect(error).toMatchObject({ code: "unavailable", reason: "target_node_unreachable" });
    expect(error.message).toContain(gone);
    expect((await sandbox.refresh()).node).toBe(node);
    await process.write("still here\n");
    await process.closeStdin();
    expect(await collectOutput(process).ended).toBe("still here\n");
  });
});

async function nodeId(node: ClusterNode, apiKey: string): Promise<string> {
  await using client = node.client(apiKey);
  return (await client.nodes.list()).find(({ isThisNode }) => isThisNode)?.id as string;
}

/** A script that prints what bash offers after these words. */
async function completionOf(...words: string[]): Promise<string> {
  const { stdout } = await runCli(["completion", "bash"]);
  const all = ["sandpiper", "move", "moving", ...words];
  const line = `COMP_WORDS=(${all.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${all.length - 1}`;
  return `${stdout}\n${line}; _sandpiper; printf '%s\\n' "\${COMPREPLY[@]}"`;
}
