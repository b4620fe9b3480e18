import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type GcsServer, startGcsServer } from "../../packages/node/src/store/testing/gcs-server.ts";
import { createdBy, isStatus, printed, rawSession, status } from "../cluster/raw-session.ts";
import { DeployBed } from "./deploy-bed.ts";
import { environmentOf, readWorkload } from "./manifests.ts";

const { container } = readWorkload("deploy/cloud-run/service.yaml", "Service");
const PORT = container.ports[0]?.containerPort ?? 0;
const INSTANCES = ["one", "two"] as const;
const SANDPIPER_CLUSTER_SECRET = randomBytes(32).toString("base64");
const environment = environmentOf(container, { secrets: { "sandpiper-cluster-secret": { SANDPIPER_CLUSTER_SECRET } } });

let bed: DeployBed;
let bucket: GcsServer;
let credential: string;
const session = (instance: string, path: string, as = credential) =>
  rawSession({ url: bed.urlOf(instance) }, path, { credential: as });

beforeAll(async () => {
  const isIsolated = true;
  const instances = INSTANCES.map((name) => ({ name, port: PORT, isIsolated }));
  bucket = await startGcsServer();
  await bucket.createBucket(new URL(environment["SANDPIPER_STORE"] ?? "").host);
  const members = [...instances, { name: "operator", port: 4747, isIsolated }];
  bed = await DeployBed.start(members, { server: new URL(bucket.endpoint).host });
  credential = await firstKey();
});

beforeAll(async () => {
  await Promise.all(INSTANCES.map(runInstance));
});

for (const name of INSTANCES) beforeAll(() => bed.untilHealthy(name, container.startupProbe?.httpGet.path));

afterAll(() => bed?.[Symbol.asyncDispose]());
afterAll(() => bucket?.[Symbol.asyncDispose]());
beforeEach(() => bed.printLogsOnFailure());

/** Outside of Google Cloud. */
const emulator = () => ({ STORAGE_EMULATOR_HOST: bed.serverUrl });

/** As the README makes it: with a node on a machine of the operator that uses the same store and secret. */
async function firstKey(): Promise<string> {
  const { SANDPIPER_STORE = "" } = environment;
  const env = { SANDPIPER_STORE, SANDPIPER_CLUSTER_SECRET, SANDPIPER_ALLOW_INSECURE: "true" };
  await bed.run("operator", { env: { ...env, ...emulator() } });
  await bed.untilHealthy("operator");
  const key = await bed.container("operator").exec(["cat", "/var/lib/sandpiper/api-key"]);
  await bed.container("operator").stop();
  return key.trim();
}

/** Cloud Run sets PORT itself. */
async function runInstance(name: string): Promise<void> {
  await bed.run(name, { env: { ...environment, PORT: `${PORT}`, ...emulator() } });
}

describe("the instances of the Cloud Run service", () => {
  it("start without a URL for each other", async () => {
    const response = await fetch(`${bed.urlOf("one")}/v1/nodes`, {
      headers: { authorization: `Bearer ${credential}` },
    });
    const { items } = (await response.json()) as { items: { url: string | null; isAlive: boolean }[] };
    expect(items.map(({ url, isAlive }) => ({ url, isAlive }))).toEqual([
      { url: null, isAlive: true },
      { url: null, isAlive: true },
    ]);
  });

  it("keep a session on its instance, and restore it on another one that the client reaches", async () => {
    const creating = session("one", "/create?memoryMib=128");
    const { id, token } = await createdBy(creating);
    await creating.send({ language: "bash", code: "echo kept > ~/file" });
    await creating.until(isStatus("EXECUTION_DONE"));
    await creating.close();

    const again = session("one", `/attach/${id}`, token);
    expect(await again.next()).toEqual(status("RUNNING"));
    // The node repeats the end of the first code if it does not know that the first client received it.
    const execution = "second";
    await again.send({ language: "bash", code: "until [ -e ~/enough ]; do sleep 0.1; done; cat ~/file", execution });
    await again.until((message) => isStatus("EXECUTION_RUNNING")(message) && Object(message).execution === execution);
    await again.close();

    const moved = session("two", `/attach/${id}`, token);
    expect(await moved.take(3)).toMatchObject([status("RESTORING"), status("RUNNING"), status("EXECUTION_RUNNING")]);
    const headers = { authorization: `Bearer ${token}` };
    const file = `${bed.urlOf("two")}/v1/sandboxes/${id}/files?path=enough`;
    expect((await fetch(file, { method: "PUT", headers, body: "" })).ok).toBe(true);
    expect(printed(await moved.until(isStatus("EXECUTION_DONE")))).toBe("kept\n");
  });

  it("accept a new session beside the sandbox of a client that has left", async () => {
    const first = session("one", "/create?memoryMib=128");
    await createdBy(first);
    await first.close();
    const second = session("one", "/create?memoryMib=128");
    const { id } = await createdBy(second);
    expect(id).toBeTruthy();
    await second.close();
  });

  it("save their sandboxes when Cloud Run stops them, and another instance continues", async () => {
    const creating = session("one", "/create?memoryMib=128");
    const { id, token } = await createdBy(creating);
    await creating.send({ language: "bash", code: "echo saved > ~/file" });
    await creating.until(isStatus("EXECUTION_DONE"));
    expect(await bed.container("one").stop()).toBe(0);
    const moved = session("two", `/attach/${id}`, token);
    expect(await moved.take(2)).toEqual([status("RESTORING"), status("RUNNING")]);
    await moved.send({ language: "bash", code: "cat ~/file" });
    expect(printed(await moved.until(isStatus("EXECUTION_DONE")))).toBe("saved\n");
  });
});
