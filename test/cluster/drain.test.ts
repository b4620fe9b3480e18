import { Client } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { listLeft } from "../../bench/leftovers.ts";
import { runCli } from "../e2e/run-cli.ts";
import { collectOutput, countTo, numbersTo } from "../node/numbered-output.ts";
import type { ClusterNode } from "./cluster-node.ts";
import { rawSession } from "./raw-session.ts";
import { startSharedBed } from "./shared-bed.ts";

const NUMBERS = numbersTo(200);

/** Sandboxes on one node with a command in each, whose output the test reads through the load balancer. */
async function busySandboxes(node: ClusterNode, url: string, apiKey: string) {
  const client = new Client({ url, apiKey });
  const own = node.client(apiKey);
  const made = await Promise.all([1, 2, 3].map(() => own.sandboxes.create({ memoryMib: 128 })));
  own.close();
  const ids = made.map(({ id }) => id);
  const sandboxes = await Promise.all(ids.map((id) => client.sandboxes.connect(id)));
  const counting = await Promise.all(sandboxes.map((sandbox) => sandbox.start(countTo(200))));
  const outputs = counting.map((process) => collectOutput(process).ended);
  const running = await listLeft(node.homeDir, ids);
  /** Leaves out what other nodes run: the sandboxes keep their ids when they move. */
  const left = async () => {
    const isTheNodes = (line: string) => running.includes(line) || line.includes(node.homeDir);
    const lines = (await listLeft(node.homeDir, ids)).filter(isTheNodes);
    return lines.filter((line) => !line.startsWith(`process ${node.pid}: `));
  };
  expect(running.some((line) => line.startsWith("cgroup "))).toBe(true);
  return { ids, sandboxes, outputs, left, [Symbol.asyncDispose]: async () => client.close() };
}

describe("a draining node", () => {
  it("moves its sandboxes with their processes to other nodes on SIGTERM, and exits with 0", async () => {
    await using bed = await startSharedBed({ store: "s3" });
    const [first, second] = bed.nodes;
    await using busy = await busySandboxes(second, bed.url, first.apiKey);
    expect(await second.terminate()).toBe(0);
    expect(await busy.left()).toEqual([]);
    expect(await Promise.all(busy.outputs)).toEqual([NUMBERS, NUMBERS, NUMBERS]);
    for (const sandbox of busy.sandboxes) {
      expect((await sandbox.refresh()).rolledBackTo).toBeNull();
      expect((await sandbox.exec("echo here")).stdout).toBe("here\n");
    }
  });

  it("releases its sandboxes on `sandpiper node drain`, and accepts no new ones", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const [first, second] = bed.nodes;
    const { apiKey } = first;
    await using busy = await busySandboxes(second, bed.url, apiKey);
    const env = { SANDPIPER_URL: second.url, SANDPIPER_API_KEY: apiKey };
    expect(await runCli(["node", "drain"], { env })).toMatchObject({ exitCode: 0, stdout: "" });
    const nodes = await first.client().nodes.list();
    expect(nodes.find(({ url }) => url?.includes("10.77.0.12"))).toMatchObject({ isDraining: true, sandboxes: 0 });
    expect(await busy.left()).toEqual([]);
    expect(await Promise.all(busy.outputs)).toEqual([NUMBERS, NUMBERS, NUMBERS]);

    expect(await (await fetch(`${second.url}/health`)).json()).toMatchObject({ status: "stopping" });
    await expect(second.client(apiKey).sandboxes.create()).rejects.toMatchObject({ code: "unavailable" });
    expect((await rawSession(second, "/create", { credential: apiKey }).refused).status).toBe(503);
    const attached = rawSession(second, `/attach/${busy.ids[0]}`, { credential: apiKey });
    expect(await attached.next()).toMatchObject({ event: "error", message: expect.stringContaining("draining") });
    expect(await second.terminate()).toBe(0);
  });
});
