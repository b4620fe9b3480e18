import type { Sandbox } from "@sandpiper/sdk";
import { expect, it } from "vitest";
import { guest, installGuestProgram } from "./guest-network.ts";
import { useNetworkBed } from "./shared-bed.ts";

const bed = await useNetworkBed({ nodes: 2 });
const [first, second] = bed.nodes.map((node) => node.client(bed.node.apiKey));

const hostsOf = async ({ network }: Sandbox) =>
  (await network.logPage()).items.filter(({ kind }) => kind === "flow").map(({ name }) => name);

it("answers on every node with the log of the owner, follows a sandbox that moves, and begins anew on its new node", async () => {
  await using sandbox = await first?.sandboxes.create({ network: "ask" });
  const elsewhere = await second?.sandboxes.connect(sandbox?.id ?? "");
  if (sandbox === undefined || elsewhere === undefined) throw new Error("the bed has two nodes");
  await installGuestProgram(sandbox);

  const held = guest(sandbox, "get", "site.example");
  await expect.poll(async () => (await elsewhere.network.requests()).map(({ name }) => name)).toEqual(["site.example"]);
  const [request] = await elsewhere.network.requests();
  await elsewhere.network.approve(request?.id ?? "");
  expect(await held).toContain("reached");
  expect(await hostsOf(elsewhere)).toEqual(["site.example"]);

  let seen = 0;
  const follow = async () => {
    for await (const { kind } of elsewhere.network.log({ follow: true })) if (kind === "flow") seen += 1;
  };
  const followed = follow();
  await expect.poll(() => seen).toBeGreaterThan(0);
  const before = seen;
  const nodes = await second?.nodes.list();
  await sandbox.moveTo(nodes?.find(({ isThisNode }) => isThisNode)?.id);
  expect(await hostsOf(elsewhere)).toEqual([]);
  expect(await guest(sandbox, "get", "site.example")).toContain("reached");
  await expect.poll(() => seen, { timeout: 20_000 }).toBeGreaterThan(before);
  expect(await hostsOf(sandbox)).toEqual(["site.example"]);
  await sandbox.destroy();
  await followed;
}, 120_000);
