import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@sandpiper/sdk";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { handOff } from "../cluster/hand-off.ts";
import { Haproxy } from "../cluster/haproxy.ts";
import { readCompose } from "./compose-file.ts";
import { DeployBed } from "./deploy-bed.ts";
import { readStage, root } from "./dockerfile.ts";

const NODES = ["node-1", "node-2", "node-3"] as const;
/** The values that the directory's README puts into `.env`. */
const services = readCompose({
  SANDPIPER_CLUSTER_SECRET: randomBytes(32).toString("base64"),
  STORE_SECRET_KEY: randomBytes(32).toString("hex"),
});

let bed: DeployBed;
let apiKey: string;

beforeAll(async () => {
  bed = await DeployBed.start([
    ...NODES.map((name) => ({ name, port: 4747 })),
    { name: "store", port: 7070 },
    { name: "balancer", port: 8080 },
  ]);
  await runService("store");
  await bed.untilAnswering("store");
});

beforeAll(async () => {
  await Promise.all(NODES.map(runService));
});

for (const name of NODES) beforeAll(() => bed.untilHealthy(name));

beforeAll(async () => {
  await startBalancer();
  apiKey = await firstKey();
});

afterAll(() => bed?.[Symbol.asyncDispose]());
beforeEach(() => bed.printLogsOnFailure());

async function runService(name: string): Promise<void> {
  const { build, environment, volumes } = services[name] as (typeof services)[string];
  const mounts = volumes.map((volume) => {
    const [source = "", target = ""] = volume.split(":");
    return { source: bed.volume(source), target };
  });
  const stage = build?.target ?? "node";
  for (const { source, target } of mounts) fillVolume(stage, source, target);
  // The bed has addresses of its own.
  const trusts = environment["SANDPIPER_TRUSTED_PROXIES"] !== undefined;
  const env = { ...environment, ...(trusts ? { SANDPIPER_TRUSTED_PROXIES: bed.addresses["balancer"] ?? "" } : {}) };
  await bed.run(name, { stage, env, volumes: mounts, isRestricted: services[name]?.privileged !== true });
}

/** Docker copies the image's directories below a mount point into a new volume. */
function fillVolume(stage: "node" | "store", source: string, target: string): void {
  for (const path of readStage(stage).directories) {
    if (path.startsWith(`${target}/`)) mkdirSync(join(source, path.slice(target.length)), { recursive: true });
  }
}

/** Runs this machine's HAProxy: no registry has the image. */
async function startBalancer(): Promise<void> {
  const hosts = join(bed.volume("balancer"), "hosts");
  writeFileSync(
    hosts,
    Object.entries(bed.addresses)
      .map(([name, address]) => `${address} ${name}\n`)
      .join(""),
  );
  const adminSocket = join(bed.volume("balancer"), "admin.sock");
  const script = `mount --bind ${hosts} /etc/hosts && exec "$@"`;
  await Haproxy.start({
    configFile: join(root, "deploy/haproxy/haproxy.cfg"),
    adminSocket,
    env: { ...services["balancer"]?.environment, SANDPIPER_ADMIN_SOCKET: adminSocket },
    enter: (argv) => bed.host("balancer").enter(["unshare", "--mount", "sh", "-c", script, "sh", ...argv]),
  });
}

/** As the README finds it: in the home of the node that started first. */
async function firstKey(): Promise<string> {
  const read = (name: string) =>
    bed
      .container(name)
      .exec(["cat", "/var/lib/sandpiper/api-key"])
      .catch(() => "");
  return (await Promise.all(NODES.map(read))).join("").trim();
}

describe("the containers of compose.yaml", () => {
  it("have the privileges that the test gives them", () => {
    for (const name of NODES) expect(services[name]).toMatchObject({ privileged: true, cgroup: "private" });
    for (const name of ["store", "balancer"]) {
      expect(services[name]).toMatchObject({ security_opt: ["no-new-privileges:true"], cap_drop: ["ALL"] });
      expect(services[name]?.privileged).toBeUndefined();
    }
    // Without TLS, only this machine reaches the balancer, and only the balancer reaches the nodes.
    expect(Object.values(services).flatMap(({ ports = [] }) => ports)).toEqual(["127.0.0.1:8080:8080"]);
  });

  it("believe the addresses of callers that the balancer reports, and no one else", () => {
    const balancer = services["balancer"]?.networks?.default.ipv4_address;
    expect(balancer).toMatch(/^172\./);
    for (const name of NODES) expect(services[name]?.environment["SANDPIPER_TRUSTED_PROXIES"]).toBe(balancer);
  });

  it("form a cluster of three nodes that reach each other by name", async () => {
    await using client = new Client({ url: bed.urlOf("balancer"), apiKey });
    const urls = async () => (await client.nodes.list()).map(({ url, isAlive }) => isAlive && url).toSorted();
    await expect.poll(urls).toEqual(NODES.map((name) => `http://${name}:4747`));
  });

  it("run a sandbox behind the balancer, move it, and save it when its node stops", async () => {
    await using client = new Client({ url: bed.urlOf("balancer"), apiKey });
    const sandbox = await client.sandboxes.create({ memoryMib: 128 });
    await sandbox.files.write("file", "kept");
    for (const name of NODES) {
      await using direct = new Client({ url: bed.urlOf(name), apiKey });
      expect((await (await direct.sandboxes.connect(sandbox.id)).exec("cat file")).stdout).toBe("kept");
    }
    await handOff({ url: bed.urlOf("node-3") }, sandbox.id, apiKey);
    expect(await bed.container("node-3").stop()).toBe(0);
    expect((await sandbox.exec("cat file; python3 --version")).stdout).toMatch(/^keptPython 3/);
    await sandbox.destroy();
  });
});
