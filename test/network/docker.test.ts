import { connectTo } from "../../packages/providers/src/docker/testing/connect.ts";
import { startDockerd } from "../../packages/providers/src/docker/testing/dockerd.ts";
import { importTestImage } from "../../packages/providers/src/docker/testing/test-image.ts";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";
import { IMAGE } from "../node/docker-home.ts";
import { describeEscapes } from "./escape/describe-escapes.ts";
import { describeNetwork } from "./network-contract.ts";
import { useNetworkBed } from "./shared-bed.ts";
import { fullSize } from "./sizes.ts";

const dockerd = await shared(startDockerd());
const engine = await shared(connectTo(dockerd));
await importTestImage(engine, { name: IMAGE, variant: "python" });
const bed = await useNetworkBed({ config: { defaultProvider: "docker", docker: { url: dockerd.url, image: IMAGE } } });
const client = bed.node.client();

describeNetwork("Docker", {
  bed,
  create: (network) => client.sandboxes.create({ network }),
  ...fullSize({ connections: 200, transferBytes: 16 * 1024 * 1024, timeoutMs: 120_000 }),
});

describeEscapes("Docker", {
  bed,
  create: (network) => client.sandboxes.create({ network }),
  except: {
    "a socket to the virtual machine's host (vsock)":
      "the machine that runs the test may have a hypervisor that answers",
  },
});
