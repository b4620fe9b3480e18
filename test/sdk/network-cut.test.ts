import { createHash, randomBytes } from "node:crypto";
import { Client } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { numbersTo } from "../node/numbered-output.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import { useNode } from "./sdk-node.ts";

const node = await useNode();
/** 1.3 MB take more than half a second: at least two cuts interrupt every long output. */
const BAD_NETWORK = { cutEveryMs: 200, bytesPerMs: 2000 };

describe("a client whose connections are cut every 200 ms", () => {
  it("receives a command's whole output once", async () => {
    await using sandbox = await node.client.sandboxes.create();
    await using proxy = await CuttingProxy.start(node.url, BAD_NETWORK);
    await using client = new Client({ url: proxy.url, apiKey: node.apiKey });
    const cut = await client.sandboxes.connect(sandbox.id);
    const { stdout, exitCode, truncated } = await cut.exec("seq 1 200000");
    expect([exitCode, truncated, stdout === numbersTo(200_000)]).toEqual([0, false, true]);
    expect(proxy.cuts).toBeGreaterThanOrEqual(2);
  });

  it("delivers a process's whole input once", async () => {
    await using sandbox = await node.client.sandboxes.create();
    await using proxy = await CuttingProxy.start(node.url, BAD_NETWORK);
    await using client = new Client({ url: proxy.url, apiKey: node.apiKey });
    const cut = await client.sandboxes.connect(sandbox.id);
    await using process = await cut.start("cat", { stdin: true });
    const hash = createHash("sha256");
    const reading = (async () => {
      const read = createHash("sha256");
      for await (const bytes of process.stdout) read.update(bytes);
      return read.digest("hex");
    })();
    for (let piece = 0; piece < 20; piece++) {
      const bytes = randomBytes(100_000);
      hash.update(bytes);
      await process.write(bytes);
    }
    await process.closeStdin();
    expect(await reading).toBe(hash.digest("hex"));
    expect((await process.wait()).exitCode).toBe(0);
    expect(proxy.cuts).toBeGreaterThanOrEqual(2);
  });

  it("runs each of many commands exactly once", async () => {
    await using sandbox = await node.client.sandboxes.create();
    await using proxy = await CuttingProxy.start(node.url, { ...BAD_NETWORK, cutEveryMs: 100 });
    await using client = new Client({ url: proxy.url, apiKey: node.apiKey });
    const cut = await client.sandboxes.connect(sandbox.id);
    const numbers = Array.from({ length: 150 }, (_, index) => index);
    for (let at = 0; at < numbers.length; at += 5) {
      const batch = numbers.slice(at, at + 5);
      const results = await Promise.all(batch.map((number) => cut.exec(`echo ${number} >> ran; echo ${number}`)));
      expect(results.map(({ stdout }) => Number(stdout))).toEqual(batch);
    }
    const ran = (await sandbox.exec("sort -n ran")).stdout.trim().split("\n").map(Number);
    expect(ran).toEqual(numbers);
    expect(proxy.cuts).toBeGreaterThanOrEqual(2);
  });
});
