import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@sandpiper/sdk";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { handOff } from "../cluster/hand-off.ts";
import { DeployBed } from "./deploy-bed.ts";
import { environmentOf, readWorkload } from "./manifests.ts";

const { replicas = 0, serviceName, container } = readWorkload("deploy/kubernetes/sandpiper.yaml", "StatefulSet");
const PODS = Array.from({ length: replicas }, (_, at) => `sandpiper-${at}`);
const PORT = container.ports[0]?.containerPort ?? 0;
const credentials = { AWS_ACCESS_KEY_ID: "sandpiper", AWS_SECRET_ACCESS_KEY: randomBytes(32).toString("hex") };
/** The README's secret. The endpoint is the test's: without one, the manifest uses Amazon S3. */
const secret = {
  ...credentials,
  SANDPIPER_CLUSTER_SECRET: randomBytes(32).toString("base64"),
  AWS_ENDPOINT_URL: "http://s3:7070",
};
const environment = (pod: string) =>
  environmentOf(container, { fields: { "metadata.name": pod }, secrets: { sandpiper: secret } });

let bed: DeployBed;
let apiKey: string;

beforeAll(async () => {
  bed = await DeployBed.start([...PODS.map((name) => ({ name, port: PORT })), { name: "s3", port: 7070 }]);
  await runS3();
});

beforeAll(async () => {
  await Promise.all(PODS.map(runPod));
});

for (const name of PODS) beforeAll(() => bed.untilHealthy(name, container.readinessProbe?.httpGet.path));

beforeAll(async () => {
  const read = (name: string) =>
    bed
      .container(name)
      .exec(["cat", "/var/lib/sandpiper/api-key"])
      .catch(() => "");
  apiKey = (await Promise.all(PODS.map(read))).join("").trim();
});

afterAll(() => bed?.[Symbol.asyncDispose]());
beforeEach(() => bed.printLogsOnFailure());

/** An S3 server in the manifest's region, with the manifest's bucket. */
async function runS3(): Promise<void> {
  const store = bed.volume("s3");
  mkdirSync(join(store, "objects/sandpiper"), { recursive: true });
  const { AWS_REGION = "" } = environment("");
  const command = ["versitygw", "--region", AWS_REGION, "--port", ":7070", "posix", "/store/objects"];
  const env = {
    ROOT_ACCESS_KEY_ID: credentials.AWS_ACCESS_KEY_ID,
    ROOT_SECRET_ACCESS_KEY: credentials.AWS_SECRET_ACCESS_KEY,
  };
  await bed.run("s3", { stage: "store", command, env, volumes: [{ source: store, target: "/store" }] });
  await bed.untilAnswering("s3");
}

async function runPod(name: string): Promise<void> {
  const volumes = (container.volumeMounts ?? []).map(({ name: volume, mountPath }) => ({
    source: bed.volume(`${name}-${volume}`),
    target: mountPath,
  }));
  // Pods resolve each other by the name of their headless Service.
  const names = (member: string) => (member === "s3" ? member : `${member}.${serviceName}`);
  await bed.run(name, { env: environment(name), volumes, names });
}

describe("the pods of the Kubernetes manifest", () => {
  it("have the privileges that the test gives them", () => {
    expect(container.securityContext).toEqual({ privileged: true });
  });

  it("form a cluster of nodes that reach each other through the headless Service", async () => {
    await using client = new Client({ url: bed.urlOf("sandpiper-0"), apiKey });
    const urls = async () => (await client.nodes.list()).map(({ url, isAlive }) => isAlive && url).toSorted();
    await expect.poll(urls).toEqual(PODS.map((name) => `http://${name}.sandpiper-nodes:4747`));
  });

  it("run a sandbox on any pod, and hand it over when a pod stops as Kubernetes stops it", async () => {
    await using client = new Client({ url: bed.urlOf("sandpiper-0"), apiKey });
    const sandbox = await client.sandboxes.create({ memoryMib: 128 });
    await sandbox.files.write("file", "kept");
    await handOff({ url: bed.urlOf("sandpiper-2") }, sandbox.id, apiKey);
    expect((await sandbox.exec("cat file")).stdout).toBe("kept");
    await bed.container("sandpiper-2").exec(container.lifecycle?.preStop.exec.command ?? []);
    expect(await bed.container("sandpiper-2").stop()).toBe(0);
    expect((await sandbox.exec("cat file")).stdout).toBe("kept");
    await sandbox.destroy();
  });
});
