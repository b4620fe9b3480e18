import { connectTo } from "../../packages/providers/src/docker/testing/connect.ts";
import { startDockerd } from "../../packages/providers/src/docker/testing/dockerd.ts";
import { importTestImage } from "../../packages/providers/src/docker/testing/test-image.ts";
import { shared, sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { IMAGE } from "../node/docker-home.ts";
import { NodeProcess } from "../node/node-process.ts";
import { describePreviews } from "./preview-contract.ts";

const dockerd = await shared(startDockerd());
const engine = await shared(connectTo(dockerd));
await importTestImage(engine, { name: IMAGE, variant: "python" });
const home = sharedDirectory("previews");
const docker = { url: dockerd.url, image: IMAGE };
const config = { home, port: 0, logLevel: "warn", defaultProvider: "docker", docker } as const;
const node = await shared(NodeProcess.start(config));

describePreviews("Docker", { node, create: () => node.client.sandboxes.create(), timeoutMs: 180_000 });
