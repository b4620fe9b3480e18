import { mkdtempSync } from "node:fs";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { DockerProvider } from "./provider.ts";
import { connectTo } from "./testing/connect.ts";
import { importTestImage } from "./testing/test-image.ts";

const url = process.argv[2] as string;
const image = "sandpiper-test:latest";
const provider = new DockerProvider({ stateDirectory: mkdtempSync("/tmp/zz-"), engineUrl: url, image });
await importTestImage(await connectTo({ url }));
console.log(await provider.probe());
const t0 = performance.now();
const sb = await Sandbox.create(provider, { env: { SECRET: "x" } });
console.log("create", performance.now() - t0);
console.log(
  (
    await sb.exec(
      "id; uname -a; echo $SECRET; echo hi > /root/f || echo hi > /tmp/f; echo data > /.data/d; ls -la /.data /.sandpiper",
      { user: "root" },
    )
  ).stdout,
);
const dir = mkdtempSync("/tmp/zz-ck-");
try {
  console.log("checkpoint", await sb.checkpoint(dir, { keepsRunning: true }));
  const prepared = await Sandbox.prepare(provider, sb.config, { id: createSandboxId() });
  const fork = await Sandbox.restore(provider, sb.config, { prepared, directory: dir, createdAt: new Date() });
  console.log("fork:", (await fork.exec("cat /root/f /.data/d", { user: "root" })).stdout);
  await fork.destroy();
} catch (e) {
  console.log("CK", e);
}
await sb.destroy();
console.log(await provider.list());
