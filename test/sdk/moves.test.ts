import { Client, Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { collectOutput, numbersTo } from "../node/numbered-output.ts";
import { Balancer } from "./balancer.ts";
import { useNode } from "./sdk-node.ts";

const node = await useNode();

describe("a client behind a load balancer", () => {
  it("sends the newest affinity cookie with its requests and its connection", async () => {
    await using sandbox = await node.client.sandboxes.create();
    await using balancer = await Balancer.start(node.url);
    await using client = new Client({ url: balancer.url, apiKey: node.apiKey });
    const behind = await client.sandboxes.connect(sandbox.id);
    expect((await behind.exec("echo one")).stdout).toBe("one\n");
    expect(balancer.upgradeCookies).toEqual(["SERVERID=node-1"]);
    client.close();
    balancer.move();
    await behind.refresh();
    expect((await behind.exec("echo two")).stdout).toBe("two\n");
    expect(balancer.upgradeCookies).toEqual(["SERVERID=node-1", balancer.cookie]);
  });

  it("receives all output once and delivers all input once while its sandbox moves repeatedly", async () => {
    await using sandbox = await node.client.sandboxes.create();
    await using balancer = await Balancer.start(node.url);
    // A client needs only the address and the sandbox's token.
    const behind = await Sandbox.connect(sandbox.id, { url: balancer.url, token: sandbox.token });
    await using cat = await behind.start("cat", { stdin: true });
    let moves = 0;
    let lines = 0;
    const count = "i=0; while [ ! -e enough ]; do i=$((i+1)); seq $((i*500-499)) $((i*500)); sleep 0.01; done";
    const counting = behind.exec(count, {
      onStdout: (bytes) => {
        const before = Math.floor(lines / 3_000);
        lines += bytes.filter((byte) => byte === 10).length;
        if (Math.floor(lines / 3_000) > before) moves += balancer.move();
      },
    });
    for (let line = 1; line <= 100; line++) await cat.write(`${line}\n`);
    await expect.poll(() => moves).toBeGreaterThanOrEqual(5);
    await sandbox.files.write("enough", "");
    const { stdout, exitCode, truncated } = await counting;
    expect([exitCode, truncated, stdout === numbersTo(lines)]).toEqual([0, false, true]);
    await cat.closeStdin();
    expect(await collectOutput(cat).ended).toBe(numbersTo(100));
  });
});
