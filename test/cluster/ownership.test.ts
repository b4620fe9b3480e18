import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { listLeft } from "../../bench/leftovers.ts";
import { DirectoryStore } from "../../packages/node/src/store/directory-store.ts";
import type { ClusterNode } from "./cluster-node.ts";
import { createdBy, isStatus, printed, rawSession, status } from "./raw-session.ts";
import { startSharedBed } from "./shared-bed.ts";

/** Prints every readable place where a program could find its sandbox's token. */
const SEARCH = `
  cat /proc/*/environ /proc/*/cmdline 2> /dev/null
  find /home /run /tmp /var/tmp /etc /dev/shm -type f -size -64k -exec cat {} + 2> /dev/null
  true`;

describe("a sandbox in a cluster", () => {
  it("does not move for callers of other tenants, and cannot read its own token", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const [first, second] = bed.nodes;
    const admin = first.client();
    const holder = rawSession(first, "/create?memoryMib=128", { credential: first.apiKey });
    const { id, token } = await createdBy(holder);
    await holder.close();
    const before = (await admin.sandboxes.connect(id)).info;

    const { key: otherKey } = await admin.keys.create({ name: "other", tenant: "other" });
    const other = await second.client(otherKey).sandboxes.create({ memoryMib: 128 });
    const forged = `${token.slice(0, -4)}${token.endsWith("AAAA") ? "BBBB" : "AAAA"}`;
    expect((await rawSession(second, `/attach/${id}`, { credential: forged }).refused).status).toBe(401);
    for (const credential of [otherKey, other.token]) {
      const session = rawSession(second, `/attach/${id}?takeover=true`, { credential });
      expect(await session.next()).toMatchObject(status("NOT_FOUND", { message: expect.any(String) }));
      await session.closed;
    }
    const asked = await Promise.all(
      [forged, otherKey, other.token].map((credential) =>
        fetch(`${second.url}/v1/sandboxes/${id}/handoff`, {
          method: "POST",
          headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
          body: '{"takeover":true}',
        }),
      ),
    );
    expect(asked.map((response) => response.status)).toEqual([401, 404, 404]);
    const sandbox = await admin.sandboxes.connect(id);
    expect(sandbox.info).toMatchObject({ node: before.node, state: "ready" });

    const { stdout } = await sandbox.exec(SEARCH);
    expect(stdout).toContain("PATH=");
    expect(stdout).not.toContain(token.slice(4));
  });

  it("moves immediately for the next waiting client when the first one has left", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const [first, second, third] = bed.nodes as [ClusterNode, ClusterNode, ClusterNode];
    const credential = first.apiKey;
    const sandbox = await first.client().sandboxes.create({ memoryMib: 128 });
    await sandbox.checkpoint();
    first.freeze();
    const impatient = rawSession(second, `/attach/${sandbox.id}`, { credential });
    expect(await impatient.next()).toEqual(status("RESTORING"));
    const store = new DirectoryStore(join(dirname(first.homeDir), "store"));
    const lock = async () => Buffer.from((await store.get(`locks/${sandbox.id}.lock`))?.bytes ?? []).toString();
    await expect.poll(lock).toContain('"waiter":{');
    await impatient.close();
    const patient = rawSession(third, `/attach/${sandbox.id}`, { credential });
    const messages = await patient.until((message) => isStatus("RUNNING")(message) || "message" in message);
    expect(messages).toEqual([status("RESTORING"), status("RUNNING", { rolledBackTo: expect.anything() })]);
  });

  it("moves when its node is frozen for longer than its lease, and stays there when that node resumes", async () => {
    await using bed = await startSharedBed({ store: "s3" });
    const [first, second] = bed.nodes;
    const credential = first.apiKey;
    const own = first.client();
    const sandbox = await own.sandboxes.create({ memoryMib: 128 });
    await sandbox.exec("echo saved > ~/file");
    await sandbox.checkpoint();
    first.freeze();
    const session = rawSession(second, `/attach/${sandbox.id}`, { credential });
    await session.until(isStatus("RUNNING"));
    // The frozen node's instance ended before the other node started its own.
    const isOurs = (line: string) => line.startsWith("process") && line.includes(sandbox.id);
    expect((await listLeft(first.homeDir, [])).filter(isOurs)).toEqual([]);
    await session.send({ language: "bash", code: "echo later >> ~/file; cat ~/file" });
    expect(printed(await session.until(isStatus("EXECUTION_DONE")))).toBe("saved\nlater\n");

    first.thaw();
    expect((await sandbox.exec("cat ~/file")).stdout).toBe("saved\nlater\n");
    expect(await sandbox.checkpoint()).toMatchObject({ sandboxId: sandbox.id });
    const { node } = await sandbox.refresh();
    const [holder] = (await own.nodes.list()).filter(({ id }) => id === node);
    expect(holder?.url).toContain("10.77.0.12");
    const left = async () => (await listLeft(first.homeDir, [])).filter((line) => line.includes(sandbox.id));
    await expect.poll(left).toEqual([]);
  });
});
