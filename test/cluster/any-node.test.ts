import { rejection } from "@sandpiper/core/testing";
import { Client, Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import type { ClusterNode } from "./cluster-node.ts";
import { handOff } from "./hand-off.ts";
import { startSharedBed } from "./shared-bed.ts";

const codeOf = async (work: Promise<unknown>) => (await rejection(work)).code;

describe("a cluster", () => {
  it("serves a sandbox from every node, by API key and by token, before and after a handoff", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const [first, second, third] = bed.nodes as [ClusterNode, ClusterNode, ClusterNode];
    const { apiKey } = first;
    const made = await first.client().sandboxes.create({ memoryMib: 128 });
    for (const holder of [first, second]) {
      if (holder === second) await handOff(second, made.id, apiKey);
      for (const { url } of bed.nodes) {
        await using client = new Client({ url, apiKey });
        const sandbox = await client.sandboxes.connect(made.id);
        expect((await sandbox.exec("cat; exit 3", { stdin: "piped\n" })).stdout).toBe("piped\n");
        await sandbox.files.write("file", url);
        const listed = await Array.fromAsync(client.sandboxes.list());
        expect(listed.map(({ id }) => id)).toEqual([made.id]);
        const byToken = await Sandbox.connect(made.id, { url, token: made.token });
        expect(await byToken.files.readText("file")).toBe(url);
        await using process = await byToken.start(["cat"], { stdin: true });
        await process.write("to and fro\n");
        await process.closeStdin();
        expect(Buffer.concat(await Array.fromAsync(process.stdout)).toString()).toBe("to and fro\n");
      }
    }
    const other = await third.client(apiKey).sandboxes.create({ memoryMib: 128 });
    for (const { url } of bed.nodes) {
      const denied = Sandbox.connect(made.id, { url, token: other.token });
      expect(await codeOf(denied)).toMatch(/permission_denied|not_found/);
    }
    const handles = await Promise.all(bed.nodes.map((node) => node.client(apiKey).sandboxes.connect(made.id)));
    await handles[2]?.destroy();
    for (const handle of handles) expect(await codeOf(handle.exec("true"))).toMatch(/gone|not_found/);
  });

  it("accepts a new key on every node immediately, and rejects a revoked key on every node", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const [first, second] = bed.nodes;
    const admin = first.client();
    const { id, key } = await admin.keys.create({ name: "one", tenant: "one" });
    const sandbox = await second.client(key).sandboxes.create({ memoryMib: 128 });
    const sleeping = await sandbox.start("sleep 600");
    await admin.keys.revoke(id);
    expect(await codeOf(first.client(key).sandboxes.connect(sandbox.id))).toBe("unauthenticated");
    await expect.poll(() => codeOf(second.client(key).sandboxes.connect(sandbox.id))).toBe("unauthenticated");
    expect(await codeOf(sleeping.wait())).toBe("unauthenticated");
  });

  it("lists which nodes are alive and how many sandboxes each runs", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const [first, second, third] = bed.nodes as [ClusterNode, ClusterNode, ClusterNode];
    const { apiKey } = first;
    await second.client(apiKey).sandboxes.create({ memoryMib: 128 });
    const client = first.client();
    const list = () => client.nodes.list();
    const named = (last: number, fields: object) =>
      expect.objectContaining({ url: `http://10.77.0.${last}:4747`, isDraining: false, ...fields });
    const isAlive = true;
    await expect
      .poll(list)
      .toEqual(
        expect.arrayContaining([
          named(11, { isAlive, isThisNode: true, sandboxes: 0 }),
          named(12, { isAlive, isThisNode: false, sandboxes: 1 }),
          named(13, { isAlive, isThisNode: false, sandboxes: 0 }),
        ]),
      );
    await third.kill9();
    await expect.poll(list).toContainEqual(named(13, { isAlive: false }));
  });
});
