import { Session, type SessionExecution, type SessionStatus } from "@sandpiper/sdk";
import { describe, expect, it, onTestFinished } from "vitest";
import { numbersTo } from "../node/numbered-output.ts";
import type { ClusterBed } from "./cluster-bed.ts";
import { startSharedBed } from "./shared-bed.ts";

/** Prints numbers until a file appears, then their count. Half of each character comes late, with stderr in between. */
const COUNT = `
import os, sys, time
n = 0
while not os.path.exists("/tmp/enough"):
    n += 1
    sys.stdout.buffer.write(b"%d \\xe2\\x82" % n); sys.stdout.flush()
    sys.stderr.write("."); sys.stderr.flush()
    sys.stdout.buffer.write(b"\\xac\\n"); sys.stdout.flush()
    time.sleep(0.01)
print("total", n)
`;

/** What the program prints if nothing is lost or repeated. */
function undisturbed(stdout: string) {
  const total = Number(/total (\d+)\n$/.exec(stdout)?.[1]);
  return { stdout: `${numbersTo(total).replaceAll("\n", " €\n")}total ${total}\n`, stderr: ".".repeat(total) };
}

/** A session through the load balancer, with all its statuses. */
async function createSession(bed: ClusterBed) {
  const session = await Session.create({ url: bed.url, apiKey: bed.nodes[0].apiKey, memoryMib: 128 });
  onTestFinished(() => session.close());
  const statuses: SessionStatus[] = [];
  session.on("status", ({ status }) => statuses.push(status));
  const attached = async (after: number) => {
    await expect.poll(() => statuses.slice(after)).toContain("SANDBOX_RUNNING");
  };
  return { session, statuses, attached };
}

/** The node that runs the only sandbox. */
async function ownerOf(bed: ClusterBed, id: string): Promise<string> {
  const client = bed.nodes[0].client();
  try {
    const { node } = (await client.sandboxes.connect(id)).info;
    const url = (await client.nodes.list()).find((each) => each.id === node)?.url ?? "";
    return `node-${Number(/\.1(\d):/.exec(url)?.[1])}`;
  } finally {
    client.close();
  }
}

const cut = async (bed: ClusterBed) => {
  for (const node of bed.nodes) await bed.balancer.command(`shutdown sessions server sandpiper/${bed.nameOf(node)}`);
};

describe("the SDK's session in a cluster", () => {
  it("returns to its node by the cookie of the handshake, without a handoff", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const { session, statuses, attached } = await createSession(bed);
    const owner = await ownerOf(bed, session.id);
    for (let times = 0; times < 3; times++) {
      const after = statuses.length;
      await cut(bed);
      await attached(after);
    }
    expect(statuses).not.toContain("SANDBOX_RESTORING");
    expect(await ownerOf(bed, session.id)).toBe(owner);
    expect((await session.run("python", "print('hello')")).stdout).toBe("hello\n");
  });

  it("receives every character once while the sandbox moves from node to node under running code", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const { session, statuses, attached } = await createSession(bed);
    const running = session.run("python", COUNT);
    running.catch(() => {});
    for (let move = 0; move < 3; move++) {
      const { next } = session.execution ?? { next: "0" };
      await expect.poll(() => session.execution?.next, { interval: 5 }).not.toBe(next);
      const after = statuses.length;
      const owner = await ownerOf(bed, session.id);
      // The load balancer misses the affinity: the client lands on another node, which asks for the sandbox.
      await bed.balancer.command(`set server sandpiper/${owner} state maint`);
      await bed.balancer.command(`shutdown sessions server sandpiper/${owner}`);
      await attached(after);
      expect(statuses.slice(after)).toContain("SANDBOX_RESTORING");
      expect(await ownerOf(bed, session.id)).not.toBe(owner);
      await bed.balancer.command(`set server sandpiper/${owner} state ready`);
      // The client has the cookie of its new node.
      const moved = statuses.length;
      await cut(bed);
      await attached(moved);
      expect(statuses.slice(moved)).not.toContain("SANDBOX_RESTORING");
    }
    const client = bed.nodes[0].client();
    onTestFinished(() => client.close());
    await (await client.sandboxes.connect(session.id)).files.write("/tmp/enough", "");
    const { stdout, stderr, exitCode } = await running;
    expect({ stdout, stderr }).toEqual(undisturbed(stdout));
    expect(exitCode).toBe(0);
  });

  it("follows the sandbox when its node drains, in the middle of output", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const { session, statuses, attached } = await createSession(bed);
    const running = session.run("python", COUNT);
    running.catch(() => {});
    const client = bed.nodes[0].client();
    onTestFinished(() => client.close());
    const name = await ownerOf(bed, session.id);
    const owner = bed.nodes.find((node) => bed.nameOf(node) === name);
    const after = statuses.length;
    expect(await owner?.terminate()).toBe(0);
    await attached(after);
    expect(statuses.slice(after)).toContain("SANDBOX_MOVED");
    await owner?.start();
    await (await client.sandboxes.connect(session.id)).files.write("/tmp/enough", "");
    const { stdout, stderr } = await running;
    expect({ stdout, stderr }).toEqual(undisturbed(stdout));
  });

  it("leaves the sandbox to a client that took over on another node, and returns when that client leaves", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const [first, second] = bed.nodes;
    const { apiKey } = first;
    await using held = await Session.create({ url: first.url, apiKey, memoryMib: 128 });
    const { id, token } = held;
    await expect(Session.attach(id, { url: second.url, apiKey })).rejects.toMatchObject({ reason: "sandbox_in_use" });
    const statuses: SessionStatus[] = [];
    held.on("status", ({ status }) => statuses.push(status));
    const taking = await Session.attach(id, { url: second.url, token, takeover: true });
    onTestFinished(() => taking.close());
    await expect.poll(() => statuses).toContain("SANDBOX_IN_USE");
    expect((await taking.run("bash", "echo taken > ~/file; echo mine")).stdout).toBe("mine\n");
    await taking.close();
    expect((await held.run("bash", "cat ~/file")).stdout).toBe("taken\n");
  });

  it("reports a rollback after its node died, and then reads all output of the restored code", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const { session } = await createSession(bed);
    const name = await ownerOf(bed, session.id);
    const owner = bed.nodes.find((node) => bed.nameOf(node) === name) ?? bed.nodes[0];
    const survivor = bed.nodes.find((node) => node !== owner) ?? bed.nodes[0];
    const client = survivor.client(bed.nodes[0].apiKey);
    onTestFinished(() => client.close());
    const running = session.run("python", COUNT);
    running.catch(() => {});
    await expect.poll(() => session.execution?.next ?? "0").not.toBe("0");
    const sandbox = await client.sandboxes.connect(session.id);
    await sandbox.checkpoint();
    const { next } = session.execution ?? { next: "0" };
    await expect.poll(() => session.execution?.next).not.toBe(next);

    const rollbacks: unknown[] = [];
    session.on("status", ({ rolledBackTo }) => rolledBackTo && rollbacks.push(rolledBackTo));
    const restored = new Promise<SessionExecution>((resolve) => session.on("execution", resolve));
    await owner.kill9();
    await expect(running).rejects.toMatchObject({ code: "data_loss", reason: "rolled_back" });
    const again = await restored;
    await sandbox.files.write("/tmp/enough", "");
    const texts = { stdout: "", stderr: "" };
    for await (const { source, text } of again) texts[source] += text;
    expect(texts).toEqual(undisturbed(texts.stdout));
    expect(rollbacks).toHaveLength(1);
    expect((await session.run("bash", "echo next")).stdout).toBe("next\n");
  });
});
