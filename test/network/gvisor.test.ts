import { describeNetwork } from "./network-contract.ts";
import { useNetworkBed } from "./shared-bed.ts";
import { fullSize } from "./sizes.ts";

const bed = await useNetworkBed();
const client = bed.node.client();

describeNetwork("gVisor", {
  bed,
  create: (network) => client.sandboxes.create({ network }),
  ...fullSize({ connections: 1000, transferBytes: 64 * 1024 * 1024, timeoutMs: 120_000 }),
});
