import { rejection } from "@sandpiper/core/testing";
import { Client, Sandbox } from "@sandpiper/sdk";
import { describe, expect, it, onTestFinished } from "vitest";
import { InstanceWatch } from "../chaos/instance-watch.ts";
import { collectOutput, countTo, numbersTo, undisturbed } from "../node/numbered-output.ts";
import type { ClusterBed } from "./cluster-bed.ts";
import type { ClusterNode } from "./cluster-node.ts";
import { createdBy, isStatus, printed, rawSession, status } from "./raw-session.ts";
import { startSharedBed } from "./shared-bed.ts";

const text = expect.any(String);
/** Prints numbered lines until a file appears, and then their count. */
const COUNT = `
import os, time
n = 0
while not os.path.exists("/tmp/enough"):
    n += 1
    print(n, flush=True)
    time.sleep(0.005)
print("total", n)
`;

/** Reports each sandbox that runs on two nodes at once, as the kernel shows it. */
function watchInstances({ nodes }: ClusterBed) {
  const overlaps: string[] = [];
  const watch = new InstanceWatch({
    places: nodes.map(({ place }) => place),
    onOverlap: (id, places) => overlaps.push(`${id} runs in ${places.join(" and ")}`),
  });
  onTestFinished(() => watch[Symbol.dispose]());
  return { overlaps, watch };
}

/** Connects from one node's namespace to another node, as a forwarded request or a nudge would. */
async function canReach(from: ClusterNode, address: string): Promise<boolean> {
  const script = `
    const socket = require("node:net").connect({ host: "${address}", port: 4747, timeout: 1000 });
    const answer = (isOpen) => { console.log(isOpen); socket.destroy(); };
    socket.once("connect", () => answer(true)).once("timeout", () => answer(false)).once("error", () => answer(false));`;
  return (await from.runInside([process.execPath, "-e", script])).trim() === "true";
}

describe("nodes that cannot reach each other", () => {
  it("share a store, and show in their list that they have no URL", async () => {
    await using bed = await startSharedBed({ store: "s3", isIsolated: true });
    const [first, second] = bed.nodes;
    expect(await canReach(first, "10.77.0.11")).toBe(true);
    expect(await canReach(first, "10.77.0.12")).toBe(false);
    const listed = await second.client(first.apiKey).nodes.list();
    expect(listed.map(({ url, isAlive }) => ({ url, isAlive }))).toEqual([
      { url: null, isAlive: true },
      { url: null, isAlive: true },
      { url: null, isAlive: true },
    ]);
    for (const { log } of bed.nodes) expect(log.join()).toContain("other nodes cannot reach this node");
  });

  it("hand a session over through the store when a client lands on another node, and its program continues", async () => {
    await using bed = await startSharedBed({ store: "s3", isIsolated: true });
    const { overlaps, watch } = watchInstances(bed);
    const credential = bed.nodes[0].apiKey;
    const at = (node: number) => ({ cookie: `SANDPIPER_NODE=node-${node}` });
    const creating = rawSession(bed, "/create?memoryMib=128", { credential, ...at(1) });
    const { id, token } = await createdBy(creating);
    await creating.send({ language: "bash", code: "echo kept > ~/file" });
    await creating.until(isStatus("EXECUTION_DONE"));
    const code = `${countTo(50)}; until [ -e ~/enough ]; do sleep 0.05; done; echo end`;
    await creating.send({ language: "bash", code });
    await creating.until((message) => "data" in message && `${message.data}`.includes("5\n"));
    await creating.close();

    const path = `/attach/${id}`;
    const moved = [status("RESTORING"), status("RUNNING"), status("EXECUTION_RUNNING")];
    const second = rawSession(bed, path, { credential: token, ...at(2) });
    expect(await second.take(3)).toMatchObject(moved);
    await second.close();
    const last = rawSession(bed, path, { credential: token, ...at(1) });
    expect(await last.take(3)).toMatchObject(moved);
    await (await bed.nodes[0].client().sandboxes.connect(id)).files.write("enough", "");
    expect(printed(await last.until(isStatus("EXECUTION_DONE")))).toBe(`${numbersTo(50)}end\n`);
    await last.send({ language: "bash", code: "cat ~/file" });
    expect(printed(await last.until(isStatus("EXECUTION_DONE")))).toBe("kept\n");
    expect(watch.seen).toBeGreaterThan(0);
    expect(overlaps).toEqual([]);
  });

  it("leave a session with its client unless another one takes it over with the token", async () => {
    await using bed = await startSharedBed({ store: "file", isIsolated: true });
    const { overlaps, watch } = watchInstances(bed);
    const [first, second] = bed.nodes;
    const credential = first.apiKey;
    const holder = rawSession(first, "/create?memoryMib=128", { credential });
    const { id, token } = await createdBy(holder);
    const refused = rawSession(second, `/attach/${id}`, { credential });
    expect((await refused.until(isStatus("IN_USE"))).at(-1)).toMatchObject(status("IN_USE", { message: text }));
    const elsewhere = await second.client(credential).sandboxes.connect(id);
    await expect(elsewhere.files.readText("file")).rejects.toMatchObject({ reason: "sandbox_in_use" });

    const taking = rawSession(second, `/attach/${id}?takeover=true`, { credential: token });
    expect(await taking.take(2)).toEqual([status("RESTORING"), status("RUNNING")]);
    expect((await holder.until(isStatus("MOVED"))).at(-1)).toMatchObject(status("MOVED", { message: text }));
    expect(await holder.closed).toMatchObject({ code: 1012 });
    expect(watch.seen).toBeGreaterThan(0);
    expect(overlaps).toEqual([]);
  });

  it("serve every request about a sandbox on any node: each request moves it there", async () => {
    await using bed = await startSharedBed({ store: "file", isIsolated: true });
    const { overlaps, watch } = watchInstances(bed);
    const { apiKey } = bed.nodes[0];
    const { id, token } = await bed.nodes[0].client().sandboxes.create({ memoryMib: 128 });
    const elsewhere = bed.nodes[1].client(apiKey);
    onTestFinished(() => elsewhere.close());
    const events = elsewhere.events({ sandbox: id })[Symbol.asyncIterator]();
    await expect(events.next()).rejects.toMatchObject({ reason: "owner_has_no_url" });
    const handles: Sandbox[] = [];
    for (const { url } of bed.nodes) {
      const client = new Client({ url, apiKey });
      onTestFinished(() => client.close());
      const sandbox = await client.sandboxes.connect(id);
      handles.push(sandbox);
      const [self] = (await client.nodes.list()).filter(({ isThisNode }) => isThisNode);
      await sandbox.files.write("file", url);
      expect((await sandbox.refresh()).node).toBe(self?.id);
      expect((await sandbox.exec("cat file", { stdin: "" })).stdout).toBe(url);
      const listed = await Array.fromAsync(client.sandboxes.list());
      expect(listed.map((each) => each.id)).toEqual([id]);
      const byToken = await Sandbox.connect(id, { url, token });
      expect(await byToken.files.readText("file")).toBe(url);
    }
    await handles[0]?.destroy();
    for (const handle of handles) expect((await rejection(handle.exec("true"))).code).toMatch(/gone|not_found/);
    expect(watch.seen).toBeGreaterThan(0);
    expect(overlaps).toEqual([]);
  });

  it("deliver every line of a program once to a client that a load balancer moves between them", async () => {
    await using bed = await startSharedBed({ store: "file", isIsolated: true });
    const { overlaps, watch } = watchInstances(bed);
    await using client = new Client({ url: bed.url, apiKey: bed.nodes[0].apiKey });
    await using sandbox = await client.sandboxes.create({ memoryMib: 128 });
    const owners = new Set<string | null>();
    const counting = await sandbox.start(["python3", "-c", COUNT]);
    const output = collectOutput(counting);
    for (const node of ["node-1", "node-2", "node-3"]) {
      // Takes the other nodes out of service, so that the client reconnects to this one.
      for (const other of bed.nodes.map((each) => bed.nameOf(each))) {
        await bed.balancer.command(`set server sandpiper/${other} state ${other === node ? "ready" : "maint"}`);
        if (other !== node) await bed.balancer.command(`shutdown sessions server sandpiper/${other}`);
      }
      const before = output.lines();
      await expect.poll(output.lines).toBeGreaterThan(before + 100);
      owners.add((await sandbox.refresh()).node);
    }
    await sandbox.files.write("/tmp/enough", "");
    await output.ended;
    expect(output.text() === undisturbed(output.text())).toBe(true);
    expect(owners.size).toBe(3);
    expect((await sandbox.refresh()).rolledBackTo).toBeNull();
    expect(watch.seen).toBeGreaterThan(0);
    expect(overlaps).toEqual([]);
  });
});
