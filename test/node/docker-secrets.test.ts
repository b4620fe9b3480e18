import { expect, it } from "vitest";
import { connectTo } from "../../packages/providers/src/docker/testing/connect.ts";
import { startDockerd } from "../../packages/providers/src/docker/testing/dockerd.ts";
import { importTestImage } from "../../packages/providers/src/docker/testing/test-image.ts";
import { shared, sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { startSdkNode } from "../sdk/sdk-node.ts";
import { IMAGE } from "./docker-home.ts";
import { SecretApi } from "./secret-api.ts";

const HOST = "api.secrets.test";

const dockerd = await shared(startDockerd());
const engine = await shared(connectTo(dockerd));
await importTestImage(engine, { name: IMAGE, variant: "python" });

it("secrets reach their host from a container, also after it was rebuilt", async () => {
  const home = sharedDirectory("docker-secrets");
  await using api = await SecretApi.start(home);
  const docker = { url: dockerd.url, image: IMAGE };
  await using node = await startSdkNode({ home, defaultProvider: "docker", docker, network: api.network });
  const hosts = [`${HOST}:${api.port}`];
  const inject = { header: "Authorization", format: "Bearer {}" };
  await node.client.secrets.create({ name: "bearer", value: "sk-real-0123456789", hosts, inject });
  const rules = [{ allow: HOST, ports: [api.port] }];
  const sandbox = await node.client.sandboxes.create({ network: { rules }, secrets: ["bearer"] });
  const call = (path: string) =>
    sandbox.exec(
      `python3 -c 'import urllib.request as u; print(u.urlopen("https://${HOST}:${api.port}${path}").read())'`,
      { timeoutMs: 60_000 },
    );
  expect(await call("/fresh")).toMatchObject({ exitCode: 0 });
  await sandbox.rebuild();
  expect(await call("/rebuilt")).toMatchObject({ exitCode: 0 });
  expect(api.seen.map(({ url, authorization }) => `${url} ${authorization}`)).toEqual([
    "/fresh Bearer sk-real-0123456789",
    "/rebuilt Bearer sk-real-0123456789",
  ]);
  await sandbox.destroy();
});
